"""Hands records to the producer, awaits the broker's acknowledgement, and stores offsets with the records."""
