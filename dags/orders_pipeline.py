"""The orders pipeline: its topics, and its segments, which run on the executors."""

from __future__ import annotations

import json

from airflow_provider_kpipe import KafkaDeadLetter, KafkaDestination, KafkaPipeline, KafkaSource, Record, SegmentContext

orders = KafkaPipeline(
    name="orders",
    source=KafkaSource(topic="orders"),
    segments=["orders_pipeline:parse", "orders_pipeline:Enrich"],
    destination=KafkaDestination(topic="orders.enriched"),
    dead_letter=KafkaDeadLetter(topic="orders.dead"),
    # Short chunks, so that a user can watch the progress over a small topic.
    chunk_records=10_000,
)


def parse(record: Record) -> Record:
    """Turn text into an order; raise if it is none, which makes the record a dead letter."""
    if record.value is None:
        raise ValueError("the order has no value")
    order = json.loads(record.value)
    for name in ("order_id", "quantity", "unit_price"):
        if name not in order:
            raise KeyError(f"the order lacks {name!r}")
    record.value = order
    return record


class Enrich:
    """Segment that adds the fields that readers of orders.enriched need. It can hold what is costly to open."""

    def open(self, context: SegmentContext) -> None:
        self.run_key = context.run_key

    def process(self, record: Record) -> Record:
        order = record.value
        order["total"] = round(order["quantity"] * order["unit_price"], 2)
        order["enriched_by"] = self.run_key
        record.value = json.dumps(order)
        return record
