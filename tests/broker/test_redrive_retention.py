"""Records that go back with an old timestamp, and topics that look at it: a redrive says so before they vanish."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe.contract.offsets.limits import Explicit
from airflow_provider_kpipe.contract.redrive.redrive import RedriveError
from airflow_provider_kpipe.redriving import retention as redrive_retention
from airflow_provider_kpipe.redriving.retention import check_redrive_retention
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from tests.kit.jobs import wait_for
from tests.kit.log_lines import logged_by
from tests.kit.pipelines import Bench
from tests.kit.redrives import order, redrive
from tests.kit.topics import Sent, change_topic, fill, read_all

HOUR = 3_600_000
KEEPS_A_DAY = {"retention.ms": str(24 * HOUR)}
TAKES_A_DAY = {"message.timestamp.before.max.ms": str(24 * HOUR)}
BROKERS_TIME = {"message.timestamp.type": "LogAppendTime"}


def make(broker: SandboxBroker, *ages: int, **spec: Any) -> Bench:
    """Dead letters of records that are so many hours old, in topics that keep and take everything."""
    bench = Bench.make(
        broker.bootstrap_servers,
        topic_config={"retention.ms": "-1"},
        segments=["faulty_kit:fails"],
        max_dead_letter_ratio=None,
        **spec,
    )
    for topic in (bench.dead, bench.output):
        change_topic(bench.bootstrap, topic, {"retention.ms": "-1"})
    now = int(time.time() * 1000)
    fill(bench.bootstrap, bench.topic, [Sent(timestamp=now - age * HOUR) for age in ages])
    bench.work(bench.plan())
    return bench


def written(bench: Bench, topic: str, timestamp: int) -> int | None:
    """With which timestamp the broker takes a record that is no dead letter; None where it refuses it."""
    taken: list[int] = []
    producer = Producer({"bootstrap.servers": bench.bootstrap})
    producer.produce(
        topic,
        b"a probe",
        timestamp=timestamp,
        on_delivery=lambda error, message: None if error else taken.append(message.timestamp()[1]),
    )
    assert producer.flush(30) == 0
    return taken[0] if taken else None


def check(bench: Bench, **how: Any) -> None:
    check_redrive_retention(bench.settings, bench.pipeline, order(bench, **how))


@pytest.fixture(autouse=True)
def everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in logged_by(caplog, "retention", "limits")]


@pytest.mark.parametrize(
    ("target", "config", "said", "remedy"),
    [
        ("source", KEEPS_A_DAY, "older than retention.ms=86400000 (24.0 hours)", "redrive with target='output'"),
        ("source", TAKES_A_DAY, "older than message.timestamp.before.max.ms=86400000", "redrive with target='output'"),
        ("output", KEEPS_A_DAY, "older than retention.ms=86400000 (24.0 hours)", "with keep_timestamp=False"),
    ],
)
def test_a_redrive_of_which_nothing_would_be_left_is_refused(
    broker: SandboxBroker, target: str, config: dict[str, str], said: str, remedy: str
) -> None:
    bench = make(broker, 48, 48, 48)
    change_topic(bench.bootstrap, bench.topic if target == "source" else bench.output, config)
    with pytest.raises(RedriveError) as refusal:
        check(bench, target=target)
    assert "3 of 3 dead letters that would be redriven hold records" in str(refusal.value)
    assert said in str(refusal.value)
    assert remedy in str(refusal.value)


def test_redriven_records_that_would_vanish_are_reported_with_the_remedy(
    broker: SandboxBroker, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make(broker, 48, 1, 48, 1, 1)
    change_topic(bench.bootstrap, bench.topic, KEEPS_A_DAY)
    check(bench, target="source")
    (text,) = told(caplog)
    assert "2 of 5 dead letters that would be redriven" in text
    assert "the broker would delete them; redrive with target='output'" in text


def test_of_many_letters_no_more_are_looked_at_than_it_takes(
    broker: SandboxBroker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redrive_retention, "ENOUGH_LETTERS", 2)
    bench = make(broker, 48, 1, 48, 48)
    change_topic(bench.bootstrap, bench.topic, KEEPS_A_DAY)
    check(bench, target="source")
    assert told(caplog)[0].startswith("1 of 2 dead letters, of 2 that were looked at, that would be redriven hold")


def test_as_long_as_none_of_them_stays_more_are_looked_at(
    broker: SandboxBroker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redrive_retention, "ENOUGH_LETTERS", 2)
    bench = make(broker, 48, 48, 48, 1, 48)
    change_topic(bench.bootstrap, bench.topic, KEEPS_A_DAY)
    check(bench, target="source")
    assert told(caplog)[0].startswith("3 of 4 dead letters, of 4 that were looked at, that would be redriven hold")
    of_old_ones = Explicit({0: 3})
    with pytest.raises(RedriveError, match="3 of 3 dead letters that would be redriven"):
        check(bench, run_key="redrive-2", target="source", end=of_old_ones)


def test_letters_that_have_expired_meanwhile_are_not_compared(
    broker: SandboxBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """Those of other partitions are; nobody knows of the others that they would not stay."""
    bench = make(broker, partitions=2)
    old = int(time.time() * 1000) - 48 * HOUR
    # Their keys spread the dead letters over both partitions; without keys, chance would.
    fill(bench.bootstrap, bench.topic, [Sent(key=str(each).encode(), timestamp=old) for each in range(5)])
    bench.work(bench.plan("run-2"))
    change_topic(bench.bootstrap, bench.topic, KEEPS_A_DAY)
    planned = order(bench, target="source")
    gone, *_ = [each for each in planned.plan.ranges if len(each)]
    admin = AdminClient({"bootstrap.servers": bench.bootstrap})
    (deleted,) = admin.delete_records([TopicPartition(bench.dead, gone.partition, gone.end)]).values()
    deleted.result(30)
    check_redrive_retention(bench.settings, bench.pipeline, planned)
    left = len(read_all(bench.bootstrap, bench.dead))
    assert 0 < left < 5
    assert f"{left} of {left} dead letters, of {left} that were looked at, that would be redriven" in told(caplog)[-1]


def test_letters_that_stay_where_they_are_do_not_count(broker: SandboxBroker, caplog: pytest.LogCaptureFixture) -> None:
    bench = make(broker, 1, 1, 48)
    redrive(bench, target="source", max_attempts=3)
    bench.work(bench.plan("run-2"))
    change_topic(bench.bootstrap, bench.topic, KEEPS_A_DAY)
    # Those that have gone back before are settled, and of those that have failed again, two are young.
    check(bench, run_key="redrive-2", target="source", max_attempts=3)
    assert "1 of 3 dead letters" in told(caplog)[0]
    caplog.clear()
    check(bench, run_key="redrive-3", target="source", max_attempts=2)
    assert told(caplog) == []


def test_a_letter_may_be_younger_than_its_record(broker: SandboxBroker) -> None:
    bench = make(broker)
    change_topic(bench.bootstrap, bench.dead, BROKERS_TIME)
    old = int(time.time() * 1000) - 48 * HOUR
    wait_for(lambda: written(bench, bench.dead, old) != old, "the broker to write its own time")
    fill(bench.bootstrap, bench.topic, [Sent(timestamp=old)] * 2)
    bench.work(bench.plan("run-2"))
    assert [each.timestamp[1] > old for each in read_all(bench.bootstrap, bench.dead)[-2:]] == [True, True]
    change_topic(bench.bootstrap, bench.topic, KEEPS_A_DAY)
    with pytest.raises(RedriveError, match="2 of 2 dead letters"):
        check(bench, target="source")


def test_the_broker_rejects_the_records_that_the_check_names(
    broker: SandboxBroker, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make(broker, 48, 48, 1)
    change_topic(bench.bootstrap, bench.topic, TAKES_A_DAY)
    old = int(time.time() * 1000) - 48 * HOUR
    wait_for(lambda: written(bench, bench.topic, old) is None, "the broker to refuse what is old")
    check(bench, target="source")
    assert "2 of 3 dead letters" in told(caplog)[0]
    assert "the broker would reject them" in told(caplog)[0]
    counts = redrive(bench, "redrive-2", target="source")
    assert (counts.written, counts.dead_lettered) == (1, 2)


def test_a_parked_letter_keeps_its_timestamp_too(broker: SandboxBroker, caplog: pytest.LogCaptureFixture) -> None:
    bench = make(broker, 48, 1)
    parking = f"{bench.topic}.parked"
    create_topics(bench.bootstrap, parking, config=KEEPS_A_DAY)
    check(bench, target="source", max_attempts=1, parking=parking)
    (text,) = told(caplog)
    assert "1 of 2 dead letters that would be parked are older than retention.ms=86400000" in text
    assert f"of '{parking}'" in text


def test_a_dry_run_writes_nothing_and_is_warned_only(broker: SandboxBroker, caplog: pytest.LogCaptureFixture) -> None:
    bench = make(broker, 48, 48)
    change_topic(bench.bootstrap, bench.topic, KEEPS_A_DAY)
    check(bench, target="source", dry_run=True)
    assert "2 of 2 dead letters" in told(caplog)[0]


@pytest.mark.parametrize(
    ("ages", "config", "how", "spec"),
    [
        ((48, 1), {"retention.ms": "-1"}, {"target": "source"}, {}),
        ((48, 1), {**KEEPS_A_DAY, **TAKES_A_DAY, **BROKERS_TIME}, {"target": "source"}, {}),
        ((48, 1), {**KEEPS_A_DAY, "cleanup.policy": "compact"}, {"target": "source"}, {}),
        ((48, 1), KEEPS_A_DAY, {"target": "output"}, {"destination": {"keep_timestamp": False}}),
        ((2, 1), {**KEEPS_A_DAY, **TAKES_A_DAY}, {"target": "source"}, {}),
        ((), {**KEEPS_A_DAY, **TAKES_A_DAY}, {"target": "source"}, {}),
    ],
    ids=["kept for ever", "time of the broker", "compacted", "time of writing", "young", "nothing to read"],
)
def test_records_that_stay_are_not_reported(
    broker: SandboxBroker,
    caplog: pytest.LogCaptureFixture,
    ages: tuple[int, ...],
    config: dict[str, str],
    how: dict[str, Any],
    spec: dict[str, Any],
) -> None:
    bench = make(broker, *ages, **spec)
    for topic in (bench.topic, bench.output):
        change_topic(bench.bootstrap, topic, config)
    check(bench, **how)
    assert told(caplog) == []


def test_a_retention_that_may_not_be_read_is_taken_for_long(
    broker: SandboxBroker, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make(broker, 48)
    made = order(bench, target="source")
    gone = replace(bench.pipeline, source=replace(bench.pipeline.source, topic="not-there"))
    check_redrive_retention(bench.settings, gone, made)
    assert "the retention of the topics cannot be read" in told(caplog)[0]
