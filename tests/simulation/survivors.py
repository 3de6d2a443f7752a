"""Why the simulation alone does not notice some mutations: by their names."""

from __future__ import annotations

SURVIVORS: dict[str, str] = {}
