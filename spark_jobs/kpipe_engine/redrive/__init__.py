"""Redrive of dead letters, each once."""
