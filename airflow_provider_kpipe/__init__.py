"""Bounded Kafka-to-Kafka runs on Spark, orchestrated by Airflow."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_kpipe.contract.dead_letters.dead_letter import DeadLetter
    from airflow_provider_kpipe.contract.dead_letters.messages import read_dead_letter
    from airflow_provider_kpipe.contract.documents import OtherVersionError
    from airflow_provider_kpipe.contract.pipeline.declaration import (
        KafkaDeadLetter,
        KafkaDestination,
        KafkaPipeline,
        KafkaSource,
    )
    from airflow_provider_kpipe.contract.pipeline.policies import RetryPolicy
    from airflow_provider_kpipe.contract.pipeline.scaling import PartitionScaling
    from airflow_provider_kpipe.record import Record
    from airflow_provider_kpipe.segments import SegmentContext, StopPartitionError, batch_segment

__version__ = "0.1.0"

_CONTRACT = "airflow_provider_kpipe.contract.pipeline.declaration"
_HOMES = {
    "DeadLetter": "airflow_provider_kpipe.contract.dead_letters.dead_letter",
    "KafkaDeadLetter": _CONTRACT,
    "KafkaDestination": _CONTRACT,
    "KafkaPipeline": _CONTRACT,
    "KafkaSource": _CONTRACT,
    "OtherVersionError": "airflow_provider_kpipe.contract.documents",
    "PartitionScaling": "airflow_provider_kpipe.contract.pipeline.scaling",
    "Record": "airflow_provider_kpipe.record",
    "RetryPolicy": "airflow_provider_kpipe.contract.pipeline.policies",
    "SegmentContext": "airflow_provider_kpipe.segments",
    "StopPartitionError": "airflow_provider_kpipe.segments",
    "batch_segment": "airflow_provider_kpipe.segments",
    "read_dead_letter": "airflow_provider_kpipe.contract.dead_letters.messages",
}

__all__ = [
    "DeadLetter",
    "KafkaDeadLetter",
    "KafkaDestination",
    "KafkaPipeline",
    "KafkaSource",
    "OtherVersionError",
    "PartitionScaling",
    "Record",
    "RetryPolicy",
    "SegmentContext",
    "StopPartitionError",
    "__version__",
    "batch_segment",
    "read_dead_letter",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
