from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG, Param
from airflow.sdk.exceptions import AirflowFailException, ParamValidationError

from airflow_provider_kpipe.contract.offsets.limits import At, Explicit, Latest
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline
from airflow_provider_kpipe.forms.backfill import FIELDS
from airflow_provider_kpipe.forms.fields import FormError
from airflow_provider_kpipe.operators import plan as plan_module
from airflow_provider_kpipe.operators.backfill_plan import KpipeBackfillPlanOperator, backfill_params
from airflow_provider_kpipe.planning.ranges import Wishes
from tests.kit.task_fixtures import changed

NOON = "2026-01-31T12:00:00+00:00"


@pytest.fixture
def operator(pipeline: KafkaPipeline) -> KpipeBackfillPlanOperator:
    with DAG("backfill", schedule=None, params=backfill_params()):
        return KpipeBackfillPlanOperator(task_id="plan", pipeline=pipeline)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("start", "earliest"),
        ("end", "latest"),
        ("partitions", [0]),
        ("max_records", 5),
        ("max_records_per_partition", 5),
        ("publish", False),
        ("dry_run", True),
    ],
)
def test_fields_of_the_form_are_no_arguments(pipeline: KafkaPipeline, name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"takes no '{name}' \(it is .*\): the form of the DAG run decides; leave it"):
        KpipeBackfillPlanOperator(task_id="plan", pipeline=pipeline, **{name: value})


def fill_in(context: dict[str, Any], **form: Any) -> dict[str, Any]:
    """Params as a task sees them: the defaults, and what the run's conf says instead."""
    context["dag_run"].conf = form
    context["params"] = {**{name: param.value for name, param in backfill_params().items()}, **form}
    return context


def test_the_form_asks_for_every_field_there_is() -> None:
    assert tuple(backfill_params()) == FIELDS


def test_the_form_can_be_sent_with_nothing_filled_in() -> None:
    assert {name: param.resolve() for name, param in backfill_params().items()} == {
        **dict.fromkeys(FIELDS),
        "dry_run": False,
        "publish": False,
    }


SENT: list[tuple[str, Any]] = [
    ("window_start", None),
    ("window_start", NOON),
    ("window_start", "2026-01-31T12:00:00.000Z"),
    ("window_end", NOON),
    ("start_offsets", {"0": 1200}),
    ("start_offsets", None),
    ("end_offsets", {"0": 1300, "1": 5}),
    ("partitions", "0, 2, 5"),
    ("partitions", ["0", "2"]),
    ("partitions", [0, 2]),
    ("partitions", ""),
    ("max_records", 5_000),
    ("max_records", "5000"),
    ("max_records", None),
    ("dry_run", True),
    ("publish", True),
]


@pytest.mark.parametrize(("field", "value"), SENT, ids=[f"{field}={value!r}" for field, value in SENT])
def test_the_form_takes_what_it_sends(field: str, value: Any) -> None:
    assert backfill_params()[field].resolve(value) == value


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("start_offsets", [1]),
        ("start_offsets", 5),
        ("max_records", 1.5),
        ("dry_run", "yes"),
        ("publish", None),
        ("window_start", 5),
    ],
    ids=repr,
)
def test_the_form_refuses_the_wrong_kind_of_value_at_once(field: str, value: Any) -> None:
    with pytest.raises(ParamValidationError):
        backfill_params()[field].resolve(value)


def test_every_field_has_a_title_and_says_what_it_is_for() -> None:
    for param in backfill_params().values():
        assert isinstance(param, Param)
        assert param.schema["title"]
        assert param.description


WISHES: list[tuple[dict[str, Any], tuple[Wishes, bool, bool]]] = [
    ({"window_start": NOON}, (Wishes(At(1_769_860_800_000), Latest()), False, False)),
    (
        {"window_start": NOON, "partitions": "0, 2", "max_records": "100", "publish": True},
        (Wishes(At(1_769_860_800_000), Latest(), (0, 2), 100), True, False),
    ),
    (
        {"start_offsets": {"0": 5}, "end_offsets": {"0": 9}, "dry_run": True},
        (Wishes(Explicit({0: 5}), Explicit({0: 9})), False, True),
    ),
]


@pytest.mark.parametrize(("form", "wishes"), WISHES, ids=[repr(form) for form, _ in WISHES])
def test_the_form_becomes_wishes(operator: Any, context: Any, form: dict[str, Any], wishes: Any) -> None:
    assert operator.wishes(fill_in(context, **form)) == wishes


def test_a_backfill_never_continues_the_group(operator: Any, context: Any) -> None:
    assert not operator.wishes(fill_in(context, window_start=NOON))[0].continues_group


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({}, "Nothing says where to start"),
        ({"window_start": NOON, "windw_end": NOON}, "The field 'windw_end' is not known. Known are: window_start"),
        ({"window_start": "soon"}, "window_start is 'soon', which is not a date and time"),
    ],
    ids=["nothing", "unknown field", "no date"],
)
def test_a_form_that_makes_no_backfill_fails_for_good_before_kafka_is_asked(
    operator: Any, context: Any, monkeypatch: pytest.MonkeyPatch, form: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr(plan_module, "KpipeHook", None)
    fill_in(context, **form)
    with pytest.raises(AirflowFailException) as failure:
        operator.execute(context)
    assert said in str(failure.value)


def test_params_of_the_dag_that_are_no_fields_of_the_form_are_left_alone(pipeline: KafkaPipeline, context: Any) -> None:
    with DAG("backfill", schedule=None, params={**backfill_params(), "team": "ours"}):
        operator = KpipeBackfillPlanOperator(task_id="plan", pipeline=pipeline)
    fill_in(context, window_start=NOON, team="mine")
    assert operator.wishes(context)[0].start == At(1_769_860_800_000)


@pytest.mark.parametrize("run", [None, "without conf"])
def test_a_run_without_conf_has_nothing_unknown(operator: Any, context: Any, run: str | None) -> None:
    fill_in(context, window_start=NOON)
    context["dag_run"].conf = None
    if run is None:
        del context["dag_run"]
    assert operator.wishes(context)[0].start == At(1_769_860_800_000)


def test_a_field_that_the_dag_does_not_declare_is_not_taken_from_conf(pipeline: KafkaPipeline, context: Any) -> None:
    form = backfill_params()
    del form["publish"]
    with DAG("backfill", schedule=None, params=form):
        operator = KpipeBackfillPlanOperator(task_id="plan", pipeline=pipeline)
    said = {name: param.value for name, param in form.items()} | {"window_start": NOON}
    assert operator.wishes(changed(context, params=said))[1] is False
    with pytest.raises(FormError, match=r"The field .publish. is not known\. Known are: window_start, .*, dry_run\."):
        operator.wishes(changed(context, params={**said, "publish": True}))


def test_without_a_form_nothing_can_be_filled_in(pipeline: KafkaPipeline, context: Any) -> None:
    operator = KpipeBackfillPlanOperator(task_id="plan", pipeline=pipeline)
    with pytest.raises(FormError, match=r"The field .window_start. is not known\. Known are: none\. The params of"):
        operator.wishes(changed(context, params={"window_start": NOON}))
