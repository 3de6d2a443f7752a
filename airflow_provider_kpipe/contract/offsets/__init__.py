"""Offsets: limits, the ranges that they become, how far a range is complete, and origins."""
