"""Jobs over a plan as the run task has them, up to where Spark would begin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.running.job_run import JobRun
from airflow_provider_kpipe.spark.submission import Submission
from tests.kit.pipelines import Bench


@contextmanager
def without_spark() -> Iterator[list[Submission]]:
    """Collect the submissions that would have started Spark."""
    found: list[Submission] = []
    with patch.object(Submission, "run", lambda self: found.append(self)):
        yield found


def job_run(bench: Bench, job: Job) -> JobRun:
    nothing: Any = {}
    return JobRun(
        job,
        bench.kafka,
        conn_id="spark_default",
        spark_conf=nothing,
        py_files=(),
        submit_options=nothing,
        progress_interval=60.0,
    )
