"""Reads ranges of the source topic, and what groups hold."""
