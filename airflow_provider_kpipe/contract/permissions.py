"""What to say where a cluster does not let the connection's user do something."""

from __future__ import annotations

PAGE = "docs/operations/permissions.md"
REMEDY = f"see what it has to be allowed in {PAGE}, then run again"


def forbidden(kind: str, name: str, said: str) -> str:
    """Say that a `topic`, a `group` or a `transactional id` may not be used, and what to do about it."""
    return f"the connection's user may not use the {kind} {name!r} ({said}): {REMEDY}"
