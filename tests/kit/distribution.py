"""Which tests run in one process, and which of them come first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

# Folders whose tests share what takes long to start: an Airflow, a warm Spark.
TOGETHER = ("tests/airflow/", "tests/spark/")
# The tests in them that have an own one, or none.
APART = (
    "tests/airflow/test_demo.py",
    "tests/airflow/test_gate.py",
    "tests/airflow/test_postgresql.py",
    "tests/spark/test_batch_job.py",
    "tests/spark/test_crash_job.py",
    "tests/spark/test_formats_job.py",
    "tests/spark/test_leaks.py",
    "tests/spark/test_overdue_job.py",
    "tests/spark/test_redrive_job.py",
    "tests/spark/test_standalone_cluster.py",
)
# Files of tests that take long, each for itself, and share nothing.
SPREAD = (
    "tests/broker/test_admission.py",
    "tests/broker/test_broker_failures.py",
    "tests/broker/test_cluster_gone.py",
    "tests/interleaving/test_planted_faults.py",
    "tests/simulation/test_simulation.py",
    "tests/spark/test_crash_job.py",
    "tests/spark/test_overdue_job.py",
    "tests/spark/test_redrive_job.py",
)
# By how their paths begin; the longest that fits counts. What waits most of the time stands beside what computes, and
# what is short comes last, so that all processes end together.
ORDER = (
    "tests/airflow/",
    "tests/spark/",
    "tests/interleaving/test_interleaving.py",
    "tests/broker/test_broker_failures.py",
    "tests/packaging/test_wheel.py",
    "tests/packaging/test_docker.py",
    "tests/airflow/test_demo.py",
    "tests/simulation/",
    "tests/spark/test_overdue_job.py",
    "tests/airflow/test_postgresql.py",
    "",
    "tests/unit/",
)


class InOneProcess(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """The tests of a file run in one process, since what a module shares is started once then."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        # As they are collected, not the file with the most tests first.
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        file, _, _ = nodeid.partition("::")
        if file in SPREAD:
            return nodeid
        return file if file in APART else next(filter(file.startswith, TOGETHER), file)


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    return sorted(items, key=lambda item: _rank(item.nodeid))


def _rank(nodeid: str) -> int:
    return ORDER.index(max(filter(nodeid.startswith, ORDER), key=len))
