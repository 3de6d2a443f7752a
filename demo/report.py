"""The demo's numbers: makes a table of them, and compares them with the seeded ones. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from demo.orders import DEAD, ENRICHED, KINDS, Kind, PartitionSeed

_KIND_NAMES: Mapping[Kind, str] = {
    "broken_json": "broken JSON",
    "missing_field": "a missing field",
    "null_value": "no value",
}
_HEAD = ("partition", "range", "written", "dead-lettered", f"in {ENRICHED}", f"in {DEAD}", "committed", "lag")


@dataclass(frozen=True, slots=True)
class PartitionOutcome:
    """The outcome of one partition of the orders: the run's own numbers, and those found in Kafka."""

    partition: int
    start: int
    end: int
    written: int
    dead_lettered: int
    found_written: int
    """Orders of this partition in the output topic, each counted once."""
    found_dead: Mapping[Kind, int]
    """The same for the dead-letter topic, by the kind of fault."""
    committed: int | None
    log_end: int

    @property
    def lag(self) -> int:
        return self.log_end - (self.committed or 0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of the whole run."""

    state: str
    partitions: tuple[PartitionOutcome, ...]
    repeated: int
    """The number of repeated records in the output and the dead-letter topic."""


def table(outcome: Outcome) -> str:
    """Format a row per partition, and their sum."""
    rows = [_row(each) for each in outcome.partitions]
    cells = [list(_HEAD), *rows, _sums(outcome.partitions)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEAD))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)


def differences(seeds: Sequence[PartitionSeed], outcome: Outcome) -> list[str]:
    """Describe every number that differs from the seeded one; return none if all are equal."""
    found = [] if outcome.state == "success" else [f"the DAG run ended as {outcome.state!r} instead of 'success'"]
    if outcome.repeated:
        found.append(f"{outcome.repeated:,} records were written more than once")
    outcomes = {each.partition: each for each in outcome.partitions}
    for seed in seeds:
        each = outcomes.get(seed.partition)
        if each is None:
            found.append(f"partition {seed.partition}: nothing is known of its {seed.records:,} records")
            continue
        found += [
            f"partition {seed.partition}: {name} {_shown(actual)} instead of {_shown(expected)}"
            for name, actual, expected in _compared(seed, each)
            if actual != expected
        ]
    return found


def verdict(seeds: Sequence[PartitionSeed], outcome: Outcome) -> str:
    """Report on the numbers that differ from the seeded ones, if any, for the end of the demo."""
    wrong = differences(seeds, outcome)
    if wrong:
        return "\n".join(["NOT as seeded:", *(f"  {line}" for line in wrong)])
    good = sum(each.good for each in seeds)
    poison = sum(each.poison for each in seeds)
    kinds = ", ".join(f"{sum(getattr(each, kind) for each in seeds):,} with {_KIND_NAMES[kind]}" for kind in _poison())
    return (
        f"Every number is as seeded: {good:,} orders written, each exactly once; {poison:,} in the dead letters "
        f"({kinds}); every offset committed, no lag."
    )


def _compared(seed: PartitionSeed, each: PartitionOutcome) -> Iterator[tuple[str, int | None, int]]:
    yield "offsets planned", each.end - each.start, seed.records
    yield "written", each.written, seed.good
    yield "dead-lettered", each.dead_lettered, seed.poison
    yield f"orders in {ENRICHED}", each.found_written, seed.good
    for kind in _poison():
        yield f"orders with {_KIND_NAMES[kind]} in {DEAD}", each.found_dead.get(kind, 0), getattr(seed, kind)
    yield "committed", each.committed, each.end
    yield "lag", each.lag, 0


def _poison() -> Iterable[Kind]:
    return (kind for kind in KINDS if kind != "good")


def _row(each: PartitionOutcome) -> list[str]:
    numbers = (each.written, each.dead_lettered, each.found_written, sum(each.found_dead.values()))
    return [
        str(each.partition),
        f"[{each.start:,}; {each.end:,})",
        *map(_shown, numbers),
        _shown(each.committed),
        _shown(each.lag),
    ]


def _sums(partitions: Sequence[PartitionOutcome]) -> list[str]:
    return [
        "all",
        _shown(sum(each.end - each.start for each in partitions)),
        _shown(sum(each.written for each in partitions)),
        _shown(sum(each.dead_lettered for each in partitions)),
        _shown(sum(each.found_written for each in partitions)),
        _shown(sum(sum(each.found_dead.values()) for each in partitions)),
        _shown(sum(each.committed or 0 for each in partitions)),
        _shown(sum(each.lag for each in partitions)),
    ]


def _shown(number: int | None) -> str:
    return "none" if number is None else f"{number:,}"
