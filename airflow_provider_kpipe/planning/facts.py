"""All known facts of the partitions of a group, asked of the cluster."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from airflow_provider_kpipe.contract.kafka_names import progress_group_of, published_group_of
from airflow_provider_kpipe.contract.progress.standing import Facts, Stored, completed_in_pieces
from airflow_provider_kpipe.kafka.positions import Positions, Topic


def facts_of(
    positions: Positions, group: str, topic: Topic, partitions: Collection[int] | None = None
) -> dict[int, Facts]:
    """Read the group's offsets, the last commits of checkpoints, and what runs have stored."""
    asked = topic.partitions if partitions is None else partitions
    # A checkpoint commits both groups at once. If one comes between these two reads, the group has its mark, which says
    # all. In the other order, it would look like a group that was put back since.
    published = positions.group_offsets(published_group_of(group), topic.name, asked)
    committed = positions.group_offsets(group, topic.name, asked)
    stored = positions.stored(progress_group_of(group), topic.name, asked)
    return {
        each: Facts(
            topic.id,
            committed[each].held if each in committed else None,
            published[each].held if each in published else None,
            _with_pieces(positions, group, topic, each, stored[each]) if each in stored else None,
        )
        for each in asked
    }


def _with_pieces(positions: Positions, group: str, topic: Topic, partition: int, stored: Stored) -> Stored:
    """Add the spans that the pieces of the run that stored last, or of a run that it took over from, completed."""
    progress = stored.progress
    groups = [progress_group_of(group, slot) for slot in range(1, progress.at_work.count)]
    held = [positions.stored(each, topic.name, [partition]).get(partition) for each in groups]
    found = [(each.offset, each.progress) for each in held if each is not None]
    return replace(stored, pieces=tuple(completed_in_pieces(topic.id, progress.origin, found)))
