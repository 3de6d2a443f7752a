from __future__ import annotations

import time
from typing import Any

import pytest
from fateful_kit import UnspeakableError

from airflow_provider_kpipe.contract.faults.causes import OTHER_KINDS, Cause
from airflow_provider_kpipe.contract.faults.fault import Fault, FaultKind
from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.contract.progress.progress import Counts
from kpipe_engine.assignment.run_monitor import NoMonitor
from kpipe_engine.assignment.worker_position import WorkerPosition
from kpipe_engine.errors import PartitionHaltedError
from kpipe_engine.faults.fault_handler import FaultHandler
from kpipe_engine.faults.time_limit import NO_LIMIT
from kpipe_engine.wiring import choose_fault_handler, choose_limit
from tests.kit.plans import plan_of


class Letters:
    """Takes what the topic would take."""

    def take(self, message: Any, fault: Fault) -> None:
        if fault.kind == "dead_letter":
            raise PartitionHaltedError("cannot be written", message.offset())


def fault(kind: FaultKind) -> Fault:
    return Fault.of(ValueError("no"), "orders:parse", kind)


@pytest.mark.parametrize("action", ["skip", "dead_letter", "stop_pipeline"])
def test_a_dead_letter_that_cannot_be_written_is_nobodys_choice(message: Any, action: str) -> None:
    counts, asked = Counts(), []

    def choose(fault: Fault, message: Any) -> str:
        asked.append(fault.kind)
        return action

    policy = FaultHandler(choose, Letters(), NoMonitor())
    with pytest.raises(PartitionHaltedError, match="cannot be written") as stop:
        policy.take(message(7, b"a"), fault("dead_letter"), counts)
    assert (type(stop.value), stop.value.next_offset) == (PartitionHaltedError, 7)
    assert (asked, counts) == ([], Counts())


class BlindWatch(NoMonitor):
    """Cannot see what the others have counted."""

    def allow_fault(self, *, as_dead_letter: bool) -> None:
        raise PartitionHaltedError("what the run has counted is not known")


@pytest.mark.parametrize("action", ["skip", "dead_letter"])
def test_a_partition_with_an_unknown_budget_stops_in_front_of_the_record(message: Any, action: str) -> None:
    counts = Counts()
    policy = FaultHandler(lambda fault, message: action, Letters(), BlindWatch())
    with pytest.raises(PartitionHaltedError, match=r"^what the run has counted is not known$") as stop:
        policy.take(message(7, b"a"), fault("segment"), counts)
    assert (stop.value.next_offset, counts) == (7, Counts())


def never(fault: Fault, record: Any) -> str:
    time.sleep(600)
    return "skip"


def test_a_function_that_hangs_stops_the_partition_within_the_limit_of_a_record(message: Any) -> None:
    pipeline = KafkaPipeline(
        "orders", KafkaSource("orders"), KafkaDestination("out"), on_fault=f"{__name__}:never", segment_timeout=0.05
    )
    job = Job(pipeline, plan_of(PartitionRange(3, 0, 9, 0)))
    policy = choose_fault_handler(job, Letters(), NoMonitor(), choose_limit(job, WorkerPosition()))
    for _ in range(2):
        with pytest.raises(PartitionHaltedError) as stop:
            policy.take(message(7, b"a"), fault("segment"), Counts())
        assert stop.value.next_offset == 7
        assert str(stop.value).startswith(
            f"offset 7: on_fault='{__name__}:never' itself failed over it (SegmentTimeout"
        )
        assert "no answer within segment_timeout, 0.05 s" in str(stop.value)
        assert "the record's fault was segment orders:parse" in str(stop.value)


def test_a_function_whose_import_hangs_stops_the_partition_too(message: Any) -> None:
    pipeline = KafkaPipeline(
        "orders", KafkaSource("orders"), KafkaDestination("out"), on_fault="never_kit:never", segment_timeout=0.05
    )
    job = Job(pipeline, plan_of(PartitionRange(3, 0, 9, 0)), grace_seconds=0.1)
    policy, counts = choose_fault_handler(job, Letters(), NoMonitor(), choose_limit(job, WorkerPosition())), Counts()
    with pytest.raises(
        PartitionHaltedError, match=r"within 0\.1 s, in the import of on_fault='never_kit:never'"
    ) as stop:
        policy.take(message(7, b"a"), fault("segment"), counts)
    assert (stop.value.next_offset, counts) == (7, Counts())


@pytest.mark.parametrize(
    ("action", "counted"), [("skip", Counts(skipped=1)), ("dead_letter", Counts(dead_lettered=1))], ids=repr
)
@pytest.mark.parametrize("kind", ["segment", "destination"])
def test_other_faults_are(message: Any, kind: FaultKind, action: str, counted: Counts) -> None:
    counts = Counts()
    FaultHandler(lambda fault, message: action, Letters(), NoMonitor()).take(message(7, b"a"), fault(kind), counts)
    assert counts == counted
    assert counts.causes == (Cause("ValueError", "orders:parse", 1, message(7, b"a").partition(), 7),)


def test_the_causes_of_faults_are_counted_by_their_kinds(message: Any) -> None:
    counts = Counts()
    policy = FaultHandler(lambda fault, message: "skip", Letters(), NoMonitor())
    for offset in range(40):
        error = ValueError("no") if offset % 2 else type(f"Error{offset}", (Exception,), {})()
        policy.take(message(offset, b"a"), Fault.of(error, "orders:parse", "segment"), counts)
    assert counts.skipped == sum(each.count for each in counts.causes) == 40
    most, *others = counts.causes
    assert (most.exception_class, most.count, most.offset) == ("ValueError", 20, 1)
    assert others[-1].exception_class == OTHER_KINDS


def no_action(fault: Fault, record: Any) -> Any:
    return [fault.kind]


def ends(fault: Fault, record: Any) -> str:
    raise UnspeakableError


@pytest.mark.parametrize(
    ("name", "said"),
    [("no_action", "TypeError: it chose a list, which is not an action"), ("ends", "UnspeakableError: Unspeakable")],
)
def test_a_function_that_chooses_nothing_stops_the_partition_and_ends_no_worker(
    message: Any, name: str, said: str
) -> None:
    path = f"{__name__}:{name}"
    pipeline = KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out"), on_fault=path)
    job = Job(pipeline, plan_of(PartitionRange(3, 0, 9, None)))
    policy = choose_fault_handler(job, Letters(), NoMonitor(), NO_LIMIT)
    with pytest.raises(PartitionHaltedError) as stop:
        policy.take(message(7, b"a"), fault("segment"), Counts())
    assert stop.value.next_offset == 7
    assert f"on_fault={path!r} itself failed over it ({said}" in str(stop.value)
