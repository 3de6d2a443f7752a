"""The pipeline of the soak: each record says itself what has to become of it."""

from __future__ import annotations

import json

from airflow_provider_kpipe import KafkaDeadLetter, KafkaDestination, KafkaPipeline, KafkaSource, Record, SegmentContext

PARKED = "soak.parked"
# How the ids of redrive runs begin, by which the segment knows them.
REDRIVES = "redrive"

soak = KafkaPipeline(
    name="soak",
    source=KafkaSource(topic="soak"),
    segments=["soak_pipeline:Sort"],
    destination=KafkaDestination(topic="soak.out"),
    dead_letter=KafkaDeadLetter(topic="soak.dead"),
    # Several transactions for each partition of a run.
    chunk_records=300,
)


class Sort:
    """Writes the good, drops the unwanted, fails the poison, and fails the mendable until they are redriven."""

    def open(self, context: SegmentContext) -> None:
        self.is_redrive = REDRIVES in context.run_key

    def process(self, record: Record) -> Record | None:
        told = json.loads(record.value)
        if told["kind"] == "unwanted":
            return None
        if told["kind"] == "poison":
            raise ValueError("poison, whenever it comes")
        if told["kind"] == "mendable" and not self.is_redriven(record):
            raise KeyError("what it needs is not there yet")
        return record

    def is_redriven(self, record: Record) -> bool:
        """Through the segments by a redrive, or put back by one into the source topic."""
        return self.is_redrive or any(name.startswith("kpipe-") for name, _ in record.headers)
