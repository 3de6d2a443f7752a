"""Forms that a user fills in to start a DAG run, checked field by field."""
