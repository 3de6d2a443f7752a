"""Commits offsets to the public group, and reports whether partitions are drained."""
