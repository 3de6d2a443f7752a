"""Redrives: which dead letters go back, the ledger of those that have, and the result."""
