"""Faults: errors that records could not pass, their stack traces and their causes."""
