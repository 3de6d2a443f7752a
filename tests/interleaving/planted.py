"""Faults to plant in the product: each takes out something that keeps a record from being lost or doubled."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from airflow_provider_kpipe.contract import publishing, standing
from airflow_provider_kpipe.contract.origin import Origin
from airflow_provider_kpipe.contract.progress import Counts
from airflow_provider_kpipe.kafka import committer, facts
from kpipe_engine import ownership
from kpipe_engine.lane import Lane
from kpipe_engine.recovery import Recovery
from kpipe_engine.redrive_ledger import Ledger

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
    patch.setattr(Lane, "skips", property(lambda _: ()))


def nobody_looks_after_a_failure(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Recovery, "go_back", lambda self: self._source.forget())


def counts_of_a_run_before_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(standing, "_inherited", lambda *_: Counts())


def what_is_redriven_is_not_written_down(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "enter", lambda *_: None)


PLANTED: Mapping[Plant, int] = {
    a_reset_is_not_noticed: 9006,
    pieces_of_a_run_before_do_not_count: 9008,
    a_checkpoint_does_not_look_where_the_group_is: 9006,
    a_checkpoint_commits_the_end_of_its_plan: 9008,
    checkpoints_do_not_fence_each_other: 9008,
    spans_that_are_done_are_read: 9013,
    nobody_looks_after_a_failure: 9000,
    counts_of_a_run_before_are_forgotten: 9002,
    what_is_redriven_is_not_written_down: 9008,
}
"""Each with a seed whose schedule notices it, or one of those that follow."""
