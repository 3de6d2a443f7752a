"""Redrives: the choice of dead letters, the ledger of those that went back, and the result."""
