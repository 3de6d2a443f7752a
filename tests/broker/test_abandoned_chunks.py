"""A worker that is closed in the midst of a chunk leaves nothing behind that a reader would wait for."""

from __future__ import annotations

from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.jobs import wait_for
from tests.kit.pipelines import Bench
from tests.kit.topics import fill, numbered, read_all
from tests.kit.workers import producer_of


def test_an_open_transaction_is_aborted_at_once(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    worker = bench.worker(bench.plan())
    worker.open()
    worker.writer.begin()
    producer_of(worker).produce(bench.output, b"half done")
    assert producer_of(worker).flush(30) == 0
    with Positions(bench.settings) as positions:
        output = positions.topic(bench.output)
        assert positions.latest(output, "read_committed") == {0: 0}
        worker.close()
        # The record, and the marker behind it, which the broker writes once it has answered: no reader stands in front
        # of an open transaction. By itself it would end after a minute or more.
        wait_for(lambda: positions.latest(output, "read_committed") == {0: 2}, "the marker", seconds=20)
    assert read_all(bench.bootstrap, bench.output) == []
