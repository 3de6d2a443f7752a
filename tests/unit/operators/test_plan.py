from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.execution_time.context import NEVER_EXPIRE

from airflow_provider_kpipe.contract.offsets.limits import At, Committed, Explicit, Latest, OffsetLimit
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline, PipelineError
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.checkpoint import COMMITTED_KEY, CommittedOffsets
from airflow_provider_kpipe.exceptions import KafkaUnavailableError, PlanError, UnknownTopicError, UnreachableError
from airflow_provider_kpipe.hooks.kpipe import KpipeHook
from airflow_provider_kpipe.operators import plan as module
from airflow_provider_kpipe.operators.plan import PLAN_KEY, KpipePlanOperator
from airflow_provider_kpipe.planning.ranges import Wishes
from tests.kit.task_state import TaskState

MakePlan = Callable[..., Plan]


@pytest.fixture
def operator(pipeline: KafkaPipeline) -> Callable[..., KpipePlanOperator]:
    return lambda **wishes: KpipePlanOperator(task_id="plan", pipeline=pipeline, **wishes)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, plan: MakePlan) -> list[dict[str, Any]]:
    """What the cluster was asked for; it answers with a plan of one range."""
    calls: list[dict[str, Any]] = []

    def make(pipeline: KafkaPipeline, wishes: Wishes, settings: Any, **more: Any) -> Plan:
        calls.append({"wishes": wishes, **more})
        return plan((0, 10), created_at=more["created_at"], dry_run=more["dry_run"])

    monkeypatch.setattr(KpipeHook, "get_conn", lambda self: {})
    monkeypatch.setattr(module, "check_needed_topics", lambda pipeline, source_settings, written_settings: None)
    monkeypatch.setattr(module, "check_retention", lambda pipeline, source, written_to, plan: None)
    monkeypatch.setattr(module, "check_letter_room", lambda pipeline, source, written_to: None)
    monkeypatch.setattr(module, "make_plan", make)
    return calls


def wishes_of(operator: KpipePlanOperator, context: Any) -> Wishes:
    return operator.wishes(context)[0]


LIMITS: list[tuple[Any, OffsetLimit]] = [
    ("committed", Committed()),
    ("committed-or-latest", Committed("latest")),
    ("2026-01-31T12:00:00+00:00", At(1_769_860_800_000)),
    ('{"0": 1200, "1": 900}', Explicit({0: 1200, 1: 900})),
    (' {"0": 5}\n', Explicit({0: 5})),
    ({"0": 5}, Explicit({0: 5})),
]


@pytest.mark.parametrize(("start", "limit"), LIMITS, ids=[repr(start) for start, _ in LIMITS])
def test_a_start_is_read_as_a_template_gives_it(operator: Any, context: Any, start: Any, limit: OffsetLimit) -> None:
    assert wishes_of(operator(start=start), context).start == limit


@pytest.mark.parametrize(
    ("end", "limit"), [("latest", Latest()), ('{"0": 9}', Explicit({0: 9})), ("1970-01-01T00:00:01", At(1_000))]
)
def test_an_end_is_read_as_a_template_gives_it(operator: Any, context: Any, end: Any, limit: OffsetLimit) -> None:
    assert wishes_of(operator(end=end), context).end == limit


@pytest.mark.parametrize(
    ("partitions", "read"),
    [
        (None, None),
        ("", None),
        ("None", None),
        ("0, 2", (0, 2)),
        ("12", (12,)),
        ("[0, 2]", (0, 2)),
        ([0, 2], (0, 2)),
        (("1", 3), (1, 3)),
        (3, (3,)),
    ],
    ids=repr,
)
def test_partitions_are_read_as_a_template_gives_them(operator: Any, context: Any, partitions: Any, read: Any) -> None:
    assert wishes_of(operator(partitions=partitions), context).partitions == read


