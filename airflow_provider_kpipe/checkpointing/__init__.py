"""Commits offsets to the public group, and tells whether partitions are drained."""
