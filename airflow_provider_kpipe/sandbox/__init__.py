"""A real single-node Apache Kafka, started from its jars, for tests of pipelines and first steps."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_kpipe.sandbox.broker import SandboxBroker
    from airflow_provider_kpipe.sandbox.errors import SandboxError
    from airflow_provider_kpipe.sandbox.java import FAST_JVM, SMALL_JVM, Jvm
    from airflow_provider_kpipe.sandbox.tools import kafka_consumer_groups, run_tool
    from airflow_provider_kpipe.sandbox.topics import create_topics

__all__ = [
    "FAST_JVM",
    "SMALL_JVM",
    "Jvm",
    "SandboxBroker",
    "SandboxError",
    "create_topics",
    "kafka_consumer_groups",
    "run_tool",
]

_MODULES = {
    "FAST_JVM": "java",
    "SMALL_JVM": "java",
    "Jvm": "java",
    "SandboxBroker": "broker",
    "SandboxError": "errors",
    "create_topics": "topics",
    "kafka_consumer_groups": "tools",
    "run_tool": "tools",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
