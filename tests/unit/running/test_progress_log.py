from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from itertools import chain, repeat
from types import TracebackType
from typing import Any, Self

import pytest

from airflow_provider_kpipe.contract.faults.causes import Cause
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.progress import Counts, PartitionProgress
from airflow_provider_kpipe.exceptions import KafkaUnavailableError
from airflow_provider_kpipe.running import progress_log
from airflow_provider_kpipe.running.progress_log import MOST_LINES, MOST_SHOWN, ProgressLog, Show, table

Look = list[PartitionProgress] | Exception
Watch = Callable[..., list[str]]


def looks_at(plan: Plan, *offsets: int, dead: int = 0) -> list[PartitionProgress]:
    return [
        PartitionProgress(each, next_offset, Counts(read=5, dead_lettered=dead))
        for each, next_offset in zip(plan.ranges, offsets, strict=True)
    ]


def wide(plan: Plan, partitions: int) -> Plan:
    return replace(plan, ranges=tuple(PartitionRange(each, 0, 10, None) for each in range(partitions)))


class FakePositions:
    """Gives one look after the other; `exhausted` is set when it is asked once more than it has looks."""

    looks: Iterator[Look]
    exhausted: threading.Event

    def __init__(self, settings: Any, *, answer_seconds: float) -> None:
        self.last: list[PartitionProgress] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def progress(self, plan: Plan) -> list[PartitionProgress]:
        look = next(self.looks, None)
        if look is None:
            self.exhausted.set()
            return self.last
        if isinstance(look, Exception):
            raise look
        self.last = look
        return look


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Watch:
    """Runs a progress log over these looks, and gives what it logged."""

    def run(plan: Plan, *looks: Look, interval_seconds: float = 0.001, show: Show = list) -> list[str]:
        monkeypatch.setattr(progress_log, "Positions", FakePositions)
        monkeypatch.setattr(FakePositions, "looks", iter(looks), raising=False)
        monkeypatch.setattr(FakePositions, "exhausted", threading.Event(), raising=False)
        watch = ProgressLog({}, plan, interval_seconds=interval_seconds, show=show)
        with caplog.at_level(logging.INFO), watch:
            assert FakePositions.exhausted.wait(60)
        return [record.getMessage() for record in caplog.records]

    return run


def shape(lines: Sequence[str]) -> list[str]:
    """Lines without their rates, which depend on the clock."""
    return [", ".join(part for part in line.split(", ") if not part.endswith("records/s")) for line in lines]


def test_the_first_look_waits_for_nothing(plan: Plan, watch: Watch) -> None:
    assert watch(plan, interval_seconds=3_600) == []


def test_partitions_moved_since_the_last_look_are_logged(plan: Plan, watch: Watch) -> None:
    looks = [looks_at(plan, 0, 1_000, 5), looks_at(plan, 50, 1_000, 5, dead=2), looks_at(plan, 100, 1_300, 5)]
    assert shape(watch(plan, *looks)) == [
        "partition 0:  50 %, 2 dead letters",
        "all:  12 %, 1 of 3 partitions complete",
        "partition 0: 100 %, 0 dead letters",
        "partition 1: 100 %, 0 dead letters",
        "all: 100 %, 3 of 3 partitions complete",
    ]


