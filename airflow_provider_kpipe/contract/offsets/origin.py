"""The place from which a partition's runs follow each other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """The offset at which somebody has put the group, and a number that tells that occasion from earlier ones.

    Every run that goes on from there, and every checkpoint of such a run, carries it. Progress with another origin
    belongs to a time before the group was reset, deleted or forgotten, and counts no more.
    """

    era: int
    base: int | None = None
    """None where the group held no offset."""


NO_ORIGIN = Origin(0)
