"""How much a torture has to have done before its silence means anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

LEAST_IN_TEN_MINUTES: Mapping[str, float] = {"faults with an effect": 100, "runs": 30, "redrives": 2, "judged": 5}
"""About half of the least that has been seen on two cores that were busy with something else, too."""


def shortfalls(figures: Mapping[str, Any], minutes: float) -> Iterator[str]:
    """Name each thing of which too little was done in so many minutes."""
    runs = figures["runs"]
    done = {
        "faults with an effect": figures["faults with an effect"],
        "runs": sum(runs.values()),
        "redrives": runs.get("redrive", 0),
        "judged": figures["failed runs after which readers were watched"]["judged"],
    }
    for name, least in LEAST_IN_TEN_MINUTES.items():
        expected = int(least * minutes / 10)
        if done[name] < expected:
            yield f"{done[name]} {name}, and at least {expected} come in {minutes:g} minutes: is the machine busy?"