def test_when_each_partition_was_first_seen_where_it_stands_is_kept(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = [datetime(2026, 1, 31, 12, minute, tzinfo=timezone.utc) for minute in range(3)]
    looks = [looks_at(plan, 0, 1_000, 5), looks_at(plan, 50, 1_000, 5), looks_at(plan, 50, 1_300, 5)]
    monkeypatch.setattr(progress_log, "Positions", FakePositions)
    monkeypatch.setattr(FakePositions, "looks", iter(looks), raising=False)
    monkeypatch.setattr(FakePositions, "exhausted", threading.Event(), raising=False)
    clock = chain(moments, repeat(moments[-1]))
    monkeypatch.setattr(progress_log, "datetime", type("Clock", (), {"now": staticmethod(lambda zone: next(clock))}))
    with ProgressLog({}, plan, interval_seconds=0.001, show=list) as log:
        assert FakePositions.exhausted.wait(60)
    assert log.moved_at == {0: moments[1], 1: moments[2], 2: moments[0]}


def test_a_rate_is_given_for_every_partition_that_moved(plan: Plan, watch: Watch) -> None:
    lines = watch(plan, looks_at(plan, 0, 1_000, 5), looks_at(plan, 50, 1_100, 5))
    assert len(lines) == 3
    assert all(line.count(" records/s, ") == 1 for line in lines)


def test_nothing_is_logged_while_nothing_moves(plan: Plan, watch: Watch) -> None:
    assert watch(plan, *[looks_at(plan, 0, 1_000, 5)] * 3) == []


def test_a_retry_starts_from_what_its_predecessor_stored(plan: Plan, watch: Watch) -> None:
    assert watch(plan, looks_at(plan, 50, 1_100, 5), looks_at(plan, 50, 1_100, 5)) == []


def test_a_cluster_that_does_not_answer_is_logged_and_asked_again(plan: Plan, watch: Watch) -> None:
    looks = [looks_at(plan, 0, 1_000, 5), KafkaUnavailableError("no answer"), looks_at(plan, 50, 1_000, 5)]
    assert shape(watch(plan, *looks)) == [
        "progress cannot be read now: no answer",
        "partition 0:  50 %, 0 dead letters",
        "all:  12 %, 1 of 3 partitions complete",
    ]


def test_hundreds_of_partitions_do_not_fill_the_log(plan: Plan, watch: Watch) -> None:
    many = wide(plan, 300)
    lines = watch(many, looks_at(many, *[0] * 300), looks_at(many, *[10] * 300))
    assert len(lines) == MOST_LINES + 1
    assert lines[-1].endswith("300 of 300 partitions complete")


def test_the_table_shows_every_partition_with_its_state_in_aligned_columns(plan: Plan) -> None:
    done, stopped, empty = plan.ranges
    progress = [
        PartitionProgress(done, 100, Counts(100, 90, 4, 6, 0, 0, 0), seconds=0.05),
        PartitionProgress(stopped, 1_150, Counts(150, 150, 0, 0, 0, 0, 7), reason="fenced"),
        PartitionProgress(empty, 5, Counts(), started=False),
    ]
    lines = table(progress, "orders").split("\n")
    assert [line.split() for line in lines] == [
        ["partition", "start", "end", "stored", "state", "read", "written", "dead", "filtered", "lost", "records/s"],
        ["0", "0", "100", "100", "complete", "100", "90", "4", "6", "0", "2,000"],
        ["1", "1000", "1300", "1150", "stopped", "150", "150", "0", "0", "7", "0"],
        ["2", "5", "5", "5", "complete", "0", "0", "0", "0", "0", "0"],
    ]
    assert len({len(line) for line in lines}) == 1


def test_the_table_ends_with_why_records_could_not_pass_in_all_partitions(plan: Plan) -> None:
    causes = [(Cause("ValueError", "orders:parse", 2, 0, 17),), (Cause("ValueError", "orders:parse", 3, 1, 9),)]
    progress = [
        PartitionProgress(each, 10, Counts(causes=found)) for each, found in zip(plan.ranges, causes, strict=False)
    ]
    *_, last = table(progress, "orders").split("\n")
    assert last == "5 x ValueError in orders:parse, first orders-0 at offset 17"


def test_a_table_of_nothing_is_its_head() -> None:
    assert table([], "orders").split()[0] == "partition"
    assert "\n" not in table([], "orders")


def test_moved_partitions_are_shown_elsewhere_too(plan: Plan, watch: Watch) -> None:
    shown: list[list[int]] = []
    looks = [looks_at(plan, *offsets, 5) for offsets in ((0, 1_000), (50, 1_000), (50, 1_000), (100, 1_300))]
    watch(plan, *looks, show=lambda progress: shown.append([each.next_offset for each in progress]))
    assert shown == [[50, 1_000, 5], [100, 1_300, 5]]


def test_a_look_from_before_the_end_is_not_shown_after_it(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Sequence[PartitionProgress]] = []
    asked = threading.Event()

    def looks() -> Iterator[Look]:
        yield looks_at(plan, 0, 1_000, 5)
        asked.set()
        # The answer comes once the job is over.
        assert log._done.wait(60)
        yield looks_at(plan, 50, 1_000, 5)

    monkeypatch.setattr(progress_log, "Positions", FakePositions)
    monkeypatch.setattr(FakePositions, "looks", looks(), raising=False)
    monkeypatch.setattr(FakePositions, "exhausted", threading.Event(), raising=False)
    log = ProgressLog({}, plan, interval_seconds=0.001, show=shown.append)
    with log:
        assert asked.wait(60)
    assert shown == []


def test_the_log_goes_on_if_progress_cannot_be_shown(plan: Plan, watch: Watch) -> None:
    def refuse(progress: Sequence[PartitionProgress]) -> None:
        raise RuntimeError("no API server")

    lines = watch(plan, *(looks_at(plan, at, 1_000, 5) for at in (0, 5, 6)), show=refuse)
    warnings = [line for line in lines if "shown" in line]
    assert warnings == ["progress cannot be shown outside this log now: no API server"] * 2
    assert sum(line.startswith("all:") for line in lines) == 2


def test_hundreds_of_partitions_are_shown_at_the_end_only(plan: Plan, watch: Watch) -> None:
    shown: list[int] = []
    for count in (MOST_SHOWN, MOST_SHOWN + 1):
        many = wide(plan, count)
        looks = [looks_at(many, *[at] * count) for at in (0, 5)]
        watch(many, *looks, show=lambda progress: shown.append(len(progress)))
    assert shown == [MOST_SHOWN]


@pytest.mark.parametrize("taken", ["over", "away"])
def test_records_of_another_run_are_no_rate_of_this_one(plan: Plan, watch: Watch, taken: str) -> None:
    first, *others = plan.ranges
    rest = [PartitionProgress.not_started(each) for each in others]
    untouched, read = PartitionProgress.not_started(first), PartitionProgress(first, 60, Counts(read=60))
    now = PartitionProgress(first, 60, Counts()) if taken == "over" else PartitionProgress.revoked(first, "newer")
    lines = watch(plan, [untouched if taken == "over" else read, *rest], [now, *rest])
    assert [line.split(", ")[1] for line in lines] == ["0 records/s"] * 2
