"""A task whose workers die over records: in a process that can fork, on a real broker."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_kpipe import PartitionScaling
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.running.stop_requests import request_stop
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench
from tests.kit.tasks import work_in_task
from tests.kit.topics import Seen, Sent, committed, fill, read_all

RECORDS, PARTITIONS = 4_000, 4
# In the second of its partition's reads.
CULPRIT = RECORDS - 99
RELAXED = PartitionScaling("relax_ordering_within_partition", max_in_flight_per_partition=4)
SEGMENTS: dict[str, dict[str, Any]] = {
    "records": ({"segments": ["deadly_kit:deadly"]}),
    "little memory": ({"segments": ["deadly_kit:deadly"], "worker_memory_mb": 512}),
    "batches": ({"segments": ["deadly_kit:deadly_batch"]}),
    "threads": ({"segments": ["deadly_kit:deadly"], "scaling": RELAXED}),
    "coroutines": ({"segments": ["deadly_kit:deadly_async"], "scaling": RELAXED}),
}


def with_fates(fates: dict[int, str], count: int = RECORDS, partitions: int = PARTITIONS) -> list[Sent]:
    return [
        Sent(json.dumps({"id": each, "fate": fates.get(each, "")}).encode(), str(each).encode(), each % partitions)
        for each in range(count)
    ]


def ids(records: list[Seen]) -> list[int]:
    return sorted(json.loads(record.value or b"")["id"] for record in records)


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
@pytest.mark.parametrize(
    ("mode", "fate"),
    [
        ("records", "segfault"),
        ("records", "exit"),
        ("little memory", "eat"),
        ("batches", "segfault"),
        ("threads", "exit"),
        ("coroutines", "segfault"),
    ],
)
def test_a_record_that_ends_its_worker_is_found_and_all_others_pass(
    broker: SandboxBroker, delivery: Delivery, mode: str, fate: str
) -> None:
    bench = Bench.make(broker.bootstrap_servers, PARTITIONS, delivery=delivery, **SEGMENTS[mode])
    sent = with_fates({CULPRIT: fate})
    fill(bench.bootstrap, bench.topic, sent)

    done, said = work_in_task(bench, bench.plan())

    assert [each["state"] for each in done] == ["complete"] * PARTITIONS, said
    (letter,) = read_all(bench.bootstrap, bench.dead)
    assert (letter.key, letter.value) == (sent[CULPRIT].key, sent[CULPRIT].value)
    expected = {
        "segfault": "was killed by SIGSEGV",
        "exit": "ended with exit code 3",
        "eat": "exit code 1 (MemoryError)",
    }
    assert letter.header("kpipe-fault-kind") == "crash"
    assert expected[fate] in letter.header("kpipe-fault-message")
    written = ids(read_all(bench.bootstrap, bench.output))
    others = [each for each in range(RECORDS) if each != CULPRIT]
    assert (written if delivery == "exactly_once" else sorted(set(written))) == others
    assert sum(each["read"] for each in done) == RECORDS
    assert sum(each["dead_lettered"] for each in done) == 1


@pytest.mark.parametrize("culprit", [0, 1_000, CULPRIT, RECORDS - 1])
def test_a_record_is_found_after_a_stated_number_of_deaths_wherever_it_lies(
    broker: SandboxBroker, culprit: int
) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["deadly_kit:deadly"])
    fill(bench.bootstrap, bench.topic, with_fates({culprit: "segfault"}, partitions=1))

    (progress,), said = work_in_task(bench, bench.plan())

    assert (progress["state"], progress["dead_lettered"]) == ("complete", 1), said
    assert ids(read_all(bench.bootstrap, bench.dead)) == [culprit]
    assert len(re.findall("its worker was killed by SIGSEGV", said)) in (3, 4), said


def test_the_trace_of_the_crash_ends_where_the_engine_begins(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["deadly_kit:deadly"])
    fill(bench.bootstrap, bench.topic, with_fates({3: "segfault"}, 10, 1))
    work_in_task(bench, bench.plan())
    (letter,) = read_all(bench.bootstrap, bench.dead)
    assert "in deadly" in letter.header("kpipe-fault-stacktrace")
    assert "kpipe_engine" not in letter.header("kpipe-fault-stacktrace")
    assert letter.header("kpipe-fault-component") == "deadly_kit:deadly"


@pytest.mark.parametrize("policy", ["skip", "stop_partition"])
def test_the_policy_for_faults_decides(broker: SandboxBroker, policy: str) -> None:
    bench = Bench.make(broker.bootstrap_servers, PARTITIONS, segments=["deadly_kit:deadly"], on_fault=policy)
    fill(bench.bootstrap, bench.topic, with_fates({CULPRIT: "segfault"}))

    done, said = work_in_task(bench, bench.plan())

    assert read_all(bench.bootstrap, bench.dead) == []
    of_culprit = CULPRIT % PARTITIONS
    first_unwritten = CULPRIT if policy == "stop_partition" else RECORDS
    expected = [
        each
        for each in range(RECORDS)
        if each != CULPRIT and (each % PARTITIONS != of_culprit or each < first_unwritten)
    ]
    assert ids(read_all(bench.bootstrap, bench.output)) == expected
    (found,) = [each for each in done if each["partition"] == of_culprit]
    stored = committed(bench.bootstrap, f"{bench.pipeline.group}.kpipe", bench.topic, PARTITIONS)
    if policy == "skip":
        assert (found["state"], found["skipped"]) == ("complete", 1), said
    else:
        assert (found["state"], found["stored"]) == ("stopped", CULPRIT // PARTITIONS)
        assert stored[of_culprit] == CULPRIT // PARTITIONS
        assert "over this record the worker was killed by SIGSEGV" in found["reason"]
    assert all(each["state"] == "complete" for each in done if each is not found)


def test_several_culprits_in_a_row_and_in_partitions_with_one_writer_are_all_found(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, PARTITIONS, segments=["deadly_kit:deadly"])
    culprits = {5: "segfault", 9: "exit", 13: "segfault", 2_002: "exit", CULPRIT: "segfault"}
    fill(bench.bootstrap, bench.topic, with_fates(culprits))

    done, said = work_in_task(bench, bench.plan(), one_block=True)

    assert [each["state"] for each in done] == ["complete"] * PARTITIONS, said
    assert ids(read_all(bench.bootstrap, bench.dead)) == sorted(culprits)
    assert ids(read_all(bench.bootstrap, bench.output)) == sorted(set(range(RECORDS)) - set(culprits))


def test_workers_side_by_side_leave_each_other_alone(broker: SandboxBroker) -> None:
    scaling = PartitionScaling("parallelize_across_partitions")
    bench = Bench.make(broker.bootstrap_servers, PARTITIONS, segments=["deadly_kit:deadly"], scaling=scaling)
    fill(bench.bootstrap, bench.topic, with_fates({7: "segfault", 8: "exit"}))

    done, said = work_in_task(bench, bench.plan(), at_once=PARTITIONS)

    assert sorted(each["partition"] for each in done) == list(range(PARTITIONS))
    assert [each["state"] for each in done] == ["complete"] * PARTITIONS, said
    assert ids(read_all(bench.bootstrap, bench.dead)) == [7, 8]
    assert len(read_all(bench.bootstrap, bench.output)) == RECORDS - 2


def test_a_worker_that_lives_serves_one_block_and_one_task_after_another(
    broker: SandboxBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What user code imports is imported once."""
    monkeypatch.setenv("KPIPE_TEST_MARKS", str(tmp_path))
    bench = Bench.make(broker.bootstrap_servers, PARTITIONS, segments=["deadly_kit:leaves_a_mark"])
    fill(bench.bootstrap, bench.topic, with_fates({}, 40))
    done, _ = work_in_task(bench, bench.plan(), tasks=2)
    assert len(done) == PARTITIONS
    assert len(list(tmp_path.iterdir())) == 1


