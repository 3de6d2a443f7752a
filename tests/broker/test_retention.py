"""Outputs that keep their timestamp, and topics that look at it: a plan says so before they vanish or are refused."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_kpipe import KafkaDeadLetter, KafkaDestination
from airflow_provider_kpipe.contract.offsets.limits import Explicit
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.planning.retention import check_retention
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from tests.kit.log_lines import logged_by
from tests.kit.pipelines import Bench
from tests.kit.topics import Sent, fill

MODULES = "retention", "limits"
HOUR = 3_600_000
KEEPS_A_DAY = {"retention.ms": str(24 * HOUR)}
KEEPS_ALL = {"retention.ms": "-1"}
TAKES_ALL = {**KEEPS_ALL, "message.timestamp.after.max.ms": str(72 * HOUR)}
TAKES_A_DAY = {**KEEPS_ALL, "message.timestamp.before.max.ms": str(24 * HOUR)}
TAKES_NO_FUTURE = {**KEEPS_ALL, "message.timestamp.after.max.ms": str(HOUR)}


def make(
    broker: SandboxBroker, old: int, young: int, *, out: dict[str, str], dead: dict[str, str], **more: Any
) -> Bench:
    """A topic with records of 48 hours ago, then of an hour ago, in each of two partitions."""
    bench = Bench.make(broker.bootstrap_servers, partitions=2, topic_config=TAKES_ALL)
    create_topics(bench.bootstrap, f"{bench.topic}.kept", partitions=2, config=out)
    create_topics(bench.bootstrap, f"{bench.topic}.lost", config=dead)
    now = int(time.time() * 1000)
    ages = [48] * old + [1] * young
    sent = [Sent(partition=at, timestamp=now - age * HOUR) for age in ages for at in (0, 1)]
    fill(bench.bootstrap, bench.topic, sent)
    written = KafkaDestination(f"{bench.topic}.kept", **more)
    return replace(
        bench,
        pipeline=replace(bench.pipeline, destination=written, dead_letter=KafkaDeadLetter(f"{bench.topic}.lost")),
    )


def check(bench: Bench, **wishes: Any) -> None:
    check_retention(bench.pipeline, bench.settings, bench.settings, bench.plan(**wishes))


def warned_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in logged_by(caplog, *MODULES) if each.levelno == logging.WARNING]


@pytest.fixture(autouse=True)
def everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_a_window_of_which_nothing_would_be_left_is_refused(broker: SandboxBroker) -> None:
    bench = make(broker, 20, 5, out=KEEPS_A_DAY, dead=KEEPS_ALL)
    with pytest.raises(PlanError) as refusal:
        check(bench, start=Explicit({0: 0, 1: 3}), end=Explicit({0: 20, 1: 10}))
    assert "all 27 records of the plan are older than retention.ms=86400000 (24.0 hours)" in str(refusal.value)
    assert "keep_timestamp=False, or give the topic a longer retention" in str(refusal.value)


def test_records_of_a_window_that_would_vanish_are_reported_with_the_remedy(
    broker: SandboxBroker, caplog: pytest.LogCaptureFixture
) -> None:
    check(make(broker, 20, 5, out=KEEPS_A_DAY, dead=KEEPS_ALL))
    (told,) = warned_of(caplog)
    assert "Up to 40 of 50 records are older than retention.ms=86400000 (24.0 hours)" in told
    assert "keep_timestamp=False" in told


def test_dead_letters_keep_their_timestamp_whatever_outputs_do(
    broker: SandboxBroker, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make(broker, 20, 0, out=KEEPS_A_DAY, dead=KEEPS_A_DAY, keep_timestamp=False)
    check(bench)
    (told,) = warned_of(caplog)
    assert f"of '{bench.topic}.lost': the broker would delete their dead letters" in told


def test_a_window_of_which_nothing_would_be_taken_is_refused(broker: SandboxBroker) -> None:
    bench = make(broker, 20, 0, out=TAKES_A_DAY, dead=KEEPS_ALL)
    with pytest.raises(PlanError) as refusal:
        check(bench)
    limit = f"older than message.timestamp.before.max.ms=86400000 (24.0 hours) of '{bench.topic}.kept'"
    assert f"all 40 records of the plan are {limit}" in str(refusal.value)
    assert "the broker would reject them all; declare the destination with keep_timestamp=False" in str(refusal.value)
    assert "or raise message.timestamp.before.max.ms of the topic" in str(refusal.value)


def test_the_broker_rejects_the_records_that_the_check_names(
    broker: SandboxBroker, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make(broker, 20, 30, out=TAKES_A_DAY, dead=KEEPS_ALL)
    check(bench)
    (told,) = warned_of(caplog)
    assert "Up to 40 of 100 records are older than message.timestamp.before.max.ms=86400000 (24.0 hours)" in told
    assert "the broker would reject these" in told
    counts = sum((each.counts for each in bench.work(bench.plan("run-2"))), Counts())
    assert (counts.written, counts.dead_lettered) == (60, 40)


def test_a_dead_letter_that_would_be_refused_stops_its_partition(
    broker: SandboxBroker, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make(broker, 2, 0, out=KEEPS_ALL, dead=TAKES_A_DAY)
    check(bench)
    (told,) = warned_of(caplog)
    assert f"(24.0 hours) of '{bench.topic}.lost': the broker would reject their dead letters" in told
    assert "would stop its partition; raise message.timestamp.before.max.ms of the topic" in told
    stopped = replace(bench, pipeline=replace(bench.pipeline, segments=["faulty_kit:fails"]))
    assert [each.complete for each in stopped.work(stopped.plan("run-2"))] == [False, False]


def test_records_from_the_future_are_reported(broker: SandboxBroker, caplog: pytest.LogCaptureFixture) -> None:
    bench = make(broker, 0, 5, out=TAKES_NO_FUTURE, dead=TAKES_ALL)
    ahead = int(time.time() * 1000) + 48 * HOUR
    fill(bench.bootstrap, bench.topic, [Sent(partition=1, timestamp=ahead)] * 3)
    check(bench)
    (told,) = warned_of(caplog)
    assert "Up to 3 of 13 records are further in the future than message.timestamp.after.max.ms=3600000" in told
    assert "the broker would reject these; declare the destination with keep_timestamp=False" in told


@pytest.mark.parametrize(
    ("old", "young", "out", "more"),
    [
        (20, 5, KEEPS_ALL, {}),
        (20, 5, KEEPS_A_DAY, {"keep_timestamp": False}),
        (20, 5, {**KEEPS_A_DAY, "message.timestamp.type": "LogAppendTime"}, {}),
        (20, 5, {**TAKES_A_DAY, "message.timestamp.type": "LogAppendTime"}, {}),
        (20, 5, TAKES_A_DAY, {"keep_timestamp": False}),
        (20, 5, {**KEEPS_A_DAY, "cleanup.policy": "compact"}, {}),
        (0, 5, KEEPS_A_DAY, {}),
        (0, 0, KEEPS_A_DAY, {}),
    ],
    ids=[
        "kept for ever",
        "time of writing",
        "time of the broker",
        "taken with the time of the broker",
        "taken with the time of writing",
        "compacted",
        "young",
        "nothing to read",
    ],
)
def test_records_that_stay_are_not_reported(
    broker: SandboxBroker,
    caplog: pytest.LogCaptureFixture,
    old: int,
    young: int,
    out: dict[str, str],
    more: dict[str, Any],
) -> None:
    check(make(broker, old, young, out=out, dead=KEEPS_ALL, **more))
    assert logged_by(caplog, *MODULES) == []


def test_a_retention_that_may_not_be_read_is_taken_for_long(
    broker: SandboxBroker, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make(broker, 20, 0, out=KEEPS_A_DAY, dead=KEEPS_ALL)
    missing = replace(bench.pipeline, destination=KafkaDestination("not-there"), dead_letter=None)
    check_retention(missing, bench.settings, bench.settings, bench.plan())
    assert "the retention of the topics cannot be read" in caplog.text
