"""Records on their way through the user's segments, one by one or several at once."""
