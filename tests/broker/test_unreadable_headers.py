"""A record with a header name that is no UTF-8: the client cannot read it, and would crash when asked twice."""

from __future__ import annotations

import json

import pytest

from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench
from tests.kit.redrives import dry_run, fixed, redrive
from tests.kit.strange_headers import write_header_name
from tests.kit.topics import fill, numbered, read_all

SEGMENTS = {
    "copy": [],
    "segment": ["orders_kit:untouched"],
    "segment that looks": ["faulty_kit:looks_at_headers"],
    "batch": ["batch_kit:untouched"],
}


def make(broker: SandboxBroker, segments: list[str], on_fault: str | None) -> Bench:
    """Five records, of which the third is strange."""
    bench = Bench.make(broker.bootstrap_servers, segments=segments, on_fault=on_fault)
    fill(bench.bootstrap, bench.topic, numbered(2))
    write_header_name(bench.bootstrap, bench.topic, b'{"id": 2}', b"\xff\xfe")
    fill(bench.bootstrap, bench.topic, numbered(2, start=3))
    return bench


def ids(bench: Bench) -> list[int]:
    return [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, bench.output)]


@pytest.mark.parametrize("segments", SEGMENTS.values(), ids=SEGMENTS)
def test_the_partition_stops_in_front_of_it_and_names_it(broker: SandboxBroker, segments: list[str]) -> None:
    bench = make(broker, segments, None)
    (progress,) = bench.work(bench.plan())
    assert (progress.state, progress.next_offset) == ("stopped", 2)
    assert "offset 2: source" in (progress.reason or "")
    assert "'utf-8' codec can't decode byte 0xff" in (progress.reason or "")
    assert "pass over it with on_fault='skip'" in (progress.reason or "")
    assert ids(bench) == [0, 1]
    assert read_all(bench.bootstrap, bench.dead) == []


def test_a_redrive_passes_over_it_and_its_dry_run_says_so(broker: SandboxBroker) -> None:
    """Behind so many others that Python has compiled the loop for what it usually sees."""
    bench = Bench.make(broker.bootstrap_servers, segments=["faulty_kit:odd_ones_fail"])
    fill(bench.bootstrap, bench.topic, numbered(200))
    bench.work(bench.plan())
    write_header_name(bench.bootstrap, bench.dead, b'{"id": 2}', b"\xff\xfe")

    outcomes = dry_run(fixed(bench)).outcomes

    assert {name: count for name, count in outcomes.items() if count} == {"redriven": 100, "unreadable": 1}
    assert redrive(fixed(bench)).named == {"kpipe:redriven": 100, "kpipe:unreadable": 1}


@pytest.mark.parametrize("segments", SEGMENTS.values(), ids=SEGMENTS)
def test_it_can_be_skipped(broker: SandboxBroker, segments: list[str]) -> None:
    bench = make(broker, segments, "skip")
    (progress,) = bench.work(bench.plan())
    assert progress.complete
    assert (progress.counts.read, progress.counts.written, progress.counts.skipped) == (5, 4, 1)
    assert ids(bench) == [0, 1, 3, 4]
