"""A range ends where its plan says, whatever lies there: records, markers, or what an aborted transaction left."""

from __future__ import annotations

import json

import pytest

from airflow_provider_kpipe.contract.offsets.limits import Explicit
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench
from tests.kit.topics import fill_in_transactions, numbered, read_all


@pytest.mark.parametrize(
    ("end", "read"),
    [(3, [0, 1, 2]), (4, [0, 1, 2, 3]), (5, [0, 1, 2, 3]), (6, [0, 1, 2, 3, 4]), (7, [0, 1, 2, 3, 4, 5])],
    ids=["before the last", "at a marker", "behind it", "behind one more", "with records at the end"],
)
def test_the_record_at_the_end_of_a_range_is_not_read(broker: SandboxBroker, end: int, read: list[int]) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    # Offsets 0 to 3, a marker, 5 to 8, and another: a hole makes the client ask for more than the range holds.
    fill_in_transactions(bench.bootstrap, bench.topic, [(numbered(4), True), (numbered(4, start=4), True)])
    (progress,) = bench.work(bench.plan(start=Explicit({0: 0}), end=Explicit({0: end})))
    assert (progress.complete, progress.next_offset, progress.counts.read) == (True, end, len(read))
    assert [json.loads(each.value or b"")["id"] for each in read_all(bench.bootstrap, bench.output)] == read
