"""The names that kpipe makes on a cluster: consumer groups and transactional ids."""

from __future__ import annotations

import re

SUFFIX = ".kpipe"
# Under this name, dead letters and their ledger are read where no job does it; nothing is stored in it.
READER_GROUP = "kpipe.redrive.reader"
# Becoming the writer of a partition takes 20 ms: the partitions of a topic with thousands share some.
MOST_WRITERS = 64

_PUBLISHED = re.compile(r"(?P<group>.*)\.kpipe\.published")
_PROGRESS = re.compile(r"(?P<group>.*)\.kpipe(?:\.(?P<slot>\d+))?(?:\.details)?")


def progress_group_of(group: str, slot: int = 0) -> str:
    """Name the group that holds the stored offsets of the runs that work in `group`.

    A group has one offset for each partition: pieces beyond the first have theirs in groups of their own.
    """
    return f"{group}{SUFFIX}.{slot}" if slot else group + SUFFIX


def details_group_of(progress_group: str) -> str:
    """Name the group that holds what does not fit beside the stored offsets of a progress group."""
    return f"{progress_group}.details"


def published_group_of(group: str) -> str:
    """Name the group that remembers the last offsets which a checkpoint committed to `group`."""
    return f"{group}{SUFFIX}.published"


def sequence_group_of(group: str) -> str:
    """Name the group whose offset is the counter that plans and attempts draw their numbers from."""
    return f"{group}{SUFFIX}.sequence"


def stop_group_of(group: str) -> str:
    """Name the group that holds requests to stop."""
    return f"{group}{SUFFIX}.stop"


def backfill_group_of(group: str, run_key: str) -> str:
    """Name the group that a run works in which does not start where `group` stands."""
    return f"{group}.backfill.{run_key}"


def is_reserved(group: str) -> bool:
    """Tell a name that kpipe could make itself, for another group."""
    return group.endswith(SUFFIX) or f"{SUFFIX}." in group or ".backfill." in group


def writer_id_of(group: str, topic: str, partition: int, slot: int = 0) -> str:
    """Name the transactional id that fences whoever wrote the outputs of a partition before.

    It depends on the partition alone: a topic that grows changes nobody's id.
    """
    # A slash is in no topic's name, so what a group and a topic make together is theirs alone.
    writer = f"kpipe/{group}/{topic}/{partition % MOST_WRITERS}"
    return f"{writer}/{slot}" if slot else writer


def checkpoint_id_of(group: str) -> str:
    """Name the transactional id under which offsets are committed to a group."""
    return f"kpipe/{group}/checkpoint"


def sequence_id_of(group: str) -> str:
    """Name the transactional id under which a number is drawn."""
    return f"kpipe/{group}/sequence"


def committer_to(group: str, topic: str, partition: int) -> str:
    """Name the transactional id under which kpipe commits an offset to one of its groups, or to a pipeline's own."""
    if found := _PROGRESS.fullmatch(group):
        return writer_id_of(found["group"], topic, partition, int(found["slot"] or 0))
    published = _PUBLISHED.fullmatch(group)
    return checkpoint_id_of(published["group"] if published else group)
