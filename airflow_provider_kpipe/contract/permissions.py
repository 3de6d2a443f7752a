"""The error text for a permission that the connection's user lacks on a cluster."""

from __future__ import annotations

# By its title: a user of the wheel has no file of the checkout.
PAGE = "the page 'Permissions' of kpipe's documentation"
REMEDY = f"see {PAGE} for all that it has to be allowed, then run again"


def forbidden(kind: str, name: str, said: str) -> str:
    """Return the error text for a `topic`, `group` or `transactional id` that the user may not use, with a remedy."""
    return f"the connection's user may not use the {kind} {name!r} ({said}): {REMEDY}"
