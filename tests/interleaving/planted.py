"""Faults to plant in the product: each takes out something that keeps a record from being lost or doubled."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from airflow_provider_kpipe.checkpointing import committer
from airflow_provider_kpipe.contract.offsets.origin import Origin
from airflow_provider_kpipe.contract.progress import publishing, resuming
from airflow_provider_kpipe.contract.progress.lease import Lease
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.planning import facts
from kpipe_engine import wiring
from kpipe_engine.assignment import claiming as ownership
from kpipe_engine.assignment.claiming import Claims
from kpipe_engine.assignment.progress_store import Entries
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.chunk_retry import ChunkRetry
from kpipe_engine.redrive.ledger import Ledger
from kpipe_engine.writing.chunk_writer import AtLeastOnceWriter
from kpipe_engine.writing.producer_session import ProducerSession

Plant = Callable[[pytest.MonkeyPatch], None]


def a_reset_is_not_noticed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Origin, "__eq__", lambda *_: True)


def pieces_of_a_run_before_do_not_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ownership, "completed_in_pieces", lambda *_: [])
    patch.setattr(facts, "completed_in_pieces", lambda *_: [])


def a_checkpoint_does_not_look_where_the_group_is(patch: pytest.MonkeyPatch) -> None:
    for module in (committer, publishing):
        patch.setattr(module, "is_untouched", lambda *_: True)


def a_checkpoint_commits_the_end_of_its_plan(patch: pytest.MonkeyPatch) -> None:
    look = publishing._target

    def commit_the_end(plan: Any, progress: Any, *more: Any) -> Any:
        target = look(plan, progress, *more)
        return publishing.Target(max(target.offset, progress.range.end), target.mark)

    patch.setattr(publishing, "_target", commit_the_end)


def checkpoints_do_not_fence_each_other(patch: pytest.MonkeyPatch) -> None:
    numbers = itertools.count()
    patch.setattr(committer, "checkpoint_id_of", lambda group: f"kpipe/{group}/checkpoint/{next(numbers)}")


def spans_that_are_done_are_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RangeState, "skips", property(lambda _: ()))


def nobody_looks_after_a_failure(patch: pytest.MonkeyPatch) -> None:
    rewind = ChunkRetry.rewind

    def rewind_at_first(self: ChunkRetry, states: Any) -> Any:
        if self._assignment.unclaimed:
            return rewind(self, states)
        self._range_reader.forget()
        return []

    patch.setattr(ChunkRetry, "rewind", rewind_at_first)


def counts_of_a_run_before_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(resuming, "_inherited", lambda *_: Counts())


def what_is_redriven_is_not_written_down(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "enter", lambda *_: None)


def leases_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lease, "__gt__", lambda *_: False)


def pieces_of_a_run_before_are_not_fenced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(wiring, "fence_writers", lambda *_: None)


def pieces_do_not_ask_whose_the_partition_is(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Claims, "_is_claimed", lambda _, claim: claim is not None)


def nobody_waits_for_acknowledgements(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerSession, "wait", lambda _: None)


def at_least_once_stores_before_it_waits(patch: pytest.MonkeyPatch) -> None:
    store = AtLeastOnceWriter.store

    def store_first(self: AtLeastOnceWriter, entries: Entries) -> None:
        wait = self._session.wait
        patch.setattr(self._session, "wait", lambda: None)
        store(self, entries)
        wait()

    patch.setattr(AtLeastOnceWriter, "store", store_first)


def at_least_once_stores_over_a_later_run(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Claims, "lost", lambda *_: [])


PLANTED: Mapping[Plant, int] = {
    a_reset_is_not_noticed: 9000,
    pieces_of_a_run_before_do_not_count: 9006,
    a_checkpoint_does_not_look_where_the_group_is: 9018,
    a_checkpoint_commits_the_end_of_its_plan: 9002,
    checkpoints_do_not_fence_each_other: 9001,
    spans_that_are_done_are_read: 9006,
    nobody_looks_after_a_failure: 9003,
    counts_of_a_run_before_are_forgotten: 9003,
    what_is_redriven_is_not_written_down: 9000,
    leases_are_ignored: 9000,
    pieces_of_a_run_before_are_not_fenced: 9011,
    pieces_do_not_ask_whose_the_partition_is: 9005,
    nobody_waits_for_acknowledgements: 9000,
    at_least_once_stores_before_it_waits: 9000,
    at_least_once_stores_over_a_later_run: 9000,
}
"""Each with a seed whose schedule notices it, or one of those that follow."""
