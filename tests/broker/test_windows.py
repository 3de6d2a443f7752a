"""Windows of time over a real topic: which of them are empty, and which cannot be meant."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe.contract.offsets.limits import At, Earliest, Latest
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench
from tests.kit.topics import Sent, fill

HOUR = 3_600_000
NOON = 1_769_860_800_000


@pytest.fixture(scope="module")
def bench(broker: SandboxBroker) -> Bench:
    """Records at noon and at four, in partition 0 of two."""
    made = Bench.make(broker.bootstrap_servers, partitions=2)
    moments = [NOON, NOON + 1, NOON + 4 * HOUR]
    fill(made.bootstrap, made.topic, [Sent(timestamp=moment, partition=0) for moment in moments])
    return made


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (At(NOON + HOUR), At(NOON + 2 * HOUR)),
        (At(NOON + 5 * HOUR), At(NOON + 6 * HOUR)),
        (At(NOON + 5 * HOUR), Latest()),
    ],
    ids=["between records", "after the last record", "up to the end"],
)
def test_a_quiet_hour_is_an_empty_plan(bench: Bench, start: At, end: At) -> None:
    assert bench.plan(start=start, end=end).pending == ()


def test_a_window_that_begins_before_the_log_holds_what_is_there(bench: Bench) -> None:
    (planned,) = bench.plan(start=At(NOON - 2 * HOUR), end=At(NOON + 1)).pending
    assert (planned.start, planned.end) == (0, 1)


@pytest.mark.parametrize("start", [At(NOON - 2 * HOUR), Earliest()], ids=repr)
def test_a_window_before_the_first_record_is_refused(bench: Bench, start: At | Earliest) -> None:
    with pytest.raises(PlanError, match=r"ends at 2026-01-31T12:00:00\.000\+00:00, and topic .* holds no record from"):
        bench.plan(start=start, end=At(NOON))


def test_a_window_whose_records_have_left_the_topic_is_refused(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, [Sent(timestamp=NOON + each * HOUR) for each in range(4)])
    assert len(bench.plan(start=At(NOON), end=At(NOON + 2 * HOUR)).pending) == 1
    admin = AdminClient(bench.settings)
    (future,) = admin.delete_records([TopicPartition(bench.topic, 0, 2)]).values()
    future.result(30)
    with pytest.raises(PlanError, match="they have left the topic, or were never there; choose a later window"):
        bench.plan(start=At(NOON), end=At(NOON + 2 * HOUR))


def test_a_window_in_the_future_is_refused(bench: Bench) -> None:
    tomorrow = round(time.time() * 1000) + 24 * HOUR
    for end in (Latest(), At(tomorrow + HOUR)):
        with pytest.raises(PlanError, match="which is yet to come by the clock of this host, and topic"):
            bench.plan(start=At(tomorrow), end=end)


def test_records_that_are_ahead_of_the_clock_are_read(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, topic_config={"message.timestamp.after.max.ms": str(48 * HOUR)})
    tomorrow = round(time.time() * 1000) + 24 * HOUR
    fill(bench.bootstrap, bench.topic, [Sent(timestamp=tomorrow)])
    assert len(bench.plan(start=At(tomorrow - HOUR), end=At(tomorrow + HOUR)).pending) == 1


def test_a_topic_without_records_has_quiet_hours_only(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    assert bench.plan(start=At(NOON), end=At(NOON + HOUR)).pending == ()


def test_a_group_may_be_past_a_window(bench: Bench) -> None:
    assert bench.plan(end=At(NOON)).pending == ()
