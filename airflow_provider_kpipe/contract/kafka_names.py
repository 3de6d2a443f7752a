"""Every name that kpipe makes on a cluster: groups, transactional ids, ledger topics and leases."""

from __future__ import annotations

import re

SUFFIX = ".kpipe"
# The group under whose name dead letters and their ledger are read outside of jobs; it stores nothing.
READER_GROUP = "kpipe.redrive.reader"
# Becoming the writer of a partition takes 20 ms, so the partitions of a topic with thousands of them share writers.
MOST_WRITERS = 64

_PUBLISHED = re.compile(r"(?P<group>.*)\.kpipe\.published")
_SEQUENCE = re.compile(r"(?P<group>.*)\.kpipe\.sequence")
_PROGRESS = re.compile(r"(?P<group>.*)\.kpipe(?:\.(?P<slot>\d+))?(?:\.details)?")


def progress_group_of(group: str, slot: int = 0) -> str:
    """Name the group that holds the stored offsets of the runs that work in `group`.

    A group has one offset for each partition, so pieces beyond the first store theirs in groups of their own.
    """
    return f"{group}{SUFFIX}.{slot}" if slot else group + SUFFIX


def details_group_of(progress_group: str) -> str:
    """Name the group for the details that do not fit beside the stored offsets of a progress group."""
    return f"{progress_group}.details"


def published_group_of(group: str) -> str:
    """Name the group that remembers the last offsets that a checkpoint committed to `group`."""
    return f"{group}{SUFFIX}.published"


def sequence_group_of(group: str) -> str:
    """Name the group whose offset is the counter for the numbers of plans and attempts."""
    return f"{group}{SUFFIX}.sequence"


def stop_group_of(group: str) -> str:
    """Name the group that holds requests to stop."""
    return f"{group}{SUFFIX}.stop"


def backfill_group_of(group: str, run_key: str) -> str:
    """Name the working group of a run that does not continue `group`."""
    return f"{group}.backfill.{run_key}"


def is_reserved(group: str) -> bool:
    """Tell whether kpipe could make this name itself, for another group."""
    return group.endswith(SUFFIX) or f"{SUFFIX}." in group or ".backfill." in group


def writer_id_of(group: str, topic: str, partition: int, slot: int = 0) -> str:
    """Name the transactional id that fences the previous writer of a partition's outputs.

    It does not depend on the number of partitions: all ids stay the same when the topic grows.
    """
    # No topic's name holds a slash, so each pair of group and topic makes an id of its own.
    writer = f"kpipe/{group}/{topic}/{partition % MOST_WRITERS}"
    return f"{writer}/{slot}" if slot else writer


def checkpoint_id_of(group: str) -> str:
    """Name the transactional id under which offsets are committed to a group."""
    return f"kpipe/{group}/checkpoint"


def sequence_id_of(group: str) -> str:
    """Name the transactional id under which a number is drawn."""
    return f"kpipe/{group}/sequence"


def redrive_group_of(dead_letter_topic: str) -> str:
    """Name the group of a dead-letter topic: transactional ids are made of it, so its redrives fence each other."""
    return f"kpipe.redrive.{dead_letter_topic}"


def ledger_of(dead_letter_topic: str) -> str:
    """Name the topic that has an entry for each redriven letter of a dead-letter topic."""
    return f"{dead_letter_topic}.redriven"


def lease_id_of(topic: str, partition: int) -> str:
    """Name the partition of a lease, for records and events."""
    return f"kafka:{topic}:{partition}"


def committer_to(group: str, topic: str, partition: int) -> str:
    """Name the transactional id under which kpipe commits an offset to one of its groups, or to a pipeline's own."""
    if found := _PROGRESS.fullmatch(group):
        return writer_id_of(found["group"], topic, partition, int(found["slot"] or 0))
    if counter := _SEQUENCE.fullmatch(group):
        return sequence_id_of(counter["group"])
    published = _PUBLISHED.fullmatch(group)
    return checkpoint_id_of(published["group"] if published else group)
