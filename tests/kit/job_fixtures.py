"""Fixtures of whatever submits a job."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.contract.plan import Plan
from tests.kit.plans import plan_of


@pytest.fixture(autouse=True)
def temp_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temp folder of the test's own: a submission cleans up in it what others have left."""
    folder = tmp_path_factory.mktemp("temp")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def plan() -> Plan:
    """Ranges of 100, 300 and no offsets."""
    return plan_of(PartitionRange(0, 0, 100, 0), PartitionRange(1, 1_000, 1_300, None), PartitionRange(2, 5, 5, 5))


@pytest.fixture
def job(plan: Plan) -> Job:
    return Job(KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out")), plan)
