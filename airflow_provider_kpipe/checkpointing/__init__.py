"""Commits of offsets to the public group, and reports of drained partitions."""
