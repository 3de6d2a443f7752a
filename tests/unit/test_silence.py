"""The page about a silent cluster states every bound there is, as it is."""

from __future__ import annotations

import ast
import importlib
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs_kit import OPERATIONS, ROOT, rows

AIRFLOW, ENGINE = ROOT / "airflow_provider_kpipe", ROOT / "spark_jobs" / "kpipe_engine"
PAGE = OPERATIONS / "silence.md"
# The bound of each row, in the order of the page.
BOUNDS = [
    "kpipe_engine.reading.range_reader.STALL_SECONDS",
    "kpipe_engine.reading.lone_fetch.FETCH_SECONDS",
    "kpipe_engine.writing.backpressure.STANDSTILL_SECONDS",
    "kpipe_engine.writing.backpressure.STANDSTILL_WHEN_STOPPED_SECONDS",
    "kpipe_engine.writing.chunk_writer.STORE_SECONDS",
    "kpipe_engine.reading.planned_topic.LOOK_SECONDS",
    "kpipe_engine.client_settings.ANSWER_SECONDS",
    "kpipe_engine.writing.producer_session.ABORT_SECONDS",
    "kpipe_engine.bounded_calls.CLOSE_SECONDS",
    "kpipe_engine.assignment.events.FLUSH_SECONDS",
    "kpipe_engine.stop_signal.ANSWER_SECONDS",
    "kpipe_engine.writing.missing_replicas.ASK_SECONDS",
    "kpipe_engine.assignment.last_words.SAY_SECONDS",
    "kpipe_engine.supervision.silence.ASK_SECONDS",
    "airflow_provider_kpipe.kafka.cluster.ANSWER_SECONDS",
    "airflow_provider_kpipe.kafka.open_transactions.NAMING_SECONDS",
    "airflow_provider_kpipe.transactions.sequence.ANSWER_SECONDS",
    "airflow_provider_kpipe.transactions.offset_transaction.ANSWER_SECONDS",
    "airflow_provider_kpipe.transactions.left_open.END_SECONDS",
    "airflow_provider_kpipe.kafka.bounded_reader.STALL_SECONDS",
    "airflow_provider_kpipe.redriving.ledger_topic.ANSWER_SECONDS",
    "airflow_provider_kpipe.kafka.topic_limits.ANSWER_SECONDS",
    "airflow_provider_kpipe.checkpointing.draining.LOOK_SECONDS",
    "airflow_provider_kpipe.running.progress_log.STOP_SECONDS",
    "airflow_provider_kpipe.running.job_run.YIELD_ON_KILL_SECONDS",
    "airflow_provider_kpipe.running.job_run.END_TRANSACTIONS_ON_KILL_SECONDS",
    "airflow_provider_kpipe.kafka.bounds.CLOSE_SECONDS",
]
WAITING_ROOMS = ("kafka", "transactions", "planning", "checkpointing", "redriving", "spark", "running")
# Nobody waits for an answer of Kafka's so long, or not more than once: it is asked again after so many seconds.
NO_BOUNDS = {
    "backpressure.LOOK_SECONDS",
    "backpressure.PATIENCE_SECONDS",
    "bounded_reader.READ_SECONDS",
    "chunk_retry.LEASE_SECONDS",
    "cluster.FIRST_PAUSE_SECONDS",
    "cluster.LONGEST_PAUSE_SECONDS",
    "cluster.LOOK_SECONDS",
    "executors.LOOK_SECONDS",
    "executors.SETTLED_SECONDS",
    "held_offsets.AGAIN_SECONDS",
    "held_offsets.FIRST_WAIT_SECONDS",
    "job_run.LOOK_SECONDS",
    "ledger_topic.LOOK_SECONDS",
    "lone_fetch.LOOK_SECONDS",
    "partition_worker.LONGEST_REST_SECONDS",
    "planned_topic.AGAIN_SECONDS",
    "planned_topic.ASK_SECONDS",
    "planned_topic.GONE_SECONDS",
    "private_folder.BEING_MADE_SECONDS",
    "producer_session.FLUSH_SECONDS",
    "producer_session.FULL_QUEUE_SECONDS",
    "range_reader.READ_SECONDS",
    "runners.LOOK_SECONDS",
    "sequence.AGAIN_SECONDS",
    "stop_signal.FIRST_LOOK_SECONDS",
    "stop_signal.LOOK_SECONDS",
    "supervisor.INTERRUPT_SECONDS",
    "supervisor.LOOK_SECONDS",
    "supervisor.TELL_SECONDS",
    "truncation.LISTEN_SECONDS",
}


def value_of(bound: str) -> float:
    module, _, name = bound.rpartition(".")
    return float(getattr(importlib.import_module(module), name))


def table(heading: str) -> list[list[str]]:
    return rows(PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0])


