"""Benchmarks of kpipe and its peers, side by side in one run."""
