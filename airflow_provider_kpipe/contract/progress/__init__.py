"""How far runs and checkpoints have come, and every decision that follows from that."""
