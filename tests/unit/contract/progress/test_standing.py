from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_kpipe.contract.offsets.origin import Origin
from airflow_provider_kpipe.contract.offsets.ranges import NO_EPOCH, PartitionRange
from airflow_provider_kpipe.contract.progress.checkpoint import CommitMark
from airflow_provider_kpipe.contract.progress.lease import Lease
from airflow_provider_kpipe.contract.progress.progress import Counts, StoredProgress
from airflow_provider_kpipe.contract.progress.standing import Facts, Held, Stored, standing_of
from tests.kit.plans import plan_of

TOPIC = "abc"
ORIGIN = Origin(3, 10)
PLAN = replace(plan_of(), run_key="run-2", number=2, topic_id=TOPIC)
RANGE = PartitionRange(0, 40, 100, 40, origin=ORIGIN)
LEASE = Lease(2, 7, 1)


def marked(offset: int, **changes: Any) -> Held:
    """Where a checkpoint has put the group."""
    return Held(offset, replace(CommitMark("run-1", 1, TOPIC, ORIGIN), **changes))


def stored(offset: int, *, pieces: Any = (), **changes: Any) -> Stored:
    """What the run before has stored."""
    progress = StoredProgress("run-1", 1, TOPIC, ORIGIN, 10, 100, Counts(read=5), lease=Lease(1, 5, 0))
    return Stored(offset, replace(progress, **changes), pieces)


def test_a_group_stands_where_a_checkpoint_has_left_it_with_what_lies_beyond() -> None:
    found = standing_of(Facts(TOPIC, marked(40, beyond=((50, 60),))))
    assert (found.next_offset, found.done, found.origin, found.follows) == (40, ((50, 60),), ORIGIN, None)


def test_stored_progress_counts_without_a_checkpoint() -> None:
    found = standing_of(Facts(TOPIC, marked(40), stored=stored(70)))
    assert (found.next_offset, found.follows, found.ignores) == (70, "run-1", None)


def test_so_does_what_its_pieces_and_those_before_it_have_done() -> None:
    found = standing_of(Facts(TOPIC, marked(40), stored=stored(50, pieces=((60, 70),), done=((50, 55), (80, 90)))))
    assert (found.next_offset, found.done) == (55, ((60, 70), (80, 90)))


@pytest.mark.parametrize(("offset", "epoch"), [(70, 7), (100, 7), (40, 5)])
def test_the_leaders_epoch_comes_with_the_offset_also_where_pieces_have_come_to_it(offset: int, epoch: int) -> None:
    """The one that is higher says of no log that it was cut; without one, nobody would ask the leader."""
    begun = replace(stored(70, pieces=((70, 100),) if offset == 100 else ()), leader_epoch=7)
    held = replace(marked(40), leader_epoch=5)
    found = standing_of(Facts(TOPIC, held, stored=None if offset == 40 else begun))
    assert (found.next_offset, found.leader_epoch) == (offset, epoch)


@pytest.mark.parametrize(("of_stored", "of_held"), [(0, 5), (5, 0), (NO_EPOCH, 5), (5, NO_EPOCH)])
def test_of_two_epochs_at_one_offset_the_later_one_counts(of_stored: int, of_held: int) -> None:
    """An older plan may have stored what came under a later leader."""
    begun, held = replace(stored(40), leader_epoch=of_stored), replace(marked(40), leader_epoch=of_held)
    assert standing_of(Facts(TOPIC, held, stored=begun)).leader_epoch == 5


def test_above_the_offset_of_the_group_pieces_may_have_gone_on_under_a_later_leader() -> None:
    begun = replace(stored(30, pieces=((70, 100),)), leader_epoch=7)
    found = standing_of(Facts(TOPIC, replace(marked(40), leader_epoch=5), stored=begun))
    assert (found.next_offset, found.highest_completed, found.leader_epoch) == (40, 99, 7)


def test_progress_from_before_a_reset_no_longer_counts() -> None:
    """Somebody leaves no mark, also where the offset stays the same."""
    facts = Facts(TOPIC, Held(40), published=marked(40), stored=stored(70))
    found = standing_of(facts)
    assert (found.next_offset, found.ignores) == (40, "run-1")
    assert found.origin == Origin(4, 40)


def test_a_run_in_a_group_that_no_checkpoint_has_come_to_is_followed() -> None:
    first = Origin(1, None)
    found = standing_of(Facts(TOPIC, stored=stored(70, origin=first)))
    assert (found.next_offset, found.origin) == (70, first)


@pytest.mark.parametrize("facts", [{}, {"stored": stored(70, topic_id="gone")}], ids=["nothing", "of another topic"])
def test_a_topic_that_was_recreated_is_another_one(facts: dict[str, Any]) -> None:
    found = standing_of(Facts(TOPIC, marked(40, topic_id="gone"), **facts))
    assert (found.next_offset, found.recreated, found.known) == (None, True, 40)
