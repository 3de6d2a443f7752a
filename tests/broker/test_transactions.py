"""Readers of committed records are let go on after a worker was killed."""

from __future__ import annotations

from confluent_kafka import Producer
from pipelines import Bench
from topics import fill, numbered

from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.kafka.transactions import end_open_transactions
from airflow_provider_kpipe.sandbox import SandboxBroker


def test_an_open_transaction_is_ended(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(5))
    plan = bench.plan()
    left_open = Producer({**bench.settings, "transactional.id": plan.transactional_id(0)})
    left_open.init_transactions()
    left_open.begin_transaction()
    left_open.produce(bench.output, b"never committed")
    left_open.flush()
    fill(bench.bootstrap, bench.output, numbered(3))
    with Positions(bench.settings) as positions:
        output = positions.topic(bench.output)
        assert positions.latest(output, "read_committed") == {0: 0}

        end_open_transactions(bench.settings, ["another-without-any", plan.transactional_id(0)], seconds=20)

        # The transaction's own record and the marker that ends it, around three of another producer.
        assert positions.latest(output, "read_committed") == {0: 5}


def test_a_cluster_that_is_gone_costs_a_warning(caplog: object) -> None:
    end_open_transactions({"bootstrap.servers": "127.0.0.1:1"}, ["some-id"], seconds=0.5)
    assert "some-id could not be ended now" in caplog.text
