"""Forms: what a person fills in when starting a DAG run, checked field by field."""
