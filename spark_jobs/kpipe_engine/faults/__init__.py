"""Decides what becomes of a record that cannot pass: dead letters, stops, and time limits of user code."""
