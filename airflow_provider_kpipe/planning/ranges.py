"""Frozen ranges from wishes and positions. Pure: nothing here asks a broker."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from airflow_provider_kpipe.contract.kafka_names import MOST_WRITERS
from airflow_provider_kpipe.contract.offsets.limits import (
    At,
    Committed,
    Earliest,
    Explicit,
    Latest,
    OffsetLimit,
    check_partitions,
)
from airflow_provider_kpipe.contract.offsets.metadata import METADATA_BYTES, most_spans
from airflow_provider_kpipe.contract.offsets.origin import Origin
from airflow_provider_kpipe.contract.offsets.ranges import NO_EPOCH, PartitionRange
from airflow_provider_kpipe.contract.offsets.windows import check_window
from airflow_provider_kpipe.contract.progress.standing import Facts, Standing, standing_of
from airflow_provider_kpipe.exceptions import PlanError

log = logging.getLogger(__name__)

Offsets = Mapping[int, int]

MOST_PIECES = 16
# A piece has a writer and readers of its own, which take some tens of milliseconds to start.
SHORTEST_PIECE = 20_000


@dataclass(frozen=True, slots=True)
class Wishes:
    """The part of a topic that a run should read."""

    start: OffsetLimit = field(default_factory=Committed)
    end: OffsetLimit = field(default_factory=Latest)
    partitions: tuple[int, ...] | None = None
    max_records: int | None = None
    max_records_per_partition: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_records", "max_records_per_partition"):
            cap = getattr(self, name)
            if cap is not None and (isinstance(cap, bool) or not isinstance(cap, int) or cap < 1):
                raise ValueError(f"{name}={cap!r}: a cap is a whole number from 1, or None for no cap")
        if isinstance(self.end, (Committed, Earliest)):
            raise ValueError(
                f"end={type(self.end).__name__.lower()!r}: use 'latest', a moment, or an offset per partition"
            )
        check_window(self.start, self.end)
        self._check_partitions()

    def _check_partitions(self) -> None:
        if self.partitions is not None:
            check_partitions(self.partitions)
        named = [limit.offsets for limit in (self.start, self.end) if isinstance(limit, Explicit)]
        chosen = [set(each) for each in (self.partitions, *named) if each is not None]
        if chosen and not set.intersection(*chosen):
            said = " and ".join(str(sorted(each)) for each in chosen)
            raise ValueError(f"partitions, start and end name no partition in common: they name {said}")
        if len(named) == 2:
            start, end = named
            for partition in sorted(start.keys() & end.keys()):
                if end[partition] < start[partition]:
                    raise ValueError(
                        f"partition {partition}: start {start[partition]} is after end {end[partition]}: "
                        "swap or correct them"
                    )

    @property
    def continues_group(self) -> bool:
        return isinstance(self.start, Committed)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The answers of the cluster when the plan was made.

    `at` holds the offsets of each moment wished for, `published` the offsets of the last known checkpoint.
    """

    topic: str
    earliest: Offsets
    latest: Offsets
    at: Mapping[int, Offsets] = field(default_factory=dict)
    facts: Mapping[int, Facts] = field(default_factory=dict)
    """The facts of the group, by partition."""
    published: Offsets = field(default_factory=dict)
    leader_epochs: Mapping[int, int] = field(default_factory=dict)

    def standing(self, partition: int) -> Standing:
        return standing_of(self.facts.get(partition, Facts("")))

    def committed(self, partition: int) -> int | None:
        held = self.facts[partition].held if partition in self.facts else None
        return held.offset if held else None

    @property
    def is_published(self) -> bool:
        """True if a checkpoint has committed any partition: partitions without known facts were added since."""
        return any(facts.is_published for facts in self.facts.values())