@pytest.mark.parametrize(("cap", "read"), [(None, None), ("", None), ("None", None), ("5000", 5_000), (7, 7)], ids=repr)
@pytest.mark.parametrize("name", ["max_records", "max_records_per_partition"])
def test_a_cap_is_read_as_a_template_gives_it(operator: Any, context: Any, name: str, cap: Any, read: Any) -> None:
    assert getattr(wishes_of(operator(**{name: cap}), context), name) == read


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"start": "yesterday"}, "start is 'yesterday': use 'committed'"),
    ({"start": "{'0': 5}"}, "a template gives JSON with `| tojson`"),
    ({"start": '{"0": -5}'}, "start has '0': -5"),
    ({"start": '{"0": 5, "0": 7}'}, "'0' is named twice, with 5 and with 7: keep one"),
    ({"start": "latest"}, "start='latest': a run ends at the end of the log as it is when the run is planned"),
    ({"end": "committed"}, "end='committed': use 'latest'"),
    ({"end": "earliest"}, "end='earliest': use 'latest'"),
    ({"partitions": "0; 2"}, "partitions is '0;': a whole number is needed"),
    ({"partitions": [None]}, "partitions"),
    ({"partitions": [0.5]}, "partitions is 0.5: a whole number is needed"),
    ({"partitions": [True]}, "partitions is True: a whole number is needed"),
    ({"max_records": "many"}, "max_records is 'many': a whole number is needed"),
    ({"max_records": "0"}, "max_records=0: a cap is a whole number from 1"),
    ({"max_records": 2.5}, "max_records"),
    ({"max_records": True}, "max_records"),
    ({"max_records_per_partition": "-1"}, "max_records_per_partition=-1"),
]


@pytest.mark.parametrize(("wishes", "said"), REFUSED, ids=[repr(wishes) for wishes, _ in REFUSED])
def test_wishes_that_make_no_sense_fail_where_they_are_written(
    operator: Any, wishes: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=r".") as failure:
        operator(**wishes)
    assert said in str(failure.value)


