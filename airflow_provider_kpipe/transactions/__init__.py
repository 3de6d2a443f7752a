"""Transactions of kpipe's own: numbers, offsets, and those that killed jobs have left open."""
