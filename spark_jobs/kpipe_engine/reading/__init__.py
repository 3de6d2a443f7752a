"""Reads ranges of the source topic, and the offsets that groups hold."""