def declared() -> Iterator[str]:
    """Constants of the modules that ask Kafka, or wait for whoever does."""
    folders = (ENGINE, *(AIRFLOW / room for room in WAITING_ROOMS))
    for file in sorted(file for folder in folders for file in folder.rglob("*.py")):
        for node in ast.parse(file.read_text()).body:
            for target in node.targets if isinstance(node, ast.Assign) else []:
                names = [each.id for each in ast.walk(target) if isinstance(each, ast.Name)]
                yield from (f"{file.stem}.{name}" for name in names if name.endswith("_SECONDS"))


def test_the_table_says_how_long_each_wait_is() -> None:
    stated = [float(cells[-1]) for cells in table("How long each of them waits")]
    assert dict(zip(BOUNDS, stated, strict=True)) == {bound: value_of(bound) for bound in BOUNDS}


def test_no_other_wait_is_declared() -> None:
    stated = {".".join(bound.split(".")[-2:]) for bound in BOUNDS}
    assert not stated & NO_BOUNDS
    # Two are those of a cluster, by another name.
    assert stated - {*declared()} == {"sequence.ANSWER_SECONDS", "offset_transaction.ANSWER_SECONDS"}
    assert {*declared()} - stated == NO_BOUNDS


def engine(name: str) -> float:
    return value_of(f"kpipe_engine.{name}_SECONDS")


def minutes() -> dict[str, float]:
    """The sum of what follows one another in the worst case."""
    close, answer = engine("bounded_calls.CLOSE"), engine("client_settings.ANSWER")
    events, orders = engine("assignment.events.FLUSH") + close, engine("stop_signal.ANSWER") + close
    # Producer, source and watch are closed one after another, then events and orders; both clusters are asked.
    ending = (
        engine("assignment.last_words.SAY")
        + 3 * close
        + events
        + orders
        + 2 * engine("supervision.silence.ASK")
        + 2 * close
    )
    ending += engine("writing.missing_replicas.ASK")
    standstill = engine("writing.backpressure.STANDSTILL")
    renewing = 2 * close
    # The last fetch may begin just before there has been nothing to read for too long.
    reading = engine("reading.range_reader.STALL") + engine("reading.lone_fetch.FETCH") + close
    at_work = reading + standstill + renewing + answer + ending
    beginning = answer + renewing + answer + ending
    tries = importlib.import_module("kpipe_engine.chunk_retry").CHUNK_TRIES
    most_unanswered = importlib.import_module("kpipe_engine.supervision.supervisor").MOST_UNANSWERED
    assert most_unanswered == 2
    unwritten = tries * standstill + (tries - 1) * renewing + ending
    # What other pieces hold is read with a client for each. The driver tells of no reason, and of no events.
    claiming = close + answer + close + renewing + answer + 3 * close
    return {
        "a worker that is at work then": at_work,
        "a worker that begins after that": beginning,
        "a Spark task, however many partitions it has": at_work + beginning,
        "a worker, where nothing is gone but what it writes to: a broker, or with `at_least_once` another cluster": (
            unwritten
        ),
        "a Spark task, where nothing is gone but that other cluster": most_unanswered * unwritten,
        "the driver, while it takes on partitions that are cut into pieces": claiming,
    }


def test_the_ends_of_workers_are_the_sums_of_what_they_wait_for() -> None:
    stated = {cells[0]: int(cells[1]) for cells in table("When all of it has ended")}
    assert minutes().keys() <= stated.keys()
    assert {what: math.ceil(seconds / 60) for what, seconds in minutes().items()} == {
        what: stated[what] for what in minutes()
    }


def test_a_task_in_airflow_ends_with_the_question_that_fails() -> None:
    """A wait that costs only a line in the log may come before it."""
    ours = {bound.removeprefix("airflow_provider_kpipe."): value_of(bound) for bound in BOUNDS if "engine" not in bound}
    naming, close = 2 * ours["kafka.open_transactions.NAMING_SECONDS"], ours["kafka.bounds.CLOSE_SECONDS"]
    only_logged = ours["kafka.cluster.ANSWER_SECONDS"] + ours["transactions.left_open.END_SECONDS"] + 2 * 10
    longest = max(seconds for bound, seconds in ours.items() if not bound.startswith("running."))
    stated = {cells[0]: int(cells[1]) for cells in table("When all of it has ended")}
    (of_tasks,) = (stated[what] for what in stated if what.startswith("plan, checkpoint"))
    assert only_logged + longest + naming + 2 * close <= of_tasks * 60
    assert ours["checkpointing.draining.LOOK_SECONDS"] + naming + close <= stated["a look of the gate"] * 60


@pytest.mark.parametrize("page", ["docs/guide/runs.md", "docs/architecture.md", "README.md"])
def test_the_page_is_found(page: str) -> None:
    assert "operations/silence.md" in Path(ROOT, page).read_text()
