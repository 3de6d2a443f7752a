"""A broker that crashes, or stops answering, in the middle of a range."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from jobs import wait_for
from pipelines import Bench
from topics import committed, fill, numbered, read_all
from workers import Working

from airflow_provider_kpipe.contract.pipeline import Delivery
from airflow_provider_kpipe.sandbox import SandboxBroker
from kpipe_engine import admission, clients, deadline, ownership, source
from kpipe_engine import delivery as delivery_module

RECORDS = 20_000
DELIVERIES: tuple[Delivery, ...] = ("exactly_once", "at_least_once")


@pytest.fixture
def own_broker() -> Iterator[SandboxBroker]:
    with SandboxBroker() as running:
        yield running


def stored(bench: Bench) -> int:
    return committed(bench.bootstrap, f"{bench.pipeline.group}.kpipe", bench.topic, 1).get(0, 0)


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("trouble", ["crash", "pause"])
def test_it_costs_time_and_nothing_else(
    own_broker: SandboxBroker, delivery: Delivery, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A crash at the wrong moment is waited for: what counts is that the wait ends.
    monkeypatch.setattr(delivery_module, "STORE_SECONDS", 8.0)
    bench = Bench.make(
        own_broker.bootstrap_servers, delivery=delivery, segments=["orders_kit:unhurriedly"], chunk_records=2_000
    )
    fill(bench.bootstrap, bench.topic, numbered(RECORDS))
    working = Working(bench.worker(bench.plan()))
    working.start()
    wait_for(lambda: stored(bench) > 4_000, "some chunks")

    if trouble == "crash":
        own_broker.kill()
        assert working.is_alive()
        own_broker.start()
    else:
        own_broker.pause()
        assert working.is_alive()
        working.join(5)
        own_broker.resume()
    working.join(120)

    (progress,) = working.progress
    assert progress.complete, progress.reason
    times = Counter(record.key for record in read_all(bench.bootstrap, bench.output))
    assert len(times) == RECORDS
    if delivery == "exactly_once":
        assert set(times.values()) == {1}
        assert progress.counts.written == RECORDS


# One after another in the worst case: the source's silence, the output's, a commit, an opening, two producers and two
# consumers that do not close.
BOUND_SECONDS = 60


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (delivery_module, ownership, source):
        monkeypatch.setattr(module, "ANSWER_SECONDS", 4.0)
    monkeypatch.setattr(source, "STALL_SECONDS", 4.0)
    monkeypatch.setattr(admission, "STANDSTILL_SECONDS", 4.0)
    monkeypatch.setattr(delivery_module, "STORE_SECONDS", 4.0)
    monkeypatch.setattr(deadline, "CLOSE_SECONDS", 2.0)
    monkeypatch.setattr(clients, "SHORTEST_TRANSACTION_TIMEOUT_MS", 10_000)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("trouble", ["kill", "pause"])
def test_a_broker_that_never_comes_back_ends_the_worker(
    own_broker: SandboxBroker, delivery: Delivery, trouble: str
) -> None:
    bench = Bench.make(
        own_broker.bootstrap_servers, delivery=delivery, segments=["orders_kit:unhurriedly"], chunk_records=2_000
    )
    fill(bench.bootstrap, bench.topic, numbered(RECORDS))
    working = Working(bench.worker(bench.plan()))
    working.start()
    wait_for(lambda: stored(bench) > 4_000, "some chunks")

    getattr(own_broker, trouble)()
    working.join(BOUND_SECONDS)

    assert not working.is_alive()
    (progress,) = working.progress
    assert progress.state == "stopped"
    assert progress.reason
    assert "does not answer" in progress.reason or "did not answer" in progress.reason
    assert "then run again" in progress.reason
    assert 4_000 < progress.next_offset < RECORDS
    if trouble == "pause":
        own_broker.resume()
