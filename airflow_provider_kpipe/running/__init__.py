"""Run of a plan's job: attempts, its progress, and requests to stop."""