def plan_ranges(wishes: Wishes, snapshot: Snapshot, number: int = 0) -> tuple[PartitionRange, ...]:
    """Return one range per partition wished for, empty ones included, in the order of partitions.

    :param number: the plan's, which becomes the origin of a run that does not continue the group: it follows no other
    """
    partitions = _partitions(wishes, snapshot)
    standings = {partition: snapshot.standing(partition) for partition in partitions}
    starts = {partition: _start(wishes.start, partition, standings[partition], snapshot) for partition in partitions}
    ends = {partition: _end(wishes.end, partition, snapshot) for partition in partitions}
    for partition in partitions:
        _check(wishes, partition, starts, ends, snapshot)
    ends = _capped(starts, ends, snapshot, wishes)
    return tuple(
        PartitionRange(
            partition,
            starts[partition],
            ends[partition],
            snapshot.committed(partition),
            done=standings[partition].done if wishes.continues_group else (),
            origin=standings[partition].origin if wishes.continues_group else Origin(number),
            group_origin=standings[partition].origin,
            leader_epoch=snapshot.leader_epochs.get(partition, NO_EPOCH),
        )
        for partition in partitions
    )


def cut(
    ranges: Sequence[PartitionRange],
    topic_partitions: int,
    metadata_bytes: int = METADATA_BYTES,
    kept: Mapping[int, int] | None = None,
) -> tuple[PartitionRange, ...]:
    """Cut long ranges into pieces, so that several tasks share a hot partition.

    If partitions share their writers, no range is cut: there are many tasks already.

    A run that stops half-way leaves a span of completed offsets for each piece but the first. If these would no longer
    fit beside an offset, a range is cut into fewer pieces, or not at all: it closes the gaps one after another.

    :param kept: by partition, the number of spans that stay beside the offset to which the run is published
    """
    if topic_partitions > MOST_WRITERS:
        return tuple(ranges)
    longest = max(SHORTEST_PIECE, ceil(sum(map(len, ranges)) / MOST_PIECES))
    room, kept = most_spans(metadata_bytes), kept or {}
    left = {each.partition: room - max(len(each.done), kept.get(each.partition, 0)) for each in ranges}
    return tuple(_in_pieces(each, min(ceil(len(each) / longest), 1 + left[each.partition])) for each in ranges)


def _in_pieces(planned: PartitionRange, pieces: int) -> PartitionRange:
    if pieces <= 1:
        return planned
    size = ceil(len(planned) / pieces)
    return replace(planned, cuts=tuple(range(planned.start + size, planned.end, size)))


