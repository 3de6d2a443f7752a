"""Seeds that have found something. What they find is mended, and stays so."""

from __future__ import annotations

SEEDS: dict[int, str] = {}
"""With what was wrong."""
