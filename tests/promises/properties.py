"""The promises that schedules are checked against, by the names under which docs/guarantees.md gives them."""

from __future__ import annotations

from dataclasses import dataclass


class Anomaly(str):
    """A sentence that says how a promise was broken, which one it is, and for people to read."""

    __slots__ = ("promise",)
    promise: Property

    @classmethod
    def of(cls, promise: Property, said: str) -> Anomaly:
        anomaly = cls(said)
        anomaly.promise = promise
        return anomaly


@dataclass(frozen=True, slots=True)
class Property:
    """A promise, and what it says."""

    name: str
    title: str
    sentence: str

    def broken(self, said: str) -> Anomaly:
        return Anomaly.of(self, said)


LOST = Property(
    "I1",
    "Nothing lost",
    "Each record that is committed to the source comes out, becomes a dead letter or is filtered by its segments, "
    "in the runs that follow each other from where the group was put.",
)
DOUBLED = Property(
    "I2",
    "Nothing doubled",
    "No run handles a record twice or by half, and of the runs that follow each other from where the group was put, "
    "one alone handles it.",
)
ORDER = Property(
    "I3",
    "Order where it is promised",
    "What comes of the records of one partition is written in their order, by each run and over runs that follow each "
    "other, unless the pipeline relaxes it.",
)
ABORTED = Property(
    "I4",
    "Aborted records are never read",
    "Nothing comes of a record whose transaction was aborted.",
)
GROUP = Property(
    "I5",
    "The public group passes over nothing",
    "The group never stands behind a record that nobody has handled, never goes back within its origin, and nobody "
    "but a checkpoint that is published moves it.",
)
COMPLETE = Property(
    "I6",
    "What is complete is handled",
    "Where a checkpoint says that a partition is complete, each record of its range is handled.",
)
COUNTS = Property(
    "I7",
    "Counts add up",
    "A checkpoint counts the records of its run, and of runs before it of which no checkpoint has told, each once.",
)
LETTERS = Property(
    "I8",
    "Dead letters belong to their source",
    "A dead letter holds its record and says where it came from, and each record of one goes back once, however many "
    "redrives there are.",
)
DRAINED = Property(
    "I9",
    "Everything comes to an end",
    "Once nobody disturbs any more, a few runs read all that is there, and no transaction of a worker that is dead "
    "holds a reader back behind a checkpoint.",
)
SAME_BYTES = Property(
    "I10",
    "The same seed gives the same bytes",
    "A schedule of the simulation is its seed: replayed in another process, each call comes at the same place.",
)
PLANNED = Property(
    "I11",
    "A run keeps to its plan",
    "A run handles no record outside of its ranges, and makes of a record what its segments make of it.",
)
REFUSED = Property(
    "I12",
    "Nobody is refused without a reason",
    "A plan, an attempt or a checkpoint is refused only where somebody has moved the group or the topic, and ends in "
    "no error that nobody has foreseen.",
)

PROPERTIES = (
    LOST,
    DOUBLED,
    ORDER,
    ABORTED,
    GROUP,
    COMPLETE,
    COUNTS,
    LETTERS,
    DRAINED,
    SAME_BYTES,
    PLANNED,
    REFUSED,
)
