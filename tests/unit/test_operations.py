"""The pages about monitoring, upgrading and sizing say what the code does: names, fields and numbers."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest
from docs_kit import OPERATIONS, README, ROOT, anchors, links, prose, rows

from airflow_provider_kpipe import KafkaDestination, KafkaPipeline, KafkaSource, PartitionScaling
from airflow_provider_kpipe.checkpointing.draining import PartitionDrain, summary
from airflow_provider_kpipe.contract import kafka_names
from airflow_provider_kpipe.contract.connecting import CONNECTING
from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.faults.causes import MOST_CAUSES, Cause
from airflow_provider_kpipe.contract.job import BATCH_BYTES, Job
from airflow_provider_kpipe.contract.kafka_names import MOST_WRITERS, READER_GROUP, ledger_of, redrive_group_of
from airflow_provider_kpipe.contract.offsets.metadata import (
    LEAST_METADATA_BYTES,
    METADATA_BYTES,
    SPAN_BYTES,
    most_spans,
)
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import (
    LEAST_WORKER_MEMORY_MB,
    LONGEST_CHUNK_SECONDS,
    LONGEST_TRANSACTION_SECONDS,
    TRANSACTION_PER_CHUNK,
)
from airflow_provider_kpipe.contract.pipeline.scaling import MOST_IN_FLIGHT, ExecutionMode
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.checkpoint import (
    CHECKPOINT_KEY,
    COMMITTED_KEY,
    Checkpoint,
    CommittedOffsets,
    PartitionCheckpoint,
)
from airflow_provider_kpipe.contract.progress.progress import Counts, PartitionProgress, PartitionState, StoredProgress
from airflow_provider_kpipe.contract.redrive.result import RedriveResult
from airflow_provider_kpipe.operators.run import KpipeRunOperator
from airflow_provider_kpipe.operators.spark_job import PROGRESS_KEY
from airflow_provider_kpipe.planning.letter_room import STORY_BYTES
from airflow_provider_kpipe.planning.ranges import MOST_PIECES, SHORTEST_PIECE, cut
from airflow_provider_kpipe.running.progress_log import MOST_LINES, MOST_SHOWN, table
from airflow_provider_kpipe.spark.properties import DEFAULTS, FORCED, LOCAL_DEFAULTS
from kpipe_engine.assignment.events import Event, LoggedEvents, PublishedEvents
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.chunk_filler import RECORDS_PER_READ
from kpipe_engine.client_settings import (
    QUEUE_KBYTES,
    SHORTEST_TRANSACTION_TIMEOUT_MS,
    consumer_settings,
    producer_settings,
    transaction_timeout_ms,
)
from kpipe_engine.supervision.task_layout import MOST_AT_ONCE_IN_A_TASK
from kpipe_engine.writing.backpressure import PATIENCE_SECONDS

MONITORING, UPGRADING, SIZING = (OPERATIONS / f"{name}.md" for name in ("monitoring", "upgrading", "sizing"))
GOLDEN = ROOT / "tests" / "golden" / "0.1.0"
PIPELINE = KafkaPipeline(name="orders", source=KafkaSource("orders"), destination=KafkaDestination("orders.enriched"))
PLANNED = PartitionRange(3, 10, 20, None)
FROZEN = SimpleNamespace(pipeline="orders", run_key="dag/run/plan", topic="orders", progress_group=lambda _slot: "g")
MEGABYTES = QUEUE_KBYTES // 1024
CONSUMER = consumer_settings({}, cast("Plan", SimpleNamespace(**vars(FROZEN), isolation_level="read_committed")), 0)
PRODUCER = producer_settings({}, PIPELINE.destination)
# What may be behind the offsets of a group, whatever the group.
GROUPS = {
    "<group>",
    kafka_names.progress_group_of("<group>"),
    f"{kafka_names.progress_group_of('<group>', 7)}".replace("7", "<n>"),
    kafka_names.details_group_of(kafka_names.progress_group_of("<group>")),
    kafka_names.details_group_of(kafka_names.progress_group_of("<group>", 7)).replace("7", "<n>"),
    kafka_names.published_group_of("<group>"),
    kafka_names.sequence_group_of("<group>"),
    kafka_names.stop_group_of("<group>"),
    kafka_names.backfill_group_of("<group>", "<run key>"),
    redrive_group_of("<dead-letter topic>"),
    READER_GROUP,
}
# What the pages say in numbers, and the numbers that it means.
NUMBERS: list[tuple[Path, str, tuple[float, ...]]] = [
    (MONITORING, "Each look logs up to {} partitions", (MOST_LINES,)),
    (MONITORING, "Over more than {} partitions", (MOST_SHOWN,)),
    (MONITORING, "the {} most frequent kinds", (MOST_CAUSES,)),
    (MONITORING, "for more than {:g} second,", (PATIENCE_SECONDS,)),
    (UPGRADING, "`kpipe/<group>/<topic>/<0 to {}>`", (MOST_WRITERS - 1,)),
    (UPGRADING, "after `transaction_seconds`, {:g} by default", (transaction_timeout_ms(PIPELINE) / 1000,)),
    (SIZING, "up to {}, one for each block at work (constant)", (MOST_AT_ONCE_IN_A_TASK,)),
    (SIZING, "`partition % {}` (constant)", (MOST_WRITERS,)),
    (SIZING, "A topic with up to {} partitions has as many blocks", (MOST_WRITERS,)),
    (SIZING, "one with 1,000 partitions has {}, each of {} or {}", (MOST_WRITERS, 1_000 // 64, 1_000 // 64 + 1)),
    (SIZING, "a range of more than {:,} offsets (constant)", (SHORTEST_PIECE,)),
    (SIZING, "cut into up to {} pieces (constant), if the topic has no more than {}", (MOST_PIECES, MOST_WRITERS)),
    (SIZING, "fewer than {} tasks more than it has partitions", (MOST_PIECES,)),
    (SIZING, "(up to {:,}, constant)", (MOST_IN_FLIGHT,)),
    (SIZING, "about {:,} records of a partition or {} MB", (CONSUMER["queued.min.messages"], MEGABYTES)),
    (SIZING, "| {:,} records or {} MB", (PRODUCER["queue.buffering.max.messages"], MEGABYTES)),
    (SIZING, "the two {} MB among them", (MEGABYTES,)),
    (SIZING, "| {:,} bytes for each partition", (BATCH_BYTES,)),
    (SIZING, "| {:,} at a time, and what segments keep", (RECORDS_PER_READ,)),
    (
        SIZING,
        "`worker_memory_mb`** is {:,} by default and {} at",
        (PIPELINE.worker_memory_mb or 0, LEAST_WORKER_MEMORY_MB),
    ),
    (SIZING, "without Arrow to {} or more", (LEAST_WORKER_MEMORY_MB,)),
    (SIZING, "`chunk_records` records (default {:,})", (PIPELINE.chunk_records,)),
    (SIZING, "(default {:g}, at most {})", (PIPELINE.chunk_seconds, LONGEST_CHUNK_SECONDS)),
    (SIZING, "is {:g} times `chunk_seconds` by default", (TRANSACTION_PER_CHUNK,)),
    (SIZING, "at least {:g}, and at most {}", (SHORTEST_TRANSACTION_TIMEOUT_MS / 1000, LONGEST_TRANSACTION_SECONDS)),
    (SIZING, "at most {} times {} over all runs", (MOST_WRITERS, MOST_PIECES)),
    (SIZING, "without pieces at most {}", (MOST_WRITERS,)),
    (SIZING, "| {:,} | {:,} at least, or the plan fails.", (METADATA_BYTES, LEAST_METADATA_BYTES)),
    (SIZING, "takes {} bytes above that: {} spans", (SPAN_BYTES, most_spans(METADATA_BYTES))),
    (SIZING, "and {:,} at least; it is why", (SHORTEST_TRANSACTION_TIMEOUT_MS,)),
    (SIZING, "chunks end at {} seconds and transactions at {}", (LONGEST_CHUNK_SECONDS, LONGEST_TRANSACTION_SECONDS)),
    (SIZING, "{:,} bytes more; for an envelope a third and {:,} bytes", (STORY_BYTES["raw"], STORY_BYTES["envelope"])),
]
# What was measured, and the page that has it: it is no constant of the code.
MEASURED = [
    ("3.2 s", "docs/decisions/0007-start-up.md"),
    ("20 ms", "docs/decisions/0006-partitions.md"),
    ("1 GB of data", "docs/decisions/0010-records-that-end-their-process.md"),
    ("about 20 MB that are not shared", "docs/decisions/0010-records-that-end-their-process.md"),
    ("takes about 100 MB, for a range of 1,000,000 records as for one of 5,000,000", "README.md"),
]

each_page = pytest.mark.parametrize("page", [MONITORING, UPGRADING, SIZING], ids=lambda page: page.stem)


def one_line(page: Path) -> str:
    return " ".join(page.read_text().split())


def section(page: Path, heading: str) -> str:
    (found,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", page.read_text(), re.DOTALL | re.MULTILINE)
    return cast("str", found)


def named(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def fields(kind: Any) -> set[str]:
    return {each.name for each in dataclasses.fields(kind)}


def xcoms() -> dict[tuple[str, str], set[str]]:
    """The fields that the page names, by task and key."""
    tables = [row for row in rows(section(MONITORING, "A run in Airflow")) if len(row) == 3 and "`" in row[1]]
    found = {(row[0].strip("`"), key): set(named(row[2])) for row in tables for key in named(row[1])}
    assert len(found) == 9
    return found


@pytest.mark.parametrize(("page", "said"), [(page, said.format(*numbers)) for page, said, numbers in NUMBERS])
def test_the_numbers_of_the_code_are_as_they_are(page: Path, said: str) -> None:
    assert said in one_line(page)


@pytest.mark.parametrize(("said", "page"), MEASURED)
def test_a_measured_figure_is_on_the_linked_page(said: str, page: str) -> None:
    assert said in one_line(SIZING)
    assert said in one_line(ROOT / page)
    assert (ROOT / page).resolve() in {linked.resolve() for linked, _ in links(SIZING)}


@each_page
def test_links_lead_to_headings_that_are_there(page: Path) -> None:
    assert len(list(links(page))) >= 5
    for linked, anchor in links(page):
        assert linked.exists(), linked
        assert not anchor or anchor in anchors(linked), f"{linked}#{anchor}"


@each_page
def test_no_sentence_begins_with_a_question_word(page: Path) -> None:
    text = re.sub(r"^\|.*$", "", prose(page), flags=re.MULTILINE)
    sentences = re.findall(r"(?:^\s*(?:#+ |- |\d\. )?|[.:?!] |\*\* )(\w+)", re.sub(r"(?<=\S)\n(?=\w)", " ", text), re.M)
    assert {"This"} <= set(sentences)
    assert not {"What", "Where", "Whether"} & set(sentences)


# Monitoring.


def test_xcom_keys_are_those_that_tasks_push() -> None:
    assert set(xcoms()) == {
        ("plan", "return_value"),
        ("run", PROGRESS_KEY),
        ("run", "return_value"),
        ("checkpoint", CHECKPOINT_KEY),
        ("checkpoint", "return_value"),
        ("checkpoint", COMMITTED_KEY),
        ("a gate", "return_value"),
        ("a redrive", PROGRESS_KEY),
        ("a redrive", "return_value"),
    }


def test_fields_of_xcoms_are_those_of_their_documents() -> None:
    found = xcoms()
    assert found["plan", "return_value"] < fields(Plan)
    assert found["checkpoint", CHECKPOINT_KEY] == fields(Checkpoint)
    assert found["checkpoint", COMMITTED_KEY] == fields(CommittedOffsets)
    assert found["a redrive", PROGRESS_KEY] < fields(RedriveResult)


def test_the_xcom_of_a_run_has_the_fields_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = [PartitionProgress.not_started(PLANNED)]
    job_run = SimpleNamespace(run=lambda show: (show(progress), progress)[1], check=lambda _progress: None)
    monkeypatch.setattr(KpipeRunOperator, "job", lambda *_: None)
    monkeypatch.setattr(KpipeRunOperator, "job_run", lambda *_: job_run)
    pushed: dict[str, Any] = {}
    ti = SimpleNamespace(xcom_push=lambda key, value: pushed.update({key: value}))
    run = KpipeRunOperator(task_id="run", pipeline=PIPELINE, plan=None)
    given = run._run(cast("Plan", FROZEN), cast("Any", {"ti": ti}))
    assert pushed == {PROGRESS_KEY: given}
    assert given.keys() == xcoms()["run", PROGRESS_KEY]


def test_fields_of_partitions_are_those_that_are_pushed() -> None:
    text = section(MONITORING, "A run in Airflow")
    (of_run, of_checkpoint, of_gate, counts) = re.findall(
        r"in the `progress` of a run, (.*?); in the `checkpoint`, (.*?); in a gate, (.*?)\. The counts are (.*?)\. ",
        " ".join(text.split()),
    )[0]
    assert set(named(counts)) == fields(Counts)
    assert {*named(of_run), *fields(Counts)} == PartitionProgress.not_started(PLANNED).to_json().keys()
    assert set(named(of_checkpoint)) == fields(PartitionCheckpoint)
    assert set(named(of_gate)) == summary([PartitionDrain(0, 1, 2)])["0"].keys()


def test_states_are_all_there_are() -> None:
    states = [named(row[0])[0] for row in rows(section(MONITORING, "A run in Airflow")) if len(row) == 2]
    assert sorted(states) == sorted(get_args(PartitionState))


def test_the_table_of_the_log_has_the_columns_that_the_page_names() -> None:
    (said,) = re.findall(r"a table with the columns (.*?),? and below it", one_line(MONITORING))
    assert named(said) == table([PartitionProgress.not_started(PLANNED)], "orders").splitlines()[0].split()


def test_events_are_all_that_workers_emit() -> None:
    events = [event for row in rows(section(MONITORING, "Partition events")) for event in named(row[0])]
    assert events == list(get_args(Event))


def test_fields_of_an_event_are_those_that_are_written() -> None:
    (said,) = re.findall(r"An event holds (.*?)\.", " ".join(section(MONITORING, "Partition events").split()))
    events = LoggedEvents(cast("Job", SimpleNamespace(plan=FROZEN)))
    document = events.document("started", RangeState(PLANNED), {})
    assert named(said) == list(document)
    assert json.loads(json.dumps(document))["partition"] == PLANNED.partition


def test_an_event_has_the_key_that_the_page_names(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[Any, ...]] = []
    producer = SimpleNamespace(produce=lambda *message: sent.append(message))
    monkeypatch.setattr("kpipe_engine.assignment.events.Producer", lambda _settings: producer)
    PublishedEvents(cast("Job", SimpleNamespace(plan=FROZEN)), {}, "events").emit("started", RangeState(PLANNED))
    ((topic, _value, key),) = sent
    assert (topic, key) == ("events", b"orders:3")
    assert "the key `<topic>:<partition>`" in one_line(MONITORING)


def test_groups_are_all_that_kpipe_makes() -> None:
    groups = [name for row in rows(section(MONITORING, "Groups on the cluster")) for name in named(row[0])]
    assert sorted(groups) == sorted(GROUPS)


def test_a_cause_has_the_fields_that_the_page_names() -> None:
    (said,) = re.findall(r"A cause has (.*?),? the last two", one_line(MONITORING))
    assert set(named(said)) == fields(Cause)


def test_the_progress_is_looked_at_as_often_as_the_page_says() -> None:
    run = KpipeRunOperator(task_id="run", pipeline=PIPELINE, plan=None)
    assert f"every {run.progress_interval:g} seconds (`progress_interval`)" in one_line(MONITORING)


# Upgrading and removing.


def test_documents_that_outlive_a_version_are_all_named() -> None:
    table = rows(section(UPGRADING, "A run half-way"))
    documents = {name for row in table for name in named(row[0])}
    # A job and its settings live as long as their task, and the others lie in a document that is named.
    others = {"Job", "KafkaPipeline", "KafkaSettings", "Redrive", "RedriveResult"}
    assert documents | others == {file.stem for file in GOLDEN.glob("*.json")}
    assert not documents & others


def test_all_documents_of_the_first_version_have_the_schema_version_that_the_page_names() -> None:
    assert "of 0.1.0 all have `schema_version` 1" in one_line(UPGRADING)
    assert {json.loads(file.read_text())["schema_version"] for file in GOLDEN.glob("*.json")} == {1}


@pytest.mark.parametrize(("version", "ours"), [(2, "upgrade kpipe here"), (0, "make the document again")])
def test_a_refusal_names_writer_and_remedy_as_the_page_does(version: int, ours: str) -> None:
    with pytest.raises(DocumentError) as refused:
        StoredProgress.from_json({"kpipe": "StoredProgress 9.8.0", "schema_version": version})
    message = str(refused.value)
    assert "written by kpipe 9.8.0" in message
    (remedy,) = [each for each in named(one_line(UPGRADING)) if ours in each]
    assert message.endswith(remedy)


def test_the_page_names_the_tested_versions_for_each_host() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    airflow, executors = (row[1] for row in rows(section(UPGRADING, "The same everywhere")))
    assert {*named(airflow)} <= {*project["dependencies"]}
    assert len(named(airflow)) == 4
    assert (project["requires-python"], "Python (3.11 or 3.12)" in executors) == (">=3.11,<3.13", True)
    (spark,) = re.findall(r"Spark ([\d.]+),", executors)
    assert f"pyspark=={spark}.0" in project["dependencies"]


def test_the_command_deletes_groups_of_kpipe_only() -> None:
    (pattern,) = re.findall(r"^ours='(.*)'$", UPGRADING.read_text(), re.MULTILINE)
    filled = {"<group>": "orders", "<n>": "7", "<run key>": "dag/run/plan", "<dead-letter topic>": "orders.dead"}
    names = set()
    for each in GROUPS:
        for gap, name in filled.items():
            each = each.replace(gap, name)
        names.add(each)
    kept = {"orders", redrive_group_of("orders.dead"), READER_GROUP}
    of_redrive = kafka_names.progress_group_of(redrive_group_of("orders.dead"))
    assert {each for each in names if not re.search(pattern, each)} == kept
    assert re.search(pattern, of_redrive)
    for other in ("orders.eu", "orders.kpiped", "orders2.kpipe", "kpipe.redrive.orders.dead2.kpipe"):
        assert not re.search(pattern, other), other


def test_transactional_ids_are_those_that_kpipe_uses() -> None:
    text = section(UPGRADING, "To remove a pipeline")
    writer = kafka_names.writer_id_of("<group>", "<topic>", MOST_WRITERS - 1).replace("63", "<0 to 63>")
    made = {writer, kafka_names.checkpoint_id_of("<group>"), kafka_names.sequence_id_of("<group>")}
    assert {each for each in named(text) if each.startswith("kpipe/")} == made
    assert kafka_names.writer_id_of("<group>", "<topic>", 0, 1).endswith("/0/1")
    assert f"`{ledger_of('<dead-letter topic>')}`" in text


# Sizing.


def test_execution_modes_are_all_there_are() -> None:
    modes = [row[0].strip("`") for row in rows(section(SIZING, "Processes and tasks"))]
    assert modes == list(get_args(ExecutionMode))


def test_no_limit_of_partitions_is_the_default() -> None:
    assert PartitionScaling().max_concurrent_partitions is None
    assert "no limit by default" in one_line(SIZING)


@pytest.mark.parametrize("lengths", [[10_000_000], [1_000_000] * 64, [7_000_000, 20_001, 5], [20_001] * 40])
def test_a_run_in_pieces_has_no_more_tasks_than_the_page_says(lengths: list[int]) -> None:
    ranges = [PartitionRange(at, 0, length, None) for at, length in enumerate(lengths)]
    pieces = sum(len(each.pieces) for each in cut(ranges, len(ranges)))
    assert len(lengths) <= pieces < len(lengths) + MOST_PIECES


def test_settings_of_clients_are_those_that_they_get() -> None:
    names = {name for row in rows(section(SIZING, "Memory of a worker")) for name in named(row[2])}
    assert len(names) == 5
    assert names <= {*CONSUMER, *PRODUCER}
    assert CONSUMER["queued.max.messages.kbytes"] == PRODUCER["queue.buffering.max.kbytes"] == QUEUE_KBYTES
    assert CONNECTING["enable.sparse.connections"] == "false"


def test_a_transaction_may_last_as_long_as_the_page_says() -> None:
    assert transaction_timeout_ms(PIPELINE) == SHORTEST_TRANSACTION_TIMEOUT_MS
    longer = dataclasses.replace(PIPELINE, chunk_seconds=100.0)
    assert transaction_timeout_ms(longer) == 100 * TRANSACTION_PER_CHUNK * 1000


def test_spark_properties_are_those_that_kpipe_sets() -> None:
    properties = [name for row in rows(section(SIZING, "Spark settings")) for name in named(row[0])]
    assert sorted(properties) == sorted([*DEFAULTS, *LOCAL_DEFAULTS, *FORCED])
    assert properties[-1:] == list(FORCED)


def test_the_limit_beside_an_offset_is_the_one_that_brokers_have() -> None:
    settings = {named(row[0])[0] for row in rows(section(SIZING, "Broker settings"))}
    assert {"offset.metadata.max.bytes", "transaction.max.timeout.ms", "offsets.retention.minutes"} < settings
    assert "max.message.bytes" in settings


def test_the_readme_is_the_page_of_the_memory() -> None:
    assert (README.resolve(), "speed") in {(page.resolve(), anchor) for page, anchor in links(SIZING)}
