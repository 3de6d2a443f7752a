"""The ranges of a worker, the owner of each, and its progress."""
