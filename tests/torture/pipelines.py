"""The pipelines under torture: one of every kind, each with topics of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from airflow_provider_kpipe import KafkaDeadLetter, KafkaDestination, KafkaPipeline, KafkaSource, PartitionScaling
from airflow_provider_kpipe.contract.kafka_names import progress_group_of
from airflow_provider_kpipe.contract.redrive.redrive import ledger_topic_of
from tests.torture.history import Fate, History, Kind

PARTITIONS = 3
LARGEST_OUTPUT = 20_000
MOST_SLOTS = 16
FATES: Mapping[Kind, Fate] = {"good": 1, "poison": "dead", "filtered": 0, "too_large": "dead"}
MENDED: Mapping[Kind, Fate] = {"good": 1, "poison": 1, "filtered": 0, "too_large": "dead"}
RELAXED: Final = "relax_ordering_within_partition"


@dataclass(frozen=True)
class Victim:
    """A pipeline, and what else is done beside its runs."""

    pipeline: KafkaPipeline
    does: frozenset[str] = frozenset()
    """redrive, backfill, publish, reset, delete_records, retention."""
    master: str = "local[2]"

    @property
    def name(self) -> str:
        return self.pipeline.name

    @property
    def source(self) -> str:
        return self.pipeline.source.topic

    @property
    def dead(self) -> str:
        return f"{self.name}.dead"

    @property
    def fixed(self) -> KafkaPipeline:
        return replace(self.pipeline, segments=("torture_kit:Fixed",))

    @property
    def topics(self) -> dict[str, int]:
        return dict.fromkeys((self.source, f"{self.name}.out", self.dead), PARTITIONS)

    @property
    def topic_config(self) -> dict[str, dict[str, str]]:
        return {f"{self.name}.out": {"max.message.bytes": str(LARGEST_OUTPUT)}}

    @property
    def progress_groups(self) -> list[str]:
        """Name those of all pieces, if its partitions are cut."""
        slots = MOST_SLOTS if self.pipeline.partitions.relaxed else 1
        return [progress_group_of(self.pipeline.group, slot) for slot in range(slots)]

    @property
    def ledger(self) -> str:
        return ledger_topic_of(self.pipeline)

    def declare(self, history: History) -> None:
        pipeline = self.pipeline
        history.declared(
            pipeline=self.name,
            group=pipeline.group,
            source=self.source,
            destination=pipeline.destination.topic,
            dead_letter=self.dead,
            delivery=pipeline.delivery,
            ordered=not pipeline.partitions.relaxed,
            fates=FATES,
            on_data_loss=pipeline.source.on_data_loss,
        )


def make(name: str, *does: str, segment: str = "SortOut", master: str = "local[2]", **spec: Any) -> Victim:
    source = KafkaSource(f"{name}.in", **spec.pop("source", {}))
    destination = KafkaDestination(f"{name}.out", **spec.pop("destination", {}))
    chunks = {"chunk_records": 80, "chunk_seconds": 1.0, "max_dead_letter_ratio": None}
    pipeline = KafkaPipeline(
        name,
        source,
        destination,
        segments=(f"torture_kit:{segment}",),
        dead_letter=KafkaDeadLetter(f"{name}.dead"),
        **{**chunks, **spec},
    )
    return Victim(pipeline, frozenset(does), master)


def victims() -> list[Victim]:
    """Make one of every kind."""
    in_order = {"keep_partition": True}
    return [
        make("ordered", "redrive", destination=in_order),
        make(
            "pieces", "backfill", master="local[2,3]",
            partitions=PartitionScaling(RELAXED, rebalance_mode="stop_accepting_new_work_and_yield"),
        ),
        make(
            "parallel", "reset", "publish", destination=in_order,
            partitions=PartitionScaling("parallelize_across_partitions", max_concurrent_partitions=3),
        ),
        make("batch", "backfill", segment="SortOutBatch", destination=in_order, master="local[2,3]"),
        make(
            "async", "redrive", segment="SortOutAsync",
            partitions=PartitionScaling(RELAXED, max_in_flight_per_partition=8),
        ),
        make("threads", "reset", partitions=PartitionScaling(RELAXED, max_in_flight_per_partition=4)),
        make("atleast", "redrive", delivery="at_least_once", destination=in_order),
        make("lossy", "delete_records", "retention", source={"on_data_loss": "skip"}, destination=in_order),
    ]  # fmt: skip