def test_a_process_that_user_code_has_forked_does_not_hide_the_death_of_its_worker(
    broker: SandboxBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPIPE_TEST_MARKS", str(tmp_path))
    bench = Bench.make(broker.bootstrap_servers, segments=["deadly_kit:deadly"])
    fill(bench.bootstrap, bench.topic, with_fates({3: "orphan"}, 10, 1))
    try:
        (progress,), said = work_in_task(bench, bench.plan())
    finally:
        for orphan in tmp_path.iterdir():
            os.kill(int(orphan.name), signal.SIGKILL)
    assert (progress["state"], progress["dead_lettered"]) == ("complete", 1), said
    assert ids(read_all(bench.bootstrap, bench.output)) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("chunk_records", [1, 500])
def test_segments_that_kill_their_worker_when_they_open_stop_the_partition_and_no_record_is_blamed(
    broker: SandboxBroker, chunk_records: int
) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["deadly_kit:DeadlyOpening"], chunk_records=chunk_records)
    fill(bench.bootstrap, bench.topic, with_fates({}, 10, 1))
    (progress,), said = work_in_task(bench, bench.plan())
    assert (progress["state"], progress["stored"]) == ("stopped", 0)
    assert "was killed by SIGSEGV while it had no record in hand" in progress["reason"]
    # Where it was, as the reason promises of the log.
    assert re.search(r"in open\b", said), said
    assert read_all(bench.bootstrap, bench.dead) == []


