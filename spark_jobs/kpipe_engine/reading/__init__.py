"""Ranges of the source topic, as they are read, and the offsets that groups hold."""
