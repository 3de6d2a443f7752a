"""plan, run, checkpoint: thin operators that parse, call and record."""
