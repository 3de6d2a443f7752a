from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG, Param
from airflow.sdk.definitions.param import process_params
from airflow.sdk.exceptions import ParamValidationError

from airflow_provider_kpipe.contract.form_fields import FormError
from airflow_provider_kpipe.contract.pipeline import KafkaPipeline
from airflow_provider_kpipe.operators.backfill_plan import KpipeBackfillPlanOperator, backfill_params
from airflow_provider_kpipe.operators.forms import with_fixed
from airflow_provider_kpipe.operators.redrive import KpipeRedriveOperator, redrive_params


def of_a_run(form: dict[str, Param], conf: dict[str, Any], pipeline: KafkaPipeline) -> dict[str, Any]:
    """What Airflow makes of a DAG's params and a run's conf, in the task."""
    with DAG("dag", schedule=None, params=form) as dag:
        task = KpipeBackfillPlanOperator(task_id="task", pipeline=pipeline)
    return process_params(dag, task, conf, suppress_exception=False)


FIXED: list[tuple[str, Any, Any]] = [
    ("window_start", "2026-01-31T12:00:00Z", None),
    ("window_end", None, "2026-01-31T12:00:00Z"),
    ("start_offsets", {"0": 5}, {"0": 6}),
    ("partitions", "0, 2", ""),
    ("max_records", 5_000, None),
    ("dry_run", True, False),
    ("publish", False, True),
]


@pytest.mark.parametrize(("field", "value", "other"), FIXED, ids=[each for each, _, _ in FIXED])
def test_a_field_that_is_fixed_cannot_be_lifted_by_conf(
    pipeline: KafkaPipeline, field: str, value: Any, other: Any
) -> None:
    form = backfill_params(fixed={field: value})
    assert of_a_run(form, {}, pipeline)[field] == value
    assert of_a_run(form, {field: value}, pipeline)[field] == value
    with pytest.raises(ParamValidationError, match="was expected"):
        of_a_run(form, {field: other}, pipeline)


@pytest.mark.parametrize(
    ("field", "value"), [("target", "output"), ("max_attempts", 3), ("pipeline", "orders"), ("dry_run", True)]
)
def test_any_field_of_a_redrive_can_be_fixed(pipeline: KafkaPipeline, field: str, value: Any) -> None:
    form = redrive_params(fixed={field: value})
    assert (form[field].value, form[field].schema["const"]) == (value, value)
    assert form[field].schema["title"] == redrive_params()[field].schema["title"]
    with DAG("dag", schedule=None, params=form):
        operator = KpipeRedriveOperator(task_id="redrive", pipeline=pipeline)
    assert operator.target == form["target"].value


def test_the_other_fields_stay_as_they_are() -> None:
    fixed, free = backfill_params(fixed={"publish": False}), backfill_params()
    assert list(fixed) == list(free)
    assert [name for name in free if fixed[name].dump() != free[name].dump()] == ["publish"]


@pytest.mark.parametrize(
    ("fixed", "refused", "said"),
    [
        ({"publsh": False}, FormError, "The field 'publsh' is not known. Known are: window_start"),
        ({"publish": "no"}, ParamValidationError, "'no' is not of type 'boolean'"),
    ],
)
def test_what_cannot_be_fixed_fails_where_it_is_written(fixed: Any, refused: type[Exception], said: str) -> None:
    with pytest.raises(refused, match=said):
        with_fixed(backfill_params(), fixed)
