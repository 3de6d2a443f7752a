"""What the checker says: each kind of anomaly by one name, with its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

KINDS: Mapping[str, str] = {
    "lost": "a record that had to be handled was not",
    "doubled": "a record was handled more than once in exactly once",
    "reordered": "records of one partition came out in another order",
    "aborted_read": "a record of an aborted transaction was handled",
    "letter_mismatch": "a dead letter is not the record that it names",
    "wrong_fate": "a record became what it must not, such as a filtered one that came out",
    "altered": "an output has another value or other headers than its record",
    "no_source": "an output or a dead letter is of no record that was produced",
    "no_run": "an output or a dead letter is of a run that was never planned, or of a record that is not in its plan",
    "committed_beyond_stored": "a group was committed beyond everything that was stored",
    "committed_backwards": "a group went back, or vanished, and nobody has put it there",
    "counts": "what a checkpoint counts does not add up",
    "told_untrue": "a checkpoint tells of an offset at which its group has never stood",
    "incomplete_under_green": "a checkpoint succeeded, and a partition was not complete",
    "redriven_twice": "a record was redriven more than once",
    "held_up": "readers were held up by an open transaction for too long after a failed run",
    "not_drained": "in the end, a group is not behind the last record",
    "unreadable": "what lies in the topics is not all that was written there, so that less can be said",
}
MOST_EXAMPLES = 10


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One thing that is wrong, however many records it concerns."""

    kind: str
    pipeline: str
    said: str
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"{self.kind!r} is no kind of anomaly: use one of {', '.join(KINDS)}")


@dataclass(slots=True)
class Gathered:
    """Anomalies of one kind that say the same of many records: counted, with the first ones as examples."""

    found: dict[tuple[str, str, str], tuple[int, list[Any]]] = field(default_factory=dict)

    def add(self, kind: str, pipeline: str, said: str, example: Any) -> None:
        count, examples = self.found.get((kind, pipeline, said), (0, []))
        if len(examples) < MOST_EXAMPLES:
            examples.append(example)
        self.found[kind, pipeline, said] = count + 1, examples

    def __iter__(self) -> Iterator[Anomaly]:
        for (kind, pipeline, said), (count, examples) in self.found.items():
            yield Anomaly(kind, pipeline, said, {"records": count, "examples": examples})


def by_kind(anomalies: Iterable[Anomaly]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in anomalies:
        found[each.kind] = found.get(each.kind, 0) + 1
    return found
