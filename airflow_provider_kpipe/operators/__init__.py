"""The operators plan, run, checkpoint and redrive: thin, they parse, call and record."""
