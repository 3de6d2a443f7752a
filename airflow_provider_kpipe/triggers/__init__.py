"""Triggers: the part of a gate that waits in the triggerer."""
