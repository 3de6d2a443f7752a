"""Dead letters, and their conversion to headers and envelopes and back, in every dialect."""
