"""Records over which a segment hangs, on a real broker."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_kpipe import PartitionScaling
from airflow_provider_kpipe.contract.pipeline.policies import RetryPolicy
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench
from tests.kit.tasks import work_in_task
from tests.kit.topics import Sent, fill, read_all

RECORDS, CULPRIT = 60, 41
# Enough to import and to open what does so at once, on a machine that is busy.
LONGER = 5.0
RELAXED = PartitionScaling("relax_ordering_within_partition", max_in_flight_per_partition=4)
INTERRUPTED: dict[str, tuple[str, dict[str, Any]]] = {
    "record": ("sleep", {"segments": ["deadly_kit:deadly"]}),
    "batch": ("sleep", {"segments": ["deadly_kit:deadly_batch"]}),
    "coroutine": ("await", {"segments": ["deadly_kit:deadly_async"], "scaling": RELAXED}),
}
ENDED: dict[str, tuple[str, dict[str, Any]]] = {
    "in C": ("hang", {"segments": ["deadly_kit:deadly"]}),
    "batch in C": ("hang", {"segments": ["deadly_kit:deadly_batch"]}),
    "thread": ("sleep", {"segments": ["deadly_kit:deadly"], "scaling": RELAXED}),
    "coroutine that holds up the loop": ("sleep", {"segments": ["deadly_kit:deadly_async"], "scaling": RELAXED}),
}


def filled(broker: SandboxBroker, fate: str, **spec: Any) -> Bench:
    bench = Bench.make(broker.bootstrap_servers, segment_timeout=0.5, **spec)
    fates = {CULPRIT: fate}
    fill(
        bench.bootstrap,
        bench.topic,
        [Sent(json.dumps({"id": each, "fate": fates.get(each, "")}).encode()) for each in range(RECORDS)],
    )
    return bench


def ids(bench: Bench, topic: str) -> list[int]:
    return [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, topic)]


@pytest.mark.parametrize("mode", INTERRUPTED)
def test_a_segment_that_hangs_is_interrupted_and_its_record_faults(broker: SandboxBroker, mode: str) -> None:
    fate, spec = INTERRUPTED[mode]
    bench = filled(broker, fate, retry=RetryPolicy.fixed(2, 0, retry_on=["SegmentTimeoutError"]), **spec)

    (progress,) = bench.work(bench.plan())

    assert (progress.complete, progress.counts.retried, progress.counts.dead_lettered) == (True, 1, 1)
    assert ids(bench, bench.output) == [each for each in range(RECORDS) if each != CULPRIT]
    (letter,) = read_all(bench.bootstrap, bench.dead)
    assert json.loads(letter.value or b"")["id"] == CULPRIT
    assert letter.header("kpipe-fault-kind") == "timeout"
    assert letter.header("kpipe-fault-component") == spec["segments"][0]
    assert letter.header("kpipe-fault-exception") == "kpipe_engine.errors.SegmentTimeoutError"
    assert letter.header("kpipe-fault-message") == "no answer within segment_timeout, 0.5 s"
    assert letter.header("kpipe-fault-attempts") == "2"


@pytest.mark.parametrize("mode", ENDED)
def test_a_segment_that_cannot_be_interrupted_ends_with_its_worker_and_its_record_is_found(
    broker: SandboxBroker, mode: str
) -> None:
    fate, spec = ENDED[mode]
    bench = filled(broker, fate, **spec)

    (progress,), said = work_in_task(bench, bench.plan())

    assert progress["state"] == "complete", said
    assert ids(bench, bench.output) == [each for each in range(RECORDS) if each != CULPRIT]
    (letter,) = read_all(bench.bootstrap, bench.dead)
    assert json.loads(letter.value or b"")["id"] == CULPRIT
    assert letter.header("kpipe-fault-kind") == "timeout"
    assert "was ended, as a segment had not answered within 0.5 s" in letter.header("kpipe-fault-message")
    assert "in meet" in letter.header("kpipe-fault-stacktrace")


def fill_two(bench: Bench, **fates: str) -> None:
    """Even ids are in partition 0; each is a record that says so, or nothing of note."""
    sent = [
        Sent(json.dumps({"id": each, "fate": fates.get(f"at_{each}", "")}).encode(), partition=each % 2)
        for each in range(RECORDS)
    ]
    fill(bench.bootstrap, bench.topic, sent)


def work_beside_a_neighbour(bench: Bench) -> tuple[dict[str, Any], str]:
    """What the task reports of partition 0; partition 1, which waits for it, has to be complete."""
    plan = bench.plan()
    done, said = work_in_task(bench, plan, job=bench.attempt(plan, grace_seconds=LONGER))
    one, neighbour = sorted(done, key=lambda each: each["partition"])
    assert (neighbour["state"], neighbour["stored"]) == ("complete", RECORDS // 2), said
    odd = [each for each in ids(bench, bench.output) if each % 2]
    assert odd == list(range(1, RECORDS, 2))
    return one, said


def test_an_import_that_cannot_be_interrupted_stops_all_partitions_by_name(
    broker: SandboxBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPIPE_TEST_IMPORT_FATE", "hang")
    bench = Bench.make(broker.bootstrap_servers, 2, segment_timeout=0.5, segments=["importing_kit:one"])
    fill_two(bench)
    plan = bench.plan()

    done, said = work_in_task(bench, plan, job=bench.attempt(plan, grace_seconds=LONGER))

    assert [(each["state"], each["stored"]) for each in done] == [("stopped", 0)] * 2, said
    for each in done:
        assert (
            f"the import of segment 'importing_kit:one' had not come to its end within {LONGER:g} s" in each["reason"]
        )
    with Positions(bench.settings) as positions:
        assert [each.reason for each in positions.progress(plan)] == [each["reason"] for each in done]


def test_batches_whose_first_import_is_interrupted_are_no_records_after_the_second_one(
    broker: SandboxBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPIPE_TEST_IMPORT_FATE", "sleep")
    monkeypatch.setenv("KPIPE_TEST_IMPORT_MARK", str(tmp_path / "imported"))
    monkeypatch.delitem(sys.modules, "importing_kit", raising=False)
    spec: dict[str, Any] = {"segments": ["importing_kit:many"], "max_dead_letter_ratio": None}
    bench = Bench.make(broker.bootstrap_servers, 2, segment_timeout=0.5, **spec)
    fill_two(bench)
    plan = bench.plan()
    planned = bench.worker(plan, 0, 1, job=bench.attempt(plan, grace_seconds=0.5))

    done = planned.run()

    assert [(each.state, each.next_offset) for each in done] == [("stopped", 0)] * 2
    for each in done:
        assert "segment 'importing_kit:many' cannot be imported on the executor" in (each.reason or "")
        assert "no answer within 0.5 s" in (each.reason or "")
    assert read_all(bench.bootstrap, bench.dead) == []
    assert [each.complete for each in bench.work(plan)] == [True, True]
    assert sorted(ids(bench, bench.output)) == list(range(RECORDS))


@pytest.mark.parametrize("name", ["OpensNever", "OpensNeverInC"])
def test_a_segment_that_does_not_open_stops_its_partition_by_name(broker: SandboxBroker, name: str) -> None:
    bench = Bench.make(broker.bootstrap_servers, 2, segment_timeout=0.5, segments=[f"deadly_kit:{name}"])
    fill_two(bench)

    one, said = work_beside_a_neighbour(bench)

    assert (one["state"], one["stored"]) == ("stopped", 0), said
    # What opens has longer than a record.
    assert f"open() of segment 'deadly_kit:{name}'" in one["reason"]
    assert f"within {LONGER:g} s" in one["reason"]
    assert len(ids(bench, bench.output)) == RECORDS // 2


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ClosesNever", "segment 'deadly_kit:ClosesNever' did not close"),
        (
            "ClosesNeverInC",
            "partitions 0: results are stored, but closing failed: close() of segment "
            f"'deadly_kit:ClosesNeverInC' had not come to its end within {LONGER:g} s",
        ),
        ("ClosesDead", "closing failed: its worker was killed by SIGSEGV"),
    ],
)
@pytest.mark.parametrize("fate", ["", "fail"])
def test_a_segment_that_does_not_close_changes_nothing_of_what_is_done(
    broker: SandboxBroker, name: str, why: str, fate: str
) -> None:
    spec: dict[str, Any] = {"segments": [f"deadly_kit:{name}"], "on_fault": "stop_partition"}
    bench = Bench.make(broker.bootstrap_servers, 2, segment_timeout=0.5, **spec)
    fill_two(bench, at_20=fate)

    one, said = work_beside_a_neighbour(bench)

    assert why in said
    if fate:
        assert (one["state"], one["stored"]) == ("stopped", 10)
        assert one["reason"].startswith("offset 10: segment deadly_kit:")
        assert "ValueError: no good" in one["reason"]
    else:
        assert (one["state"], one["stored"], one["reason"]) == ("complete", RECORDS // 2, None)
    assert len(ids(bench, bench.output)) == (10 if fate else RECORDS // 2) + RECORDS // 2


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"on_fault": "deadly_kit:chooses_never"}, "on_fault='deadly_kit:chooses_never' itself failed over it"),
        ({"on_fault": "deadly_kit:chooses_never_in_c"}, "on_fault, or the dead-letter mapper, also"),
        ({"dead_letter": {"mapper": "deadly_kit:maps_never"}}, "mapper 'deadly_kit:maps_never' made nothing of the"),
        ({"dead_letter": {"mapper": "deadly_kit:maps_never_in_c"}}, "on_fault, or the dead-letter mapper, also"),
        ({"on_fault": "never_kit:never"}, f"within {LONGER:g} s, in the import of on_fault='never_kit:never'"),
        (
            {"dead_letter": {"mapper": "never_kit:never"}},
            f"within {LONGER:g} s, in the import of the dead letter mapper 'never_kit:never'",
        ),
    ],
    ids=repr,
)
def test_a_function_for_faults_that_hangs_stops_the_partition_in_front_of_its_record(
    broker: SandboxBroker, spec: dict[str, Any], why: str
) -> None:
    bench = Bench.make(broker.bootstrap_servers, 2, segment_timeout=0.5, segments=["deadly_kit:deadly"], **spec)
    fill_two(bench, at_20="fail")

    one, said = work_beside_a_neighbour(bench)

    assert (one["state"], one["stored"]) == ("stopped", 10), said
    assert one["reason"].startswith("offset 10: ")
    assert why in one["reason"]
    assert re.search(r"within (segment_timeout, 0\.5|0\.5|5) s", one["reason"])
    assert sorted(ids(bench, bench.output)) == sorted([*range(0, 20, 2), *range(1, RECORDS, 2)])
    assert read_all(bench.bootstrap, bench.dead) == []


@pytest.mark.parametrize("fate", ["sleep", "hang"])
def test_the_policy_for_faults_decides(broker: SandboxBroker, fate: str) -> None:
    bench = filled(broker, fate, segments=["deadly_kit:deadly"], on_fault="stop_partition")
    (progress,), _ = work_in_task(bench, bench.plan())
    assert (progress["state"], progress["stored"]) == ("stopped", CULPRIT)
    assert f"offset {CULPRIT}: timeout deadly_kit:deadly" in progress["reason"]
    assert ids(bench, bench.output) == list(range(CULPRIT))
