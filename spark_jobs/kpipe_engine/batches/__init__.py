"""Arrow batches of records on their way through the user's segments."""
