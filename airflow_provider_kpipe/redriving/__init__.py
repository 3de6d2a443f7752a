"""Redrives: frozen, previewed and checked, with the ledger's topic."""
