"""What is read from a cluster, and what is said where it cannot be read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe import KafkaDestination
from airflow_provider_kpipe.contract.offsets.limits import At, Explicit
from airflow_provider_kpipe.contract.redrive.redrive import Redrive, Selection, ledger_topic_of
from airflow_provider_kpipe.exceptions import KafkaUnavailableError, PlanError, UnknownTopicError
from airflow_provider_kpipe.kafka.positions import GroupOffset, Positions
from airflow_provider_kpipe.kafka.topic_limits import fit_to_topics
from airflow_provider_kpipe.planning.needed_topics import check_needed_topics
from airflow_provider_kpipe.redriving.planning import check_redrive_topics
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from airflow_provider_kpipe.sandbox.ports import free_ports
from tests.kit.pipelines import Bench
from tests.kit.topics import Sent, commit, fill, fill_in_transactions, numbered


def test_an_unknown_topic_is_named(broker: SandboxBroker) -> None:
    with (
        Positions({"bootstrap.servers": broker.bootstrap_servers}) as positions,
        pytest.raises(UnknownTopicError, match=r"'no-such-topic' is not on the cluster .* create it"),
    ):
        positions.topic("no-such-topic")


def test_a_cluster_that_does_not_answer_is_named() -> None:
    (port,) = free_ports(1)
    with (
        Positions({"bootstrap.servers": f"127.0.0.1:{port}"}, answer_seconds=1) as positions,
        pytest.raises(KafkaUnavailableError, match=f":{port} is unreachable, asked .* see that the cluster is up"),
    ):
        positions.topic("orders")


def test_a_re_created_topic_has_another_id(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    with Positions(bench.settings) as positions:
        before = positions.topic(bench.topic)
        admin = AdminClient(bench.settings)
        admin.delete_topics([bench.topic])[bench.topic].result(30)
        create_topics(bench.bootstrap, bench.topic)
        assert positions.topic(bench.topic).id != before.id


def test_the_end_of_a_topic_depends_on_the_isolation_level(broker: SandboxBroker) -> None:
    from confluent_kafka import Producer

    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(3))
    producer = Producer({**bench.settings, "transactional.id": f"open-{bench.topic}"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(bench.topic, b"not committed yet")
    producer.flush()
    with Positions(bench.settings) as positions:
        topic = positions.topic(bench.topic)
        assert positions.latest(topic, "read_committed") == {0: 3}
        assert positions.latest(topic, "read_uncommitted") == {0: 4}
    producer.abort_transaction()


def test_a_moment_after_the_last_record_is_the_end_of_the_log(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=2)
    fill(bench.bootstrap, bench.topic, [Sent(timestamp=1_000 + each, partition=0) for each in range(10)])
    with Positions(bench.settings) as positions:
        topic = positions.topic(bench.topic)
        ends = positions.latest(topic, "read_committed")
        assert positions.at(topic, 1_004, "read_committed", ends) == {0: 4, 1: 0}
        assert positions.at(topic, 9_999, "read_committed", ends) == {0: 10, 1: 0}


def test_offsets_of_a_group_come_with_their_metadata(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=2)
    fill(bench.bootstrap, bench.topic, numbered(10, partitions=2))
    commit(bench.bootstrap, "a-group", bench.topic, {1: 4})
    with Positions(bench.settings) as positions:
        held = positions.group_offsets("a-group", bench.topic, [0, 1])
        assert held == {1: GroupOffset(4, held[1].metadata)}
        assert positions.group_offsets("never-used", bench.topic, [0, 1]) == {}
        assert positions.members("never-used") == []


def test_plans_over_windows_offsets_and_what_was_stored(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=2)
    fill(
        bench.bootstrap,
        bench.topic,
        [Sent(timestamp=1_000 + each, partition=each % 2, value=b'{"id": 0}') for each in range(40)],
    )
    window = bench.plan(start=At(1_010), end=At(1_030))
    assert [(each.start, each.end) for each in window.ranges] == [(5, 15), (5, 15)]
    assert window.group == f"{bench.pipeline.group}.backfill.run-1"
    explicit = bench.plan(start=Explicit({1: 3}), end=Explicit({1: 9}))
    assert [(each.partition, each.start, each.end) for each in explicit.ranges] == [(1, 3, 9)]
    live = bench.plan(run_key="live-1")
    assert (live.group, live.topic_id) == (bench.pipeline.group, window.topic_id)
    bench.work(live)
    # Its checkpoint never comes: the next plan goes on from what it stored.
    fill(bench.bootstrap, bench.topic, numbered(10, partitions=2))
    following = bench.plan(run_key="live-2")
    assert [(each.start, each.end, each.committed) for each in following.ranges] == [(20, 25, None)] * 2
    # Someone sets the group back by hand: then the group decides.
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 7, 1: 7})
    again = bench.plan(run_key="live-3")
    assert [(each.start, each.committed) for each in again.ranges] == [(7, 7)] * 2


def test_an_empty_topic_has_an_empty_plan(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=3)
    plan = bench.plan()
    assert len(plan.ranges) == 3
    assert plan.pending == ()


def test_a_topic_that_ends_in_markers_is_planned_to_its_very_end(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill_in_transactions(bench.bootstrap, bench.topic, [(numbered(4), True), (numbered(4), False)])
    assert [(each.start, each.end) for each in bench.plan().ranges] == [(0, 10)]


def test_publishing_refuses_to_take_the_group_back_or_over_records(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(20))
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 15})
    with pytest.raises(PlanError, match="back from 15 to 10 in partition 0"):
        bench.plan(publish=True, start=Explicit({0: 5}), end=Explicit({0: 10}))
    with pytest.raises(PlanError, match="from 15 to 20 in partition 0 and pass over 15 to 17"):
        bench.plan(publish=True, start=Explicit({0: 18}))
    assert bench.plan(publish=True, start=Explicit({0: 5})).group == bench.pipeline.group


def test_publishing_is_no_matter_to_a_run_that_goes_on_from_what_was_stored(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    commit(bench.bootstrap, bench.pipeline.group, bench.topic, {0: 5})
    bench.work(bench.plan(run_key="live-1"))
    fill(bench.bootstrap, bench.topic, numbered(10))
    following = bench.plan(run_key="live-2", publish=True)
    assert [(each.start, each.end, each.committed) for each in following.ranges] == [(10, 20, 5)]


def test_a_destination_that_cannot_keep_the_partitions_of_its_source_is_refused(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=3, outputs=2, destination={"keep_partition": True})
    told = (
        f"its source '{bench.topic}' has 3 partitions and its destination '{bench.output}' has 2: add 1 to the "
        "destination, or declare it with keep_partition=False"
    )
    with pytest.raises(PlanError, match=told):
        check_needed_topics(bench.pipeline, bench.settings, bench.settings)
    by_key = replace(bench.pipeline, destination=KafkaDestination(bench.output))
    check_needed_topics(by_key, bench.settings, bench.settings)


def test_a_redrive_to_a_destination_that_cannot_keep_partitions_is_refused(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=3, outputs=2, destination={"keep_partition": True})
    to_output = Redrive("output", Selection(), None, None, ledger_topic_of(bench.pipeline), bench.topic)
    with pytest.raises(PlanError, match=f"'{bench.topic}' has 3 partitions and its destination '{bench.output}' has 2"):
        check_redrive_topics(bench.settings, bench.settings, bench.pipeline, to_output)
    # Back in the source, each record has its partition.
    check_redrive_topics(bench.settings, bench.settings, bench.pipeline, replace(to_output, target="source"))
    by_key = replace(bench.pipeline, destination=KafkaDestination(bench.output))
    check_redrive_topics(bench.settings, bench.settings, by_key, to_output)
    admin = AdminClient(bench.settings)
    admin.delete_topics([bench.topic])[bench.topic].result(30)
    check_redrive_topics(bench.settings, bench.settings, bench.pipeline, to_output)


def test_a_producer_is_fitted_to_its_topics(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    create_topics(bench.bootstrap, f"{bench.topic}.small", config={"max.message.bytes": "20000"})
    fitted = fit_to_topics(bench.settings, [f"{bench.topic}.small", bench.dead])
    assert int(fitted["batch.size"]) < 20_000
    assert 1_000_000 < int(fitted["message.max.bytes"]) < 1_048_588
    own = fit_to_topics({**bench.settings, "batch.size": "777"}, [f"{bench.topic}.small"])
    assert own["batch.size"] == "777"


def test_a_record_over_the_topics_limit_is_refused_before_it_is_sent(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    create_topics(bench.bootstrap, f"{bench.topic}.small", config={"max.message.bytes": "20000"})
    pipeline_settings = fit_to_topics(bench.settings, [f"{bench.topic}.small"])
    from confluent_kafka import KafkaError, KafkaException, Producer

    producer = Producer(pipeline_settings)
    with pytest.raises(KafkaException) as refused:
        producer.produce(f"{bench.topic}.small", b"x" * 20_000)
    assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    for size in (100, 5_000, 15_000, 19_000):
        producer.produce(f"{bench.topic}.small", b"x" * size)
    assert producer.flush(30) == 0
    assert len(pipeline_settings) > len(bench.settings)
