from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskDeferred

from airflow_provider_kpipe.checkpointing.draining import LOOK_SECONDS, PartitionDrain
from airflow_provider_kpipe.contract.offsets.limits import At, Explicit, Latest, OffsetLimit
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.exceptions import (
    HeldUpError,
    KafkaUnavailableError,
    StalePlanError,
    UnknownTopicError,
    UnreachableError,
)
from airflow_provider_kpipe.hooks.kpipe import KpipeHook
from airflow_provider_kpipe.kafka.positions import Positions, Topic
from airflow_provider_kpipe.sensors import partitions_drained as module
from airflow_provider_kpipe.sensors.partitions_drained import KpipePartitionsDrainedSensor
from airflow_provider_kpipe.triggers.partitions_drained import PartitionsDrainedTrigger
from tests.kit.plans import plan_of

Sensor = Callable[..., KpipePartitionsDrainedSensor]
BACKFILL = "orders-v2.backfill.dag/run/plan"
NOON_MS = 1_769_860_800_000
DRAINED = [PartitionDrain(0, 10, 10), PartitionDrain(1, 12, 11)]
WAITING = [PartitionDrain(0, 10, 10), PartitionDrain(1, 10, 11)]
FOUND = {"partitions": {"0": {"committed": 10, "target": 10}, "1": {"committed": 12, "target": 11}}}


def plan(**changes: Any) -> Plan:
    backfill = {
        "group": BACKFILL,
        "working_group": BACKFILL,
        "continues_group": False,
        "isolation_level": "read_uncommitted",
    }
    return plan_of(PartitionRange(0, 0, 10, None), PartitionRange(3, 5, 9, None), **{**backfill, **changes})


