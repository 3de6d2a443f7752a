from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline
from airflow_provider_kpipe.operators.spark_job import SparkJobOperator


@pytest.mark.parametrize(("span", "seconds"), [(timedelta(minutes=1), 60), (1.5, 1.5), (None, None)], ids=repr)
def test_a_run_time_is_a_span_of_time(pipeline: KafkaPipeline, span: Any, seconds: float | None) -> None:
    assert SparkJobOperator(task_id="run", pipeline=pipeline, max_run_time=span).max_run_time == seconds


@pytest.mark.parametrize("wrong", [0, -1, True, "1 hour", timedelta(0)], ids=repr)
def test_anything_else_is_refused_when_the_dag_is_parsed(pipeline: KafkaPipeline, wrong: Any) -> None:
    with pytest.raises(ValueError, match="use a timedelta, or seconds above 0"):
        SparkJobOperator(task_id="run", pipeline=pipeline, max_run_time=wrong)
