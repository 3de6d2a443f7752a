"""Dead letters, and their way into headers and envelopes, and back, in every dialect."""
