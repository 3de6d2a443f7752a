"""A source topic that is compacted: most of a range is gone, and what is left is what a run writes."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from airflow_provider_kpipe.contract.offsets.limits import Explicit
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.topics import Seen, Sent, change_topic, committed, fill, fill_in_transactions, held, read_all

ROUNDS, ABORTED = 10, 4
AGAIN_AND_AGAIN = ("a", "b", "c", "d")
ROUND = len(AGAIN_AND_AGAIN) + 1
# The broker goes by the times of records: each round has a segment of its own, however fast it is written.
APART_MS = 60_000
QUICKLY = {"segment.ms": "200", "max.compaction.lag.ms": "300", "min.cleanable.dirty.ratio": "0.001"}


@pytest.fixture(scope="module")
def eager_broker() -> Iterator[SandboxBroker]:
    with SandboxBroker(overrides={"log.cleaner.backoff.ms": "100"}) as running:
        yield running


@pytest.fixture(params=["plain", "in transactions"])
def bench(eager_broker: SandboxBroker, request: pytest.FixtureRequest) -> Bench:
    """All records are there at first: nobody compacts yet."""
    bench = Bench.make(eager_broker.bootstrap_servers, topic_config=QUICKLY)
    if request.param == "plain":
        for records in rounds():
            fill(bench.bootstrap, bench.topic, records)
    else:
        batches = [(records, number != ABORTED) for number, records in enumerate(rounds())]
        fill_in_transactions(bench.bootstrap, bench.topic, batches)
    return bench


def rounds() -> list[list[Sent]]:
    """In each of them a key that comes once, and four that come in all of them."""
    begins = int(time.time() * 1000)
    return [
        [
            Sent(f"{key} of {number}".encode(), key.encode(), timestamp=begins + number * APART_MS)
            for key in (f"only {number}", *AGAIN_AND_AGAIN)
        ]
        for number in range(ROUNDS)
    ]


def compact(bench: Bench) -> list[Seen]:
    """Have the broker compact, and read what it has left: in all segments but the last, the newest of each key."""
    written = read_all(bench.bootstrap, bench.topic)
    earlier, last = written[:-ROUND], written[-ROUND:]
    newest = {each.key: each.offset for each in earlier}.values()
    left = [*(each for each in earlier if each.offset in newest), *last]
    assert len(left) < len(written) / 2
    change_topic(bench.bootstrap, bench.topic, {"cleanup.policy": "compact"})
    wait_for(lambda: read_all(bench.bootstrap, bench.topic) == left, "compaction")
    return left


@pytest.mark.parametrize("compacted", ["before the plan", "between plan and run"])
def test_records_left_by_compaction_are_written(bench: Bench, compacted: str) -> None:
    if compacted == "before the plan":
        left = compact(bench)
        plan = bench.plan()
    else:
        plan = bench.plan()
        left = compact(bench)
    (planned,) = plan.ranges
    assert planned.start == 0
    assert planned.end > left[-1].offset

    (progress,) = bench.work(plan)
    assert (progress.complete, progress.next_offset) == (True, planned.end)
    assert (progress.counts.read, progress.counts.written) == (len(left), len(left))
    checkpoint = bench.checkpoint(plan)
    assert checkpoint.complete
    assert checkpoint.totals == progress.counts
    assert committed(bench.bootstrap, bench.pipeline.group, bench.topic, 1) == {0: planned.end}
    assert [(each.key, each.value) for each in read_all(bench.bootstrap, bench.output)] == [
        (each.key, each.value) for each in left
    ]


def test_records_compacted_during_a_run_are_no_obstacle(bench: Bench) -> None:
    """The run is stopped after its first chunk, and goes on when the middle of its range is gone."""
    bench = dataclasses.replace(bench, pipeline=dataclasses.replace(bench.pipeline, chunk_records=2 * ROUND))
    plan = bench.plan()
    first = bench.worker(plan)
    first.open()
    first.run_chunk()
    first.close()
    before = read_all(bench.bootstrap, bench.output)
    stored = held(bench.bootstrap, plan.progress_group(), bench.topic).offset
    left = [each for each in compact(bench) if each.offset >= stored]

    (progress,) = bench.work(plan)

    assert (len(before), progress.complete) == (2 * ROUND, True)
    assert progress.counts.read == progress.counts.written == len(before) + len(left)
    assert bench.checkpoint(plan).complete
    written = read_all(bench.bootstrap, bench.output)
    assert [each.value for each in written] == [each.value for each in (*before, *left)]


@pytest.mark.parametrize("inside", ["two holes", "one hole"])
def test_a_range_may_begin_and_end_where_nothing_is_left(bench: Bench, inside: str) -> None:
    left = compact(bench)
    holes = [range(before.offset + 1, after.offset) for before, after in pairwise(left)]
    holes = [hole for hole in holes if len(hole) > 2]
    first, last = (holes[0], holes[-1]) if inside == "two holes" else (holes[0], holes[0])
    start, end = first[1], last[-1]
    wanted = [each for each in left if start <= each.offset < end]
    assert bool(wanted) is (inside == "two holes")

    plan = bench.plan(start=Explicit({0: start}), end=Explicit({0: end}))
    (progress,) = bench.work(plan)
    assert (progress.complete, progress.next_offset) == (True, end)
    assert (progress.counts.read, progress.counts.written) == (len(wanted), len(wanted))
    assert bench.checkpoint(plan).complete
    assert committed(bench.bootstrap, plan.group, bench.topic, 1) == {0: end}
    assert [each.value for each in read_all(bench.bootstrap, bench.output)] == [each.value for each in wanted]
