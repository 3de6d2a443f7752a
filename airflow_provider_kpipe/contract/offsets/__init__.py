"""Offsets: limits, the ranges that they become, the completed parts of a range, and origins."""
