from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG, Param
from airflow.sdk.definitions.param import process_params
from airflow.sdk.exceptions import ParamValidationError

from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline
from airflow_provider_kpipe.forms.fields import FormError
from airflow_provider_kpipe.forms.params import with_fixed
from airflow_provider_kpipe.operators.backfill_plan import KpipeBackfillPlanOperator, backfill_params
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
def test_a_field_that_cannot_be_fixed_fails_in_its_declaration(fixed: Any, refused: type[Exception], said: str) -> None:
    with pytest.raises(refused, match=said):
        with_fixed(backfill_params(), fixed)


@pytest.mark.parametrize(
    ("fixed", "said"),
    [
        ({"window_start": "soon"}, "window_start is 'soon', which is not a date and time"),
        ({"window_end": "later"}, "window_end is 'later'"),
        ({"start_offsets": {"a": 1}}, "start_offsets cannot be read"),
        ({"start_offsets": {"0": 5}, "end_offsets": {"0": 5}}, "Partition 0 ends at 5"),
        ({"partitions": "first"}, "partitions has 'first'"),
        ({"max_records": 0}, "max_records is 0. Write a whole number from 1"),
    ],
    ids=repr,
)
def test_a_backfill_whose_form_starts_with_what_no_run_can_take_is_refused(
    pipeline: KafkaPipeline, fixed: dict[str, Any], said: str
) -> None:
    for form in (backfill_params(fixed=fixed), {**backfill_params(), **{name: Param(fixed[name]) for name in fixed}}):
        with DAG("dag", schedule=None, params=form), pytest.raises(FormError, match=said):
            KpipeBackfillPlanOperator(task_id="plan", pipeline=pipeline)


@pytest.mark.parametrize(
    ("fixed", "said"),
    [
        ({"occurred_from": "soon"}, "occurred_from is 'soon', which is not a date and time"),
        ({"record": "that one"}, "record is 'that one', which names no record"),
        ({"end_offsets": {"0": -1}}, "end_offsets cannot be read"),
        ({"max_attempts": 0}, "max_attempts is 0. Write a whole number from 1"),
    ],
    ids=repr,
)
def test_a_redrive_whose_form_starts_with_what_no_run_can_take_is_refused(
    pipeline: KafkaPipeline, fixed: dict[str, Any], said: str
) -> None:
    with DAG("dag", schedule=None, params=redrive_params(fixed=fixed)), pytest.raises(FormError, match=said):
        KpipeRedriveOperator(task_id="redrive", pipeline=pipeline)


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ({"max_attempts": 0}, "max_attempts is 0"),
        ({"max_attempts": True}, "max_attempts is True"),
        ({"each_letter": "no"}, "each_letter is 'no'. Choose true or false."),
    ],
    ids=repr,
)
def test_a_redrive_of_which_its_operator_says_what_makes_no_sense_is_refused(
    pipeline: KafkaPipeline, argument: dict[str, Any], said: str
) -> None:
    with pytest.raises(FormError, match=said):
        KpipeRedriveOperator(task_id="redrive", pipeline=pipeline, **argument)


def test_fixed_takes_a_dictionary_only() -> None:
    names: Any = ["publish"]
    with pytest.raises(FormError, match=r"fixed=\['publish'\]: use a dictionary"):
        backfill_params(fixed=names)
