from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_kpipe.contract.offsets.origin import Origin
from airflow_provider_kpipe.contract.progress.lease import Lease
from airflow_provider_kpipe.contract.progress.open_writers import slots_of, writers_left_open
from airflow_provider_kpipe.contract.progress.progress import Counts, Pieces, StoredProgress
from airflow_provider_kpipe.contract.progress.standing import Stored
from tests.kit.plans import plan_of

PLAN = replace(plan_of(), number=7)


def stored(number: int = 5, offset: int = 10, **more: Any) -> Stored:
    """Of a range up to 40."""
    lease = Lease(number, number + 1, 0)
    return Stored(
        offset, StoredProgress(f"run-{number}", number, "abc", Origin(1), 0, 40, Counts(), lease=lease, **more)
    )


@pytest.mark.parametrize(
    ("found", "is_open"),
    [
        (stored(), True),
        (stored(offset=0), True),
        (stored(number=7), True),
        (stored(offset=40), False),
        (stored(ended="stopped"), False),
        (stored(ended="yielded"), False),
        (stored(number=8), False),
    ],
    ids=["half-way", "claimed", "own", "at its end", "stopped", "yielded", "newer"],
)
def test_a_partition(found: Stored, is_open: bool) -> None:
    assert writers_left_open(PLAN, {0: {3: found}}, {}) == (["kpipe/orders/orders/3"] if is_open else [])


def test_a_writer_that_a_newer_run_has_for_another_partition_is_left_to_it() -> None:
    held = {0: {1: stored(), 2: stored(), 65: stored(number=8)}}
    assert writers_left_open(PLAN, held, {}) == ["kpipe/orders/orders/2"]
    assert writers_left_open(PLAN, {0: {1: stored(), 65: stored()}}, {}) == ["kpipe/orders/orders/1"]


def test_an_ended_worker_may_have_left_the_store_of_its_lease_open() -> None:
    """A worker that has ended over its lease: what was stored before it says nothing of it."""
    held = {0: {1: stored(offset=40), 66: stored(number=8)}, 1: {}}
    assert writers_left_open(PLAN, held, {0: [1, 2], 1: [1]}) == ["kpipe/orders/orders/1", "kpipe/orders/orders/1/1"]


def test_pieces_of_the_run_that_has_the_partition() -> None:
    first = {1: stored(offset=40, pieces=3)}
    assert slots_of(first) == {1: [1], 2: [1]}
    # The second piece has not begun: whoever worked on it before was fenced.
    held = {0: first, 1: {1: stored(number=4)}, 2: {1: stored()}}
    assert writers_left_open(PLAN, held, {}) == ["kpipe/orders/orders/1/2"]


def test_pieces_of_the_run_before_until_they_are_settled() -> None:
    first = {1: stored(offset=40, pieces=1, unsettled=Pieces(4, 3))}
    assert slots_of(first) == {1: [1], 2: [1]}
    held = {0: first, 1: {1: stored(number=4)}, 2: {1: stored(number=4, offset=40)}}
    assert writers_left_open(PLAN, held, {}) == ["kpipe/orders/orders/1/1"]


def test_pieces_of_a_partition_that_a_newer_run_has_taken_on_are_fenced_by_it() -> None:
    first = {1: stored(number=8, pieces=1, unsettled=Pieces(4, 2))}
    assert writers_left_open(PLAN, {0: first, 1: {1: stored(number=4)}}, {}) == []
