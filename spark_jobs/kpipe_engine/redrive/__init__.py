"""Puts dead letters back, each once."""
