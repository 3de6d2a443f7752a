"""Records that cannot pass: dead letters, stops, and time limits of user code."""