def test_segments_that_kill_their_worker_when_they_are_imported_stop_all_partitions_by_name(
    broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPIPE_TEST_IMPORT_FATE", "segfault")
    bench = Bench.make(broker.bootstrap_servers, 2, segments=["importing_kit:one"])
    fill(bench.bootstrap, bench.topic, with_fates({}, 10, 2))
    plan = bench.plan()

    done, said = work_in_task(bench, plan)

    assert [(each["state"], each["stored"]) for each in done] == [("stopped", 0)] * 2, said
    for each in done:
        assert "was killed by SIGSEGV while it had no record in hand" in each["reason"]
        assert "importing_kit:one was imported or opened" in each["reason"]
    with Positions(bench.settings) as positions:
        assert [each.reason for each in positions.progress(plan)] == [each["reason"] for each in done]
    assert read_all(bench.bootstrap, bench.dead) == []


@pytest.mark.parametrize("segment", ["DeadlyAfterMany", "DeadlyAfterFew"])
def test_a_crash_that_comes_of_no_record_ends_after_a_stated_number_of_them(
    broker: SandboxBroker, segment: str
) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=[f"deadly_kit:{segment}"])
    fill(bench.bootstrap, bench.topic, with_fates({}, 20_000, 1))

    (progress,), said = work_in_task(bench, bench.plan())

    assert (progress["state"], progress["dead_lettered"]) == ("stopped", 0)
    assert "the worker died 10 times" in progress["reason"]
    assert len(re.findall("its worker was killed by SIGSEGV", said)) == 10
    assert read_all(bench.bootstrap, bench.dead) == []
    assert ids(read_all(bench.bootstrap, bench.output)) == list(range(progress["stored"]))


@pytest.mark.parametrize(
    ("segment", "megabytes"), [("Leaks", 512), ("leaks_in_batches", 2_048)], ids=["records", "batches"]
)
def test_memory_that_leaks_is_no_records_fault(broker: SandboxBroker, segment: str, megabytes: int) -> None:
    spec: dict[str, Any] = {"segments": [f"deadly_kit:{segment}"], "worker_memory_mb": megabytes, "chunk_records": 50}
    bench = Bench.make(broker.bootstrap_servers, **spec)
    fill(bench.bootstrap, bench.topic, with_fates({}, 160, 1))

    (progress,), said = work_in_task(bench, bench.plan())

    assert read_all(bench.bootstrap, bench.dead) == []
    assert (progress["state"], progress["dead_lettered"]) == ("complete", 0), said
    assert ids(read_all(bench.bootstrap, bench.output)) == list(range(160))
    assert "exit code 1 (MemoryError)" in said


def test_a_choice_of_what_becomes_of_the_fault_that_kills_the_worker_too_stops_the_partition(
    broker: SandboxBroker,
) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["deadly_kit:deadly"], on_fault="deadly_kit:deadly_choice")
    fill(bench.bootstrap, bench.topic, with_fates({3: "exit"}, 10, 1))
    (progress,), _ = work_in_task(bench, bench.plan())
    assert (progress["state"], progress["stored"]) == ("stopped", 3)
    assert "over this record the worker ended with exit code 3" in progress["reason"]
    assert "on_fault, or the dead-letter mapper, also ended the worker" in progress["reason"]
    assert ids(read_all(bench.bootstrap, bench.output)) == [0, 1, 2]


def test_a_request_to_stop_is_heard_beside_a_segment_that_has_taken_all_memory(broker: SandboxBroker) -> None:
    """To hear of it takes a client, which is opened a second after the task has begun."""
    bench = Bench.make(
        broker.bootstrap_servers, segments=["deadly_kit:deadly"], chunk_records=5, worker_memory_mb=1_024
    )
    fill(bench.bootstrap, bench.topic, with_fates({2: "fill"}, count=20, partitions=1))
    plan = bench.plan()
    job = bench.attempt(plan)
    request_stop(bench.settings, plan, job.attempt, "enough")

    (done,), said = work_in_task(bench, plan, job=job)

    assert (done["state"], done["reason"]) == ("yielded", "enough"), said
    assert 3 <= done["stored"] < 20
    assert ids(read_all(bench.bootstrap, bench.output)) == list(range(done["stored"]))
