"""Knows which ranges a worker has, who owns each, and how far it is."""
