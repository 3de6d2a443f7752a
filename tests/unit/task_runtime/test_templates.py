from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.bases.operator import BaseOperator

from airflow_provider_kpipe.task_runtime.templates import is_template


@pytest.mark.parametrize(
    "value",
    [
        "{{ data_interval_start }}",
        "{% if params.all %}earliest{% endif %}",
        ["{{ params.partition }}"],
        {"0": "{{ params.first }}"},
        str.upper,
    ],
    ids=repr,
)
def test_a_text_that_airflow_renders_is_a_template(value: Any) -> None:
    assert is_template(value)


def test_the_output_of_another_task_is_a_template() -> None:
    with DAG("dag", schedule=None):
        task = BaseOperator(task_id="task")
    output: Any = task.output
    assert is_template(output)
    assert is_template(output["offsets"])


@pytest.mark.parametrize("value", [None, "earliest", 5, {"0": 5}, [0, 2], "{'0': 5}", '{"0": {"a": 1}}'], ids=repr)
def test_everything_else_is_as_it_is_written(value: Any) -> None:
    assert not is_template(value)
