"""What unit tests share. Airflow, once imported, keeps its files in a folder of the test run's own."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from typing import Any, cast

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from airflow_provider_kpipe.record import SourceMessage

if "AIRFLOW_HOME" not in os.environ:
    os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="kpipe-unit-airflow-")
    atexit.register(shutil.rmtree, os.environ["AIRFLOW_HOME"], ignore_errors=True)


@pytest.fixture
def message() -> Callable[..., SourceMessage]:
    """Makes a message as it is consumed: `message(5, b"value")` is the one at offset 5."""

    def make(offset: int = 0, value: bytes | None = b"v", **parts: Any) -> SourceMessage:
        parts = {
            "topic": "orders",
            "partition": 3,
            "key": b"k",
            "timestamp": (TIMESTAMP_CREATE_TIME, 1_700_000_000_000),
            **parts,
        }
        # Its coordinates are there, unlike those of a message in general.
        return cast("SourceMessage", Message(offset=offset, value=value, **parts))

    return make
