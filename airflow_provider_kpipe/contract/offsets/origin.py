"""The offset from which the runs of a partition follow each other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """The offset to which a user or a tool has set the group, and a number that tells this occasion from earlier ones.

    Each run that resumes from there, and each checkpoint of such a run, carries the origin. Progress with another
    origin belongs to a time before the group was reset, deleted or forgotten, and no longer counts.
    """

    era: int
    base: int | None = None
    """None if the group held no offset."""


NO_ORIGIN = Origin(0)
