"""Takes Arrow batches of records through the user's segments."""
