"""Plans: a request becomes frozen ranges, after all checks that come before records are read."""
