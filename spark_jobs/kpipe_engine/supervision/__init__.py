"""Runs workers as Spark tasks, in processes of their own, and starts the next one when one has died."""
