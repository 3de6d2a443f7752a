"""Freezes, previews and checks a redrive, and keeps the ledger's topic."""
