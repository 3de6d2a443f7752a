"""Topics that are written without enough replicas in sync, and get them back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from gated import SEGMENT, gated, in_the_middle
from pipelines import Bench
from replicas import SecondBroker, await_replicas, create_replicated, lead
from topics import committed, fill, numbered, read_all

from airflow_provider_kpipe import KafkaDeadLetter, KafkaDestination
from airflow_provider_kpipe.contract.pipeline import Delivery
from airflow_provider_kpipe.sandbox import SandboxBroker

RECORDS = 40
BOUNDS = {"admission.STANDSTILL_SECONDS": 1.0, "delivery.ANSWER_SECONDS": 3.0, "last_words.SAY_SECONDS": 2.0}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxBroker]:
    # What counts offsets and transactions has one replica, on the first broker, which stays.
    with SandboxBroker(tmp_path_factory.mktemp("first")) as running:
        bench = Bench.make(running.bootstrap_servers)
        fill(bench.bootstrap, bench.topic, numbered(1))
        bench.work(bench.plan())
        yield running


@pytest.fixture(scope="module")
def second(first: SandboxBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxBroker]:
    with SecondBroker(tmp_path_factory.mktemp("second"), first) as running:
        yield running


def ids(bench: Bench, topic: str) -> list[int]:
    return sorted(json.loads(record.key or b"") for record in read_all(bench.bootstrap, topic))


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
@pytest.mark.parametrize("written", ["output", "dead letters"])
def test_a_run_stops_by_name_and_goes_on_when_they_are_back(
    first: SandboxBroker,
    second: SandboxBroker,
    delivery: Delivery,
    written: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = tmp_path / "gate"
    segments = [SEGMENT] if written == "output" else [SEGMENT, "faulty_kit:fails"]
    made = Bench.make(
        first.bootstrap_servers, delivery=delivery, chunk_records=10, segments=segments, max_dead_letter_ratio=None
    )
    replicated = f"{made.topic}.replicated"
    create_replicated(made.bootstrap, replicated)
    ends = {
        "output": {"destination": KafkaDestination(replicated)},
        "dead letters": {"dead_letter": KafkaDeadLetter(replicated)},
    }[written]
    bench = dataclasses.replace(made, pipeline=dataclasses.replace(made.pipeline, **ends))
    fill(bench.bootstrap, bench.topic, gated(numbered(RECORDS), 15, gate))
    plan = bench.plan()
    with in_the_middle(bench, plan, 10, gate) as working:
        second.kill()
        await_replicas(bench.bootstrap, replicated, 1)
        # The client itself goes on for as long as a transaction lasts.
        for bound, seconds in BOUNDS.items():
            monkeypatch.setattr(f"kpipe_engine.{bound}", seconds)

    (stopped,) = working.progress
    assert (stopped.state, stopped.next_offset) == ("stopped", 10)
    said = "lacks replicas in sync" if delivery == "exactly_once" else "the broker has taken nothing for 1 s"
    assert said in (stopped.reason or "")
    assert "then run again" in (stopped.reason or "")
    assert not bench.checkpoint(plan).complete
    assert committed(bench.bootstrap, plan.group, bench.topic, 1) == {0: 10}

    second.start()
    await_replicas(bench.bootstrap, replicated, 2)
    monkeypatch.undo()
    following = bench.plan("run-2")
    bench.work(following)
    assert bench.checkpoint(following).complete
    found = ids(bench, replicated)
    if delivery == "exactly_once":
        assert found == list(range(RECORDS))
    else:
        assert set(found) == set(range(RECORDS))


def test_replicas_that_come_back_within_its_tries_cost_time_and_nothing_else(
    first: SandboxBroker, second: SandboxBroker, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    made = Bench.make(first.bootstrap_servers, chunk_records=10, segments=[SEGMENT])
    replicated = f"{made.topic}.replicated"
    create_replicated(made.bootstrap, replicated)
    bench = dataclasses.replace(
        made, pipeline=dataclasses.replace(made.pipeline, destination=KafkaDestination(replicated))
    )
    fill(bench.bootstrap, bench.topic, gated(numbered(RECORDS), 15, gate))
    plan = bench.plan()
    with in_the_middle(bench, plan, 10, gate) as working:
        second.kill()
        await_replicas(bench.bootstrap, replicated, 1)
        gate.touch()
        second.start()
    assert [each.complete for each in working.progress] == [True]
    assert bench.checkpoint(plan).complete
    assert ids(bench, replicated) == list(range(RECORDS))


def test_coordinators_and_leaders_that_move_cost_nothing(
    first: SandboxBroker, second: SandboxBroker, tmp_path: Path
) -> None:
    """The second broker leads everything, and leaves in the middle of a run."""
    gate = tmp_path / "gate"
    bench = Bench.make(first.bootstrap_servers, chunk_records=10, segments=[SEGMENT])
    fill(bench.bootstrap, bench.topic, gated(numbered(RECORDS), 15, gate))
    plan = bench.plan()
    lead(bench.bootstrap, tmp_path, "__consumer_offsets", "__transaction_state", bench.topic, bench.output)
    with in_the_middle(bench, plan, 10, gate) as working:
        second.stop()
    second.start()
    assert [each.reason for each in working.progress if not each.complete] == []
    assert bench.checkpoint(plan).complete
    assert ids(bench, bench.output) == list(range(RECORDS))