@pytest.fixture
def sensor() -> Sensor:
    source = KafkaSource("orders", conn_id="kafka_orders", isolation_level="read_uncommitted")
    pipeline = KafkaPipeline("orders", source, KafkaDestination("out"), group_id="orders-v2")
    return lambda **more: KpipePartitionsDrainedSensor(task_id="gate", pipeline=pipeline, **more)


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What looking at the cluster gives or raises, and the targets and plans it was asked about."""
    given = SimpleNamespace(drains=DRAINED, error=None, asked=[], plans=[])

    def look(settings: Any, target: DrainTarget, plan: Plan | None = None) -> list[PartitionDrain]:
        given.asked.append(target)
        given.plans.append(plan)
        if given.error:
            raise given.error
        drains: list[PartitionDrain] = given.drains
        return drains

    monkeypatch.setattr(KpipeHook, "get_conn", lambda self: {})
    monkeypatch.setattr(module, "look", look)
    return given


def waiting_for(sensor: Sensor, **arguments: Any) -> KpipePartitionsDrainedSensor:
    """A gate with templates, as Airflow leaves them when it has rendered them."""
    gate = sensor(**dict.fromkeys(arguments, "{{ params.wish }}"))
    vars(gate).update(arguments)
    return gate


def test_by_default_the_group_of_the_pipeline_is_watched_up_to_the_end_of_the_topic(sensor: Sensor) -> None:
    target = sensor().target()
    assert (target.group, target.topic, target.isolation_level) == ("orders-v2", "orders", "read_uncommitted")
    assert target.until == Latest()
    assert target.partitions is None


NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
UNTIL: list[tuple[Any, OffsetLimit]] = [
    ("latest", Latest()),
    ("2026-01-31T12:00:00+00:00", At(NOON_MS)),
    (NOON, At(NOON_MS)),
    (NOON.replace(tzinfo=None), At(NOON_MS)),
    (At(NOON_MS), At(NOON_MS)),
    ({"0": 5, "1": 7}, Explicit({0: 5, 1: 7})),
    ('{"0": 5, "1": 7}', Explicit({0: 5, 1: 7})),
    (plan().to_json(), Explicit({0: 10, 3: 9})),
]


@pytest.mark.parametrize(("until", "limit"), UNTIL, ids=[repr(until)[:60] for until, _ in UNTIL])
def test_the_target_is_read_as_a_template_gives_it_and_survives_the_way_to_the_triggerer(
    sensor: Sensor, until: Any, limit: OffsetLimit
) -> None:
    target = sensor(until=until).target()
    assert target.until == limit
    assert DrainTarget.from_json(target.to_json()) == target


@pytest.mark.parametrize(
    ("partitions", "read"),
    [(None, None), ([0, 2], (0, 2)), (["0", "2"], (0, 2)), ("0, 2", (0, 2)), ("12", (12,)), ("[0, 2]", (0, 2))],
    ids=repr,
)
def test_partitions_are_read_as_a_template_gives_them(sensor: Sensor, partitions: Any, read: Any) -> None:
    assert sensor(partitions=partitions).target().partitions == read


def test_a_plan_says_which_group_it_commits_to(sensor: Sensor) -> None:
    assert sensor(until=plan().to_json()).target().group == BACKFILL


@pytest.mark.parametrize("until", ["latest", plan().to_json()], ids=["latest", "a plan"])
def test_another_group_may_be_watched(sensor: Sensor, until: Any) -> None:
    assert sensor(until=until, group_id="audit").target().group == "audit"


@pytest.mark.parametrize("group_id", ["", " ", 3], ids=repr)
def test_a_group_without_a_name_is_not_taken_for_the_pipelines(sensor: Sensor, answer: Any, group_id: Any) -> None:
    with pytest.raises(ValueError, match=r"group_id=.*: use the name of a consumer group, or leave it out"):
        sensor(group_id=group_id)
    with pytest.raises(AirflowFailException, match="use the name of a consumer group"):
        waiting_for(sensor, group_id=group_id).poke({})
    assert answer.asked == []


def test_a_plan_over_another_topic_is_refused(sensor: Sensor, answer: Any) -> None:
    with pytest.raises(AirflowFailException, match="returns"):
        waiting_for(sensor, until=plan(topic="returns").to_json()).poke({})
    assert answer.asked == []


@pytest.mark.parametrize("until", ["soon", 5, None, {}, {"0": -1}, {"ranges": []}], ids=repr)
def test_a_target_that_makes_no_sense_fails_for_good(sensor: Sensor, answer: Any, until: Any) -> None:
    with pytest.raises(AirflowFailException):
        waiting_for(sensor, until=until).poke({})
    assert answer.asked == []
    with pytest.raises(ValueError, match=r"."):
        sensor(until=until)


@pytest.mark.parametrize("partitions", [[], "[]", ", "], ids=repr)
def test_a_gate_over_no_partition_fails_for_good(sensor: Sensor, answer: Any, partitions: Any) -> None:
    with pytest.raises(AirflowFailException, match="partitions is empty, and names no partition: name some"):
        waiting_for(sensor, partitions=partitions).poke({})
    with pytest.raises(ValueError, match="partitions is empty"):
        sensor(partitions=partitions)
    assert answer.asked == []


def test_a_gate_over_an_empty_plan_fails_for_good(sensor: Sensor, answer: Any) -> None:
    with pytest.raises(AirflowFailException, match="until is empty"):
        waiting_for(sensor, until=plan(ranges=()).to_json()).poke({})


@pytest.mark.parametrize(("drains", "done"), [(DRAINED, True), (WAITING, False)], ids=["yes", "no"])
def test_the_gate_opens_when_every_partition_is_drained(sensor: Sensor, answer: Any, drains: Any, done: bool) -> None:
    answer.drains = drains
    assert sensor().poke({}).is_done is done


def test_a_poke_says_where_each_partition_stands(sensor: Sensor, answer: Any) -> None:
    assert sensor().poke({}).xcom_value == FOUND


@pytest.mark.parametrize("error", [KafkaUnavailableError("no answer"), HeldUpError("held up")], ids=repr)
def test_a_cluster_or_a_group_that_gives_no_answer_is_looked_at_again(
    sensor: Sensor, answer: Any, error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    gate = sensor()
    answer.error = error
    assert gate.poke({}).is_done is False
    assert f"Kafka cannot be asked now: {error}" in capsys.readouterr().out
    answer.error = None
    assert gate.poke({}).is_done is True


def test_a_topic_that_is_not_there_fails_for_good(sensor: Sensor, answer: Any) -> None:
    answer.error = UnknownTopicError("topic 'orders' is not on the cluster")
    with pytest.raises(AirflowFailException, match="topic 'orders' is not on the cluster"):
        sensor().poke({})


def test_a_gate_that_is_open_already_does_not_go_to_the_triggerer(sensor: Sensor, answer: Any) -> None:
    assert sensor(deferrable=True).execute({}) == FOUND


def test_a_closed_gate_waits_in_the_triggerer_for_the_same_target(sensor: Sensor, answer: Any) -> None:
    answer.drains = WAITING
    gate = sensor(deferrable=True, until={"1": 11}, poke_interval=7, timeout=90)
    with pytest.raises(TaskDeferred) as deferred:
        gate.execute({})
    trigger = deferred.value.trigger
    assert isinstance(trigger, PartitionsDrainedTrigger)
    assert (trigger.conn_id, trigger.poke_interval) == ("kafka_orders", 7)
    assert DrainTarget.from_json(trigger.target) == answer.asked[0]
    assert deferred.value.method_name == "execute_complete"
    assert deferred.value.timeout == timedelta(seconds=90)


def test_a_deferred_gate_returns_what_a_poking_one_does(sensor: Sensor) -> None:
    assert sensor().execute_complete({}, FOUND) == FOUND


def test_a_deferred_gate_fails_for_good_for_the_reason_the_triggerer_found(sensor: Sensor) -> None:
    with pytest.raises(AirflowFailException, match="topic 'orders' is not on the cluster"):
        sensor().execute_complete({}, {"error": "topic 'orders' is not on the cluster"})


LOST = UnknownTopicError("topic 'orders' is not on the cluster")
FAILING: list[tuple[dict[str, bool], Exception, type[Exception]]] = [
    ({}, LOST, AirflowFailException),
    ({"soft_fail": True}, LOST, AirflowSkipException),
    ({"never_fail": True}, LOST, AirflowSkipException),
    ({}, OSError("broken"), OSError),
    ({"soft_fail": True}, OSError("broken"), OSError),
    ({"never_fail": True}, OSError("broken"), AirflowSkipException),
]


@pytest.mark.parametrize(("asked", "error", "raised"), FAILING, ids=repr)
@pytest.mark.parametrize("deferrable", [False, True], ids=["poking", "deferred"])
def test_both_modes_fail_and_skip_alike(
    sensor: Sensor, answer: Any, deferrable: bool, asked: dict[str, bool], error: Exception, raised: type[Exception]
) -> None:
    answer.error = error
    with pytest.raises(raised):
        sensor(deferrable=deferrable, **asked).execute({})


@pytest.mark.parametrize(("asked", "raised"), [(each[0], each[2]) for each in FAILING[:3]], ids=repr)
def test_a_gate_that_comes_back_from_the_triggerer_fails_and_skips_as_a_poking_one(
    sensor: Sensor, asked: dict[str, bool], raised: type[Exception]
) -> None:
    event = {"error": str(LOST)}
    with pytest.raises(raised):
        sensor(deferrable=True, **asked).resume_execution("execute_complete", {"event": event}, {})


def test_a_cluster_that_does_not_answer_at_first_is_waited_for_in_the_triggerer(sensor: Sensor, answer: Any) -> None:
    answer.error = KafkaUnavailableError("no answer")
    with pytest.raises(TaskDeferred):
        sensor(deferrable=True, never_fail=True).execute({})


NOBODY = UnreachableError("nobody listens at b:1")


@pytest.mark.parametrize("deferrable", [False, True])
def test_an_address_where_nobody_is_fails_the_gate_for_good(sensor: Sensor, answer: Any, deferrable: bool) -> None:
    answer.error = NOBODY
    with pytest.raises(AirflowFailException, match="nobody listens at b:1"):
        sensor(deferrable=deferrable).poke({})


def test_an_address_where_somebody_has_been_is_looked_at_again(sensor: Sensor, answer: Any) -> None:
    answer.error = NOBODY
    assert sensor(until=plan().to_json()).poke({}).is_done is False
    rescheduled: Any = {"task_reschedule_count": 1}
    assert sensor().poke(rescheduled).is_done is False

    gate = sensor(deferrable=False)
    answer.error, answer.drains = None, WAITING
    assert gate.poke({}).is_done is False
    answer.error = NOBODY
    assert gate.poke({}).is_done is False
    answer.error, answer.drains = None, DRAINED
    assert gate.poke({}).is_done is True


def test_a_gate_defers_if_airflow_defers_by_default(
    sensor: Sensor, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", "true")
    answer.drains = WAITING
    with pytest.raises(TaskDeferred):
        sensor().execute({})
    assert sensor(deferrable=False).poke({}).is_done is False


@pytest.mark.parametrize("deferrable", [False, True])
def test_a_plan_that_its_topic_does_not_have_fails_for_good(sensor: Sensor, answer: Any, deferrable: bool) -> None:
    answer.error = StalePlanError("ends at 900, and the log at 7")
    with pytest.raises(AirflowFailException, match="ends at 900, and the log at 7"):
        sensor(until=plan().to_json(), deferrable=deferrable).poke({})
    assert answer.plans == [plan()]


def test_a_plan_is_checked_with_the_seconds_of_a_look(sensor: Sensor, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def topic(positions: Positions, name: str) -> Topic:
        asked.append(positions.cluster.answer_seconds)
        raise KafkaUnavailableError("no answer")

    monkeypatch.setattr(KpipeHook, "get_conn", lambda self: {"bootstrap.servers": "nobody:1"})
    monkeypatch.setattr(Positions, "topic", topic)
    for until in (plan().to_json(), "latest"):
        assert sensor(until=until).poke({}).is_done is False
    assert asked == [LOOK_SECONDS, LOOK_SECONDS]