@pytest.mark.parametrize(("wishes", "said"), REFUSED, ids=[repr(wishes) for wishes, _ in REFUSED])
def test_templates_that_make_no_sense_fail_for_good_and_name_the_wish(
    operator: Any, context: Any, asked: Any, wishes: dict[str, Any], said: str
) -> None:
    planned = operator(**dict.fromkeys(wishes, "{{ params.wish }}"))
    # As Airflow leaves them when it has rendered them.
    vars(planned).update(wishes)
    with pytest.raises(AirflowFailException) as failure:
        planned.execute(context)
    assert said in str(failure.value)
    assert asked == []


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ({"publish": "no"}, "publish='no': use True or False"),
        ({"dry_run": None}, "dry_run=None: use True or False"),
        ({"start": "2026-01-31", "end": "2026-01-31"}, "start and end are one moment"),
        ({"start": "2026-01-31", "end": "2026-01-30"}, "is after end 2026-01-30"),
    ],
    ids=repr,
)
def test_contradicting_arguments_fail_in_their_declaration(operator: Any, wishes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        operator(**wishes)


def test_a_task_without_a_pipeline_fails_where_it_is_written() -> None:
    with pytest.raises(PipelineError, match="pipeline='orders' is not a KafkaPipeline: declare one"):
        KpipePlanOperator(task_id="plan", pipeline=cast("Any", "orders"))


def test_every_wish_may_be_a_template() -> None:
    assert set(KpipePlanOperator.template_fields) >= {
        "start",
        "end",
        "partitions",
        "max_records",
        "max_records_per_partition",
    }


def test_a_plan_is_asked_for_under_the_key_of_its_run(operator: Any, context: Any, asked: Any) -> None:
    returned = operator(start="earliest", publish=True, dry_run=True).execute(context)
    ((call),) = asked
    assert (call["run_key"], call["publish"], call["dry_run"]) == ("dag/manual__2026/orders.plan", True, True)
    assert Plan.from_json(returned).created_at == call["created_at"]


def test_a_plan_whose_outputs_would_not_be_kept_fails(
    operator: Any, context: Any, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pipeline: KafkaPipeline, source: Any, written_to: Any, plan: Plan) -> None:
        raise PlanError(f"all {plan.offsets_planned} would be deleted")

    monkeypatch.setattr(module, "check_retention", refuse)
    with pytest.raises(AirflowFailException, match="all 10 would be deleted"):
        operator().execute(context)


def test_a_plan_whose_written_topics_are_missing_fails_before_anything_is_planned(
    operator: Any, context: Any, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pipeline: KafkaPipeline, source: Any, written_to: Any) -> None:
        raise UnknownTopicError(f"topic {pipeline.destination.topic!r} is missing")

    monkeypatch.setattr(module, "check_needed_topics", refuse)
    with pytest.raises(AirflowFailException, match="topic 'out' is missing"):
        operator().execute(context)
    assert asked == []


def test_a_plan_whose_letters_would_not_fit_fails(
    operator: Any, context: Any, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pipeline: KafkaPipeline, source: Any, written_to: Any) -> None:
        raise PlanError(f"letters of {pipeline.name!r} would not fit")

    monkeypatch.setattr(module, "check_letter_room", refuse)
    with pytest.raises(AirflowFailException, match="letters of 'orders' would not fit"):
        operator().execute(context)


def test_a_retry_has_the_plan_of_the_first_try(operator: Any, context: Any, asked: Any) -> None:
    context["task_state_store"] = task_state = TaskState()
    first = operator().execute(context)
    assert task_state.held == {PLAN_KEY: first}
    # Somebody may clear a DAG run of last year.
    assert task_state.retentions == {NEVER_EXPIRE}
    assert operator(start="earliest").execute(context) == first
    assert len(asked) == 1


def test_a_backfill_that_takes_a_scheduled_run_over_has_a_plan_of_its_own(
    operator: Any, context: Any, asked: Any
) -> None:
    context["task_state_store"] = TaskState()
    scheduled = operator(publish=True).execute(context)
    interval = {"data_interval_start": datetime(2026, 1, 31, 12), "data_interval_end": datetime(2026, 1, 31, 13)}
    context["dag_run"] = SimpleNamespace(run_type="backfill", **interval)
    operator(publish=True, max_records=5).execute(context)
    operator(publish=True, max_records=5).execute(context)
    _, backfill = asked
    assert backfill["wishes"] == Wishes(At(1_769_860_800_000), At(1_769_864_400_000))
    assert backfill["publish"] is False
    assert context["task_state_store"].held[PLAN_KEY] == scheduled


def test_the_run_of_a_cron_string_does_not_start_at_its_own_moment(operator: Any, context: Any, asked: Any) -> None:
    moment = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
    context["dag_run"] = SimpleNamespace(run_type="scheduled", data_interval_start=moment, data_interval_end=moment)
    with pytest.raises(AirflowFailException, match="CronDataIntervalTimetable"):
        operator(start=str(moment)).execute(context)
    assert asked == []


def test_a_frozen_plan_of_another_version_fails_for_good(operator: Any, context: Any, asked: Any) -> None:
    context["task_state_store"] = task_state = TaskState()
    task_state.set(PLAN_KEY, {"schema_version": 99})
    with pytest.raises(AirflowFailException, match=r"Plan\.schema_version is 99"):
        operator().execute(context)
    assert asked == []


def known(group: str = "orders", topic: str = "orders") -> CommittedOffsets:
    return CommittedOffsets(group, topic, {0: 10})


PULLED: list[tuple[str, Any, dict[int, int]]] = [
    ("the last checkpoint", known().to_json(), {0: 10}),
    ("none yet", None, {}),
    ("another group's", known(group="orders-v1").to_json(), {}),
    ("another topic's", known(topic="orders-v1").to_json(), {}),
]


@pytest.mark.parametrize(("record", "published"), [each[1:] for each in PULLED], ids=[each[0] for each in PULLED])
def test_a_plan_knows_what_the_last_checkpoint_of_its_group_committed(
    operator: Any, context: Any, asked: Any, record: Any, published: dict[int, int]
) -> None:
    context["ti"].pulled = {("orders.checkpoint", COMMITTED_KEY): record}
    operator(checkpoint_task_id="orders.checkpoint").execute(context)
    assert asked[0]["published"] == published


@pytest.mark.parametrize(("map_index", "asked_for"), [(-1, -1), (None, -1), (2, 2)])
def test_in_a_mapped_group_the_checkpoint_is_the_one_of_its_own_index(
    operator: Any, context: Any, asked: Any, map_index: int | None, asked_for: int
) -> None:
    context["ti"].map_index = map_index
    operator(checkpoint_task_id="orders.checkpoint").execute(context)
    assert context["ti"].pulled_of == asked_for


def test_an_xcom_that_is_not_a_checkpoint_is_passed_over_and_logged(
    operator: Any, context: Any, asked: Any, caplog: pytest.LogCaptureFixture
) -> None:
    context["ti"].pulled = {("orders.checkpoint", COMMITTED_KEY): "soon"}
    operator(checkpoint_task_id="orders.checkpoint").execute(context)
    assert asked[0]["published"] == {}
    assert "The XCom of 'orders.checkpoint' has no committed offsets" in caplog.text


def test_a_checkpoint_of_a_newer_version_fails_for_good(operator: Any, context: Any, asked: Any) -> None:
    newer = {**known().to_json(), "kpipe": "CommittedOffsets 9.8.0", "schema_version": 99}
    context["ti"].pulled = {("orders.checkpoint", COMMITTED_KEY): newer}
    with pytest.raises(AirflowFailException, match=r"'orders.checkpoint' committed last: .*by kpipe 9\.8\.0"):
        operator(checkpoint_task_id="orders.checkpoint").execute(context)
    assert asked == []


def test_a_plan_without_a_checkpoint_task_knows_of_none(operator: Any, context: Any, asked: Any) -> None:
    operator().execute(context)
    assert asked[0]["published"] == {}


def test_an_empty_plan_is_a_plan(operator: Any, context: Any, asked: Any, monkeypatch: Any, plan: MakePlan) -> None:
    monkeypatch.setattr(module, "make_plan", lambda *given, **more: plan((5, 5)))
    assert Plan.from_json(operator().execute(context)).pending == ()


@pytest.mark.parametrize(
    ("error", "raised"), [(PlanError("x"), AirflowFailException), (KafkaUnavailableError("x"), KafkaUnavailableError)]
)
def test_only_errors_that_a_retry_may_fix_are_tried_again(
    operator: Any, context: Any, asked: Any, monkeypatch: Any, error: Exception, raised: type[Exception]
) -> None:
    def fail(*given: Any, **more: Any) -> Plan:
        raise error

    monkeypatch.setattr(module, "make_plan", fail)
    with pytest.raises(raised, match="x"):
        operator().execute(context)


@pytest.mark.parametrize(
    ("pulled", "raised"),
    [({}, AirflowFailException), ({("orders.checkpoint", COMMITTED_KEY): known().to_json()}, UnreachableError)],
    ids=["never asked before", "an earlier run has asked"],
)
def test_an_address_where_nobody_is_fails_for_good_until_somebody_has_been_there(
    operator: Any, context: Any, asked: Any, monkeypatch: Any, pulled: Any, raised: type[Exception]
) -> None:
    monkeypatch.setattr(module, "check_needed_topics", nobody)
    context["ti"].pulled = pulled
    with pytest.raises(raised, match="nobody listens at b:1"):
        operator(checkpoint_task_id="orders.checkpoint").execute(context)


def nobody(*given: Any, **more: Any) -> Plan:
    raise UnreachableError("nobody listens at b:1")


@pytest.mark.parametrize("question", ["make_plan", "check_retention", "check_letter_room"])
def test_an_address_that_has_answered_is_right(
    operator: Any, context: Any, asked: Any, monkeypatch: Any, question: str
) -> None:
    """Both clusters were asked about their topics by then."""
    monkeypatch.setattr(module, question, nobody)
    with pytest.raises(UnreachableError):
        operator().execute(context)
