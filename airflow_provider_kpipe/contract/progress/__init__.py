"""The progress of runs and checkpoints, and every decision that follows from it."""
