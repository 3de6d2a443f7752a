"""From a request to a frozen plan, and all that is checked before records are read."""
