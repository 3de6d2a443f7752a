"""A pipeline as a user declares it, and the checks of each field."""
