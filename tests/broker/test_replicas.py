"""A broker that holds replicas goes, and comes back: it leads some topics, and others take nothing without it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_provider_kpipe import KafkaDeadLetter, KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.contract.plan import Plan
from tests.kit.gated import SEGMENT, gated, stored_of
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.replicas import COORDINATORS, FIRST, SECOND, await_brokers, await_in_sync, create, let_lead, two_brokers
from tests.kit.shorter_bounds import shorten_bounds
from tests.kit.topics import committed, fill, numbered, read_all
from tests.kit.workers import Working, session_of

RECORDS, STORED, HELD = 40, 10, 15
# The client itself goes on for as long as a transaction lasts.
BOUNDS = {
    "writing.backpressure.STANDSTILL_SECONDS": 1.0,
    "writing.producer_session.ANSWER_SECONDS": 3.0,
    "assignment.last_words.SAY_SECONDS": 2.0,
}
DELIVERIES: tuple[Delivery, ...] = ("exactly_once", "at_least_once")


@dataclass(frozen=True)
class AtWork:
    """A worker that waits in the middle of a chunk until its gate is there."""

    bench: Bench
    plan: Plan
    gate: Path
    working: Working

    def let_go(self) -> None:
        self.gate.touch()

    def end(self) -> None:
        self.let_go()
        self.working.join(120)
        assert not self.working.is_alive()

    def has_stored(self) -> bool:
        return stored_of(self.bench) >= STORED

    def is_paused(self) -> bool:
        return bool(session_of(self.working.worker)._admission.paused)

    @property
    def state(self) -> tuple[str, int, str]:
        (progress,) = self.working.progress
        return progress.state, progress.next_offset, progress.reason or ""


def make(bootstrap: str, delivery: Delivery, written: str = "") -> Bench:
    """A pipeline whose output or dead letters take nothing without the second broker; or else it leads everything."""
    name = f"p{uuid.uuid4().hex[:8]}"
    topics = {"source": name, "output": f"{name}.out", "dead letters": f"{name}.dead"}
    if written:
        create(bootstrap, topics.pop(written), on=(FIRST, SECOND), needing=2)
        create(bootstrap, *topics.values(), on=(FIRST,))
    else:
        create(bootstrap, *topics.values(), on=(SECOND, FIRST))
    pipeline = KafkaPipeline(
        name=name,
        source=KafkaSource(name),
        destination=KafkaDestination(f"{name}.out"),
        dead_letter=KafkaDeadLetter(f"{name}.dead"),
        segments=[SEGMENT, "faulty_kit:fails"] if written == "dead letters" else [SEGMENT],
        max_dead_letter_ratio=None,
        delivery=delivery,
        chunk_records=STORED,
    )
    return Bench(bootstrap, pipeline)


def begin(stack: ExitStack, bench: Bench, gate: Path) -> AtWork:
    fill(bench.bootstrap, bench.topic, gated(numbered(RECORDS), HELD, gate))
    plan = bench.plan()
    at_work = AtWork(bench, plan, gate, Working(bench.worker(plan)))
    at_work.working.start()
    stack.callback(at_work.end)
    return at_work


def assert_all_is_there(bench: Bench, topic: str) -> None:
    found = sorted(json.loads(record.key or b"") for record in read_all(bench.bootstrap, topic))
    if bench.pipeline.delivery == "at_least_once":
        found = sorted(set(found))
    assert found == list(range(RECORDS)), topic


def assert_stopped_by_name(works: Sequence[AtWork], lacking: Sequence[str]) -> None:
    for each, topic in zip(works, lacking, strict=True):
        state, next_offset, reason = each.state
        assert (state, next_offset) == ("stopped", STORED), reason
        assert f"{topic!r} has 1 of 2 replicas in sync" in reason
        assert "then run again" in reason
        assert not each.bench.checkpoint(each.plan).complete
        assert committed(each.bench.bootstrap, each.plan.group, each.bench.topic, 1) == {0: STORED}


def test_only_partitions_of_a_lost_broker_stop_and_they_resume_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It coordinates groups and transactions, too. All that happens to pipelines happens in one outage."""
    # A commit whose coordinator goes at the wrong moment is waited for: what counts is that the wait ends.
    monkeypatch.setattr("kpipe_engine.writing.chunk_writer.STORE_SECONDS", 8.0)
    with two_brokers(tmp_path) as (first, second), ExitStack() as stack:
        bootstrap = first.bootstrap_servers
        led = [make(bootstrap, delivery) for delivery in DELIVERIES]
        needy = [make(bootstrap, delivery, it) for it in ("output", "dead letters") for delivery in DELIVERIES]
        patient = [make(bootstrap, delivery, "output") for delivery in DELIVERIES]
        written = [each.output if at < 2 else each.dead for at, each in enumerate(needy)]
        replicated = [*written, *(each.output for each in patient)]
        works = [begin(stack, each, tmp_path / f"gate-{at}") for at, each in enumerate((*led, *needy, *patient))]
        going_on, stopping, waiting = works[:2], works[2:6], works[6:]
        for each in works:
            wait_for(each.has_stored, "the first chunk")
        let_lead(bootstrap, *COORDINATORS)

        second.kill()
        await_in_sync(bootstrap, [*COORDINATORS, *replicated, *(each.output for each in led)], 1)

        for each in going_on:
            each.end()
            assert each.state == ("complete", RECORDS, "")
            assert each.bench.checkpoint(each.plan).complete
            assert_all_is_there(each.bench, each.bench.output)

        with monkeypatch.context() as shortened:
            shorten_bounds(shortened, BOUNDS)
            for each in stopping:
                each.let_go()
            for each in stopping:
                each.end()
        assert_stopped_by_name(stopping, written)

        for each in waiting:
            each.let_go()
        for each in waiting:
            wait_for(each.is_paused, "output that waits")
        second.start()
        await_brokers(bootstrap)
        await_in_sync(bootstrap, replicated, 2)

        for each in waiting:
            each.end()
            assert each.state == ("complete", RECORDS, "")
            assert each.bench.checkpoint(each.plan).complete
            assert_all_is_there(each.bench, each.bench.output)
        for each, topic in zip(stopping, written, strict=True):
            following = each.bench.plan("run-2")
            each.bench.work(following)
            assert each.bench.checkpoint(following).complete
            assert_all_is_there(each.bench, topic)
