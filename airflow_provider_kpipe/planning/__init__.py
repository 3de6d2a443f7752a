"""Turns a request into a frozen plan, and makes all checks that come before records are read."""
