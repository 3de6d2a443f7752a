"""One of each document that outlives its version, with something in every field.

`python -m tests.kit.documents` writes the files in `tests/golden/` that belong to the version in
the checkout.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from airflow_provider_kpipe import (
    KafkaDeadLetter,
    KafkaDestination,
    KafkaPipeline,
    KafkaSource,
    PartitionScaling,
    RetryPolicy,
    __version__,
)
from airflow_provider_kpipe.contract.dead_letters.dead_letter import Coordinates
from airflow_provider_kpipe.contract.dead_letters.envelope import Envelope
from airflow_provider_kpipe.contract.documents import Document
from airflow_provider_kpipe.contract.faults.causes import Cause
from airflow_provider_kpipe.contract.job import Job, KafkaSettings
from airflow_provider_kpipe.contract.offsets.origin import Origin
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.checkpoint import (
    Checkpoint,
    CommitMark,
    CommittedOffsets,
    PartitionCheckpoint,
)
from airflow_provider_kpipe.contract.progress.details import Details, Told
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.contract.progress.lease import Lease
from airflow_provider_kpipe.contract.progress.progress import Counts, Pieces, StoredProgress
from airflow_provider_kpipe.contract.progress.stop_request import StopRequest
from airflow_provider_kpipe.contract.redrive.ledger import LedgerEntry, SourceRecord
from airflow_provider_kpipe.contract.redrive.redrive import Redrive, RedriveOrder, Selection
from airflow_provider_kpipe.contract.redrive.result import PartitionRedrive, RedriveResult, Sample
from tests.kit.letters import LETTER

GOLDEN = Path(__file__).parents[1] / "golden"

CAUSES = (Cause("builtins.ValueError", "orders_pipeline:parse", 4, 0, 17), Cause("KeyError", "kafka", 2, 0, 19))
COUNTS = Counts(100, 90, 4, 3, 2, 1, 5, {"orders": 7, "kpipe:redriven": 2}, CAUSES)
PIPELINE = KafkaPipeline(
    name="orders",
    source=KafkaSource("orders", "kafka_a", "read_uncommitted", "skip", "x-correlation"),
    destination=KafkaDestination(
        "orders.enriched", "kafka_a", True, False, "random", "zstd", False, ["internal"], True
    ),
    segments=["orders_pipeline:parse", "orders_pipeline:Enrich"],
    dead_letter=KafkaDeadLetter("orders.dead", "connect", "envelope"),
    group_id="orders-v2",
    delivery="at_least_once",
    retry=RetryPolicy(3, 0.5, 2.0, 30.0, 0.1, ["TimeoutError"]),
    on_fault="stop_partition",
    max_dead_letters=10,
    max_dead_letter_ratio=0.25,
    partitions=PartitionScaling(
        "relax_ordering_within_partition", 4, 8, "stop_accepting_new_work_and_yield", True, "orders.events"
    ),
    chunk_records=1_000,
    chunk_seconds=1.5,
    transaction_seconds=30.0,
    segment_timeout=2.5,
    worker_memory_mb=1_024,
)
PLAN = Plan(
    run_key="dag/run/plan",
    number=12,
    pipeline="orders",
    group="orders-v2",
    working_group="orders-v2",
    topic="orders",
    topic_id="c2Vzc2lvbg",
    isolation_level="read_uncommitted",
    continues_group=True,
    dry_run=False,
    created_at="2026-01-31T12:00:00.000+00:00",
    topic_partitions=2,
    ranges=(
        PartitionRange(0, 5, 50, 4, (20, 30), ((40, 45),), 0, Origin(2, 4), Origin(2, 4), 7),
        PartitionRange(1, 0, 0, None),
    ),
    metadata_bytes=2_500,
    owner=PIPELINE.owner,
)
REDRIVE = Redrive(
    target="source",
    selection=Selection("orders", "ValueError", 1_769_860_800_000, 1_769_947_200_000, Coordinates("orders", 3, 5)),
    max_attempts=3,
    parking_topic="orders.parked",
    ledger_topic="orders.dead.redriven",
    source_topic="orders",
    each_letter=True,
)

DOCUMENTS: tuple[Document, ...] = (
    PIPELINE,
    PLAN,
    Job(PIPELINE, PLAN, 13, 1_769_860_800.5, REDRIVE, 30.5, (0, 17)),
    KafkaSettings({"linger.ms": "5"}, {"acks": "all"}, {"url": "http://one"}, {"url": "http://two"}),
    StoredProgress(
        run_key="dag/run/plan",
        number=12,
        topic_id="c2Vzc2lvbg",
        origin=Origin(2, 4),
        start=5,
        end=50,
        counts=COUNTS,
        owner=PIPELINE.owner,
        reason="offset 17: no amount",
        stops_run=True,
        ended="stopped",
        lease=Lease(12, 13, 7),
        took_over="dag/before/plan",
        inherited=Counts(3, 2, 1),
        pieces=3,
        unsettled=Pieces(11, 2),
        done=((40, 45), (47, 48)),
        seconds=1.25,
        is_detailed=True,
    ),
    Details("dag/run/plan", 12, "offset 17: no amount", Told({"orders": 7}, CAUSES), Told({"orders": 2}, CAUSES)),
    CommitMark("dag/run/plan", 12, "c2Vzc2lvbg", Origin(2, 4), PIPELINE.owner, ((40, 45),)),
    Checkpoint(
        "dag/run/plan",
        "orders",
        "orders-v2",
        "orders",
        (PartitionCheckpoint(0, 5, 50, 17, False, "offset 17: no amount", COUNTS),),
    ),
    CommittedOffsets("orders-v2", "orders", {0: 17, 3: 50}),
    StopRequest(13, "the task was stopped"),
    DrainTarget("orders-v2", "orders", "read_committed", {0: 50, 1: 0}, 1_769_860_800_000, (0, 1), "c2Vzc2lvbg", 12),
    LedgerEntry(
        "dag/run/redrive",
        "redriven",
        "2026-01-31T12:00:00+00:00",
        SourceRecord("orders", "orders", 3, 5, 1_700_000_000_000),
    ),
    REDRIVE,
    RedriveOrder(PLAN, REDRIVE),
    RedriveResult(
        run_key="dag/run/redrive",
        pipeline="orders",
        topic="orders.dead",
        target="source",
        dry_run=True,
        complete=False,
        outcomes={"redriven": 3},
        written=3,
        dead_lettered=1,
        partitions=(PartitionRedrive(0, 0, 9, 4, False, "fenced", 4, 3, 1, {"redriven": 3}, {"orders": 3}, CAUSES),),
        exception_classes={"ValueError": 3},
        pipelines={"orders": 3},
        samples=(
            Sample("orders.dead-0-1", "orders-3-5", "k", "orders", "ValueError", "no amount", "2026-01-31T12:00:01", 1),
        ),
        counted={"orders": 3},
        causes=CAUSES,
    ),
    Envelope.around(LETTER),
)


def name_of(document: Document) -> str:
    return f"{type(document).__name__}.json"


def written(document: Document) -> dict[str, Any]:
    """As a reader finds it."""
    found: dict[str, Any] = json.loads(json.dumps(document.to_json()))
    return found


def main() -> None:
    folder = GOLDEN / __version__
    folder.mkdir(parents=True, exist_ok=True)
    for each in DOCUMENTS:
        text = json.dumps(each.to_json(), indent=1, ensure_ascii=False)
        (folder / name_of(each)).write_text(f"{text}\n")


if __name__ == "__main__":
    main()