def share_fairly(wanted: Mapping[int, int], total: int) -> dict[int, int]:
    """Share `total`: each name gets an equal part of what is left, and at most what it wants."""
    shares: dict[int, int] = {}
    left = total
    for rank, (name, amount) in enumerate(sorted(wanted.items(), key=lambda each: (each[1], each[0]))):
        shares[name] = min(amount, left // (len(wanted) - rank))
        left -= shares[name]
    return shares


def _partitions(wishes: Wishes, snapshot: Snapshot) -> list[int]:
    known = set(snapshot.latest)
    named = [set(limit.offsets) for limit in (wishes.start, wishes.end) if isinstance(limit, Explicit)]
    chosen = known if wishes.partitions is None else set(wishes.partitions)
    for partition in sorted(chosen.union(*named) - known):
        raise PlanError(
            f"partition {partition} is not in topic {snapshot.topic!r}, which has {_shown(known)}: leave it out"
        )
    chosen = chosen.intersection(*named)
    return sorted(chosen)


def _start(wish: OffsetLimit, partition: int, standing: Standing, snapshot: Snapshot) -> int:
    match wish:
        case Committed(otherwise):
            return _continued(otherwise, partition, standing, snapshot)
        case At(timestamp_ms):
            return _moment(timestamp_ms, partition, snapshot)
        case Explicit(offsets):
            return offsets[partition]
        case _:
            return snapshot.earliest[partition]


def _moment(timestamp_ms: int, partition: int, snapshot: Snapshot) -> int:
    # The offsets of moments are read after the ends, and records may have come in between.
    return min(snapshot.at[timestamp_ms][partition], snapshot.latest[partition])


def _continued(otherwise: str, partition: int, standing: Standing, snapshot: Snapshot) -> int:
    """Return the group's position, or a later offset if a run stored more and its checkpoint never came."""
    if standing.follows is not None:
        log.info(
            "partition %d: resuming at %s, stored by run %s whose checkpoint never came",
            partition,
            standing.next_offset,
            standing.follows,
        )
    if standing.ignores is not None:
        log.warning(
            "partition %d: another client moved the group to %s after run %s stored its progress; the group decides",
            partition,
            snapshot.committed(partition),
            standing.ignores,
        )
    if standing.next_offset is not None:
        return standing.next_offset
    known = snapshot.published.get(partition, standing.known)
    if standing.recreated and otherwise in ("error", "earliest_at_first"):
        raise PlanError(
            f"partition {partition} of {snapshot.topic!r}: the group stands at {known} in a topic of that name that "
            "was deleted: start in the one that is there now with start='committed-or-earliest', or reset the group"
        )
    return _without_offset(otherwise, partition, snapshot, known)


def _without_offset(otherwise: str, partition: int, snapshot: Snapshot, known: int | None) -> int:
    """Return the start of a partition for which the group holds no offset; `known` is one that it held before."""
    if otherwise == "error":
        raise PlanError(
            f"partition {partition} of {snapshot.topic!r}: the group has no committed offset (it is new, or its "
            "offsets have expired): say where to start, with start='committed-or-earliest' or an offset"
        )
    if otherwise == "earliest_at_first" and known is not None:
        raise PlanError(
            f"partition {partition} of {snapshot.topic!r}: the group has no committed offset, though an earlier run "
            f"knew it at {known}: it has expired (the broker keeps the offsets of an idle group for "
            "offsets.retention.minutes, 7 days by default) or was deleted. Start over with "
            "start='committed-or-earliest', or give the group its offset back and run again"
        )
    is_added = known is None and snapshot.is_published
    return snapshot.latest[partition] if otherwise == "latest" and not is_added else snapshot.earliest[partition]


def _end(wish: OffsetLimit, partition: int, snapshot: Snapshot) -> int:
    match wish:
        case At(timestamp_ms):
            return _moment(timestamp_ms, partition, snapshot)
        case Explicit(offsets):
            return offsets[partition]
        case _:
            return snapshot.latest[partition]


def _check(wishes: Wishes, partition: int, starts: dict[int, int], ends: dict[int, int], snapshot: Snapshot) -> None:
    start, end = starts[partition], ends[partition]
    first, after_last = snapshot.earliest[partition], snapshot.latest[partition]
    where = f"partition {partition} of {snapshot.topic!r}"
    if isinstance(wishes.end, Explicit) and end > after_last:
        raise PlanError(f"{where}: the end {end} lies above the end of the log, {after_last}: lower it")
    if isinstance(wishes.start, Explicit) and start > after_last:
        raise PlanError(f"{where}: the start {start} lies above the end of the log, {after_last}: lower it")
    if isinstance(wishes.start, Explicit) and start < first:
        raise PlanError(f"{where}: the start {start} lies below the start of the log, {first}: raise it")
    if isinstance(wishes.start, Committed) and start > after_last:
        raise PlanError(
            f"{where}: the group stands at {start}, above the end of the log, {after_last}: the topic was "
            "re-created or truncated; reset the group, or start from 'earliest'"
        )
    if start > end:
        if isinstance(wishes.start, Committed):
            # The group is past the window already: nothing is left to do.
            ends[partition] = start
            return
        raise PlanError(f"{where}: start {start} is after end {end}: swap or correct them")


def _capped(starts: Offsets, ends: Offsets, snapshot: Snapshot, wishes: Wishes) -> dict[int, int]:
    """Return the ends under the caps. Only offsets that the log still holds count towards a partition's share."""
    readable = {each: min(max(start, snapshot.earliest[each]), ends[each]) for each, start in starts.items()}
    lengths = {each: ends[each] - start for each, start in readable.items()}
    if wishes.max_records_per_partition is not None:
        lengths = {partition: min(length, wishes.max_records_per_partition) for partition, length in lengths.items()}
    if wishes.max_records is not None:
        lengths = share_fairly(lengths, wishes.max_records)
    return {each: start + lengths[each] for each, start in readable.items()}


def _shown(partitions: Collection[int]) -> str:
    return f"partitions 0 to {max(partitions)}" if partitions else "no partition"
