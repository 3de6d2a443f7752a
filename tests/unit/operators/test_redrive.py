from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from airflow.sdk import DAG, Param
from airflow.sdk.exceptions import AirflowFailException, ParamValidationError

from airflow_provider_kpipe.contract.job import Job, KafkaSettings
from airflow_provider_kpipe.contract.offsets.limits import Earliest, Latest
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination, KafkaPipeline
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.progress import Counts, PartitionProgress
from airflow_provider_kpipe.contract.redrive.redrive import RedriveError, RedriveOrder, Selection
from airflow_provider_kpipe.contract.redrive.result import PartitionRedrive, RedriveResult
from airflow_provider_kpipe.exceptions import IncompleteRunError, KafkaUnavailableError, UnreachableError
from airflow_provider_kpipe.forms.redrive import FIELDS
from airflow_provider_kpipe.hooks.kpipe import KpipeHook
from airflow_provider_kpipe.operators import redrive as module
from airflow_provider_kpipe.operators import spark_job as job_operator
from airflow_provider_kpipe.operators.redrive import ORDER_KEY, KpipeRedriveOperator, redrive_params
from airflow_provider_kpipe.operators.spark_job import PROGRESS_KEY
from airflow_provider_kpipe.running.attempts import Attempt
from tests.kit.task_fixtures import changed
from tests.kit.task_state import TaskState

MakePlan = Callable[..., Plan]
OF_REDRIVE: dict[str, Any] = {
    "topic": "orders.dead",
    "group": "kpipe.redrive.orders.dead",
    "working_group": "kpipe.redrive.orders.dead",
    "continues_group": False,
}
NAMED = {"kpipe:redriven": 5, "kpipe:not_selected": 4, "refunds": 2}
COUNTS = Counts(read=9, written=4, dead_lettered=1, filtered=4, named=NAMED)


class World:
    """Stands in for Kafka and Spark: what was planned, and what there is of a redrive then."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.reached: int | None = None
        self.limits: list[tuple[Any, Any]] = []
        """Of each plan: what is planned is looked up in Kafka."""
        self.previews = 0
        self.submitted = 0
        self.is_alive = False
        self.ledgers: set[str] = set()
        self.found_ledgers: set[str] = set()
        """Those that were there when the job began."""
        self.missing: Exception | None = None
        self.unknown: set[str | None] = set()
        self.vanishing: set[str] = set()
        """Topics of which old records vanish."""

    def get_conn(self) -> dict[str, str]:
        return {"bootstrap.servers": "b"}

    def check_topics(self, *_: Any) -> None:
        if self.missing:
            raise self.missing

    def make_plan(self, _settings: Any, _pipeline: Any, start: Any, end: Any, **more: Any) -> Plan:
        self.limits.append((start, end))
        return dataclasses.replace(self.plan, dry_run=more["dry_run"], run_key=more["run_key"])

    def check_selection(self, _settings: Any, _plan: Plan, selection: Selection) -> None:
        if selection.exception_class in self.unknown:
            raise RedriveError("no dead letter has it")

    def check_retention(self, _settings: Any, pipeline: KafkaPipeline, order: RedriveOrder) -> None:
        if order.redrive.target == "source" and pipeline.source.topic in self.vanishing:
            raise RedriveError("all of it would vanish")

    def preview(self, _settings: Any, order: RedriveOrder) -> RedriveResult:
        self.previews += 1
        return RedriveResult.of(order, [])

    def job_run(self, job: Job, kafka: KafkaSettings, **options: Any) -> World:
        self.job, self.kafka, self.options = job, kafka, options
        return self

    def run(self, show: Any) -> list[PartitionProgress]:
        self.submitted += 1
        self.is_alive, self.found_ledgers = True, set(self.ledgers)
        (planned,) = self.plan.ranges
        show([PartitionProgress(planned, planned.start, COUNTS)])
        return [PartitionProgress(planned, self.reached or planned.end, COUNTS)]

    def check(self, progress: list[PartitionProgress]) -> None:
        if not progress[0].complete:
            raise IncompleteRunError("not to the end")

    def stop(self) -> None:
        self.is_alive = False

    def ensure_ledger(self, _settings: Any, _topic: Any, ledger: str) -> None:
        self.ledgers.add(ledger)

    def topic(self, name: str) -> str:
        return name

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, plan: MakePlan) -> World:
    stand_in = World(plan((0, 9), **OF_REDRIVE))
    monkeypatch.setattr(KpipeHook, "get_conn", lambda self: stand_in.get_conn())
    monkeypatch.setattr(KpipeHook, "get_registry", lambda self: {})
    monkeypatch.setattr(module, "Positions", lambda settings: stand_in)
    monkeypatch.setattr(module, "make_redrive_plan", stand_in.make_plan)
    monkeypatch.setattr(module, "check_redrive_topics", stand_in.check_topics)
    monkeypatch.setattr(
        job_operator, "fit_to_topics", lambda settings, topics: {**settings, "fitted": ",".join(topics)}
    )
    monkeypatch.setattr(module, "ensure_ledger", stand_in.ensure_ledger)
    monkeypatch.setattr(module, "preview", stand_in.preview)
    monkeypatch.setattr(module, "check_selection", stand_in.check_selection)
    monkeypatch.setattr(module, "check_redrive_retention", stand_in.check_retention)
    monkeypatch.setattr(job_operator, "JobRun", stand_in.job_run)
    numbers = count(2)
    monkeypatch.setattr(job_operator, "begin_attempt", lambda settings, plan: Attempt(next(numbers), ()))
    return stand_in


@pytest.fixture
def operator(pipeline: KafkaPipeline) -> KpipeRedriveOperator:
    with DAG("redrive", schedule=None, params=redrive_params("source", 3)):
        return KpipeRedriveOperator(
            task_id="redrive", pipeline=pipeline, max_attempts=3, parking_topic="orders.parked", py_files=["a.py"]
        )


def fill_in(context: dict[str, Any], **form: Any) -> Any:
    """Params as a task sees them: the defaults, and what the run's conf says instead."""
    context["params"] = {**{name: param.value for name, param in redrive_params("source", 3).items()}, **form}
    context.setdefault("task_state_store", TaskState())
    return context


def test_the_form_asks_for_every_field_there_is() -> None:
    assert set(redrive_params()) == set(FIELDS)
    for param in redrive_params().values():
        assert isinstance(param, Param)
        assert param.schema["title"]
        assert param.description


SENT: list[tuple[str, Any]] = [
    ("occurred_from", "2026-01-31T12:00:00Z"),
    ("exception_class", "KeyError"),
    ("pipeline", "*"),
    ("record", "orders-3-1042"),
    ("start_offsets", {"0": 5}),
    ("target", "output"),
    ("max_attempts", 3),
    ("max_attempts", "3"),
    ("max_attempts", None),
    ("dry_run", True),
]


@pytest.mark.parametrize(("field", "value"), SENT, ids=[f"{field}={value!r}" for field, value in SENT])
def test_the_form_takes_what_it_sends(field: str, value: Any) -> None:
    assert redrive_params()[field].resolve(value) == value


@pytest.mark.parametrize(("field", "value"), [("target", "back"), ("dry_run", "yes"), ("record", 5)], ids=repr)
def test_the_form_refuses_the_wrong_kind_of_value_at_once(field: str, value: Any) -> None:
    with pytest.raises(ParamValidationError):
        redrive_params()[field].resolve(value)


def test_a_pipeline_over_two_clusters_cannot_go_back_to_the_source(pipeline: KafkaPipeline, context: Any) -> None:
    apart = dataclasses.replace(
        pipeline, destination=KafkaDestination("out", conn_id="there"), delivery="at_least_once"
    )
    with pytest.raises(RedriveError, match="use target='output'"):
        KpipeRedriveOperator(task_id="redrive", pipeline=apart)
    with DAG("redrive", schedule=None, params=redrive_params("output")):
        operator = KpipeRedriveOperator(task_id="redrive", pipeline=apart, target="output")
    with pytest.raises(AirflowFailException, match="use target='output'"):
        operator.execute(fill_in(context, target="source"))


@pytest.mark.parametrize(
    ("form", "said", "start", "write"),
    [
        (redrive_params(), {"target": "output"}, "target='source'", "target='output'"),
        (redrive_params(), {"max_attempts": 3}, "max_attempts=None", "max_attempts=3"),
        (redrive_params(max_attempts=5), {"max_attempts": 3}, "max_attempts=5", "max_attempts=3"),
        (
            redrive_params("output", 3),
            {"target": "source", "max_attempts": 3},
            "target='output'",
            "target='source', max",
        ),
        ({"max_attempts": None}, {"target": "output", "max_attempts": 3}, "max_attempts=None", "target='output', max"),
    ],
)
def test_a_form_that_would_override_the_operator_when_nothing_is_filled_in_is_refused(
    pipeline: KafkaPipeline, form: dict[str, Any], said: dict[str, Any], start: str, write: str
) -> None:
    with DAG("redrive", schedule=None, params=form), pytest.raises(RedriveError) as refused:
        KpipeRedriveOperator(task_id="redrive", pipeline=pipeline, parking_topic="orders.parked", **said)
    assert f"the form of its DAG starts with {start}, which" in str(refused.value)
    assert f"write redrive_params({write}" in str(refused.value)


@pytest.mark.parametrize(
    ("form", "said", "redriven"),
    [
        ({}, {"target": "output", "max_attempts": 3}, ("output", 3)),
        ({}, {}, ("source", None)),
        (redrive_params("output", 3), {}, ("output", 3)),
        (redrive_params("output", 3), {"target": "output", "max_attempts": 3}, ("output", 3)),
        (
            {**redrive_params(), "target": "", "max_attempts": "3"},
            {"target": "output", "max_attempts": 3},
            ("output", 3),
        ),
        ({"target": Param(type="string")}, {"target": "output"}, ("output", None)),
    ],
)
def test_with_nothing_filled_in_a_redrive_does_what_the_dag_file_says(
    pipeline: KafkaPipeline, world: World, context: Any, form: dict[str, Any], said: dict[str, Any], redriven: Any
) -> None:
    with DAG("redrive", schedule=None, params=form):
        operator = KpipeRedriveOperator(task_id="redrive", pipeline=pipeline, parking_topic="orders.parked", **said)
    params: Any = operator.params
    operator.execute(changed(context, params=dict(params.dump()), task_state_store=TaskState()))
    assert world.job.redrive
    assert (operator.target, world.job.redrive.target, world.job.redrive.max_attempts) == (redriven[0], *redriven)


@pytest.mark.parametrize(
    ("form", "said", "each_letter"),
    [
        ({}, {}, False),
        ({}, {"each_letter": True}, True),
        (redrive_params(each_letter=True), {}, True),
        (redrive_params(each_letter=True), {"each_letter": True}, True),
    ],
)
def test_each_letter_goes_back_where_the_dag_file_says_so(
    pipeline: KafkaPipeline, world: World, context: Any, form: dict[str, Any], said: dict[str, Any], each_letter: bool
) -> None:
    with DAG("redrive", schedule=None, params=form):
        operator = KpipeRedriveOperator(task_id="redrive", pipeline=pipeline, **said)
    params: Any = operator.params
    operator.execute(changed(context, params=dict(params.dump()), task_state_store=TaskState()))
    assert world.job.redrive
    assert world.job.redrive.each_letter is each_letter


def test_an_operator_whose_form_starts_otherwise_with_each_letter_is_refused(pipeline: KafkaPipeline) -> None:
    with (
        pytest.raises(RedriveError, match=r"the operator says each_letter=True, .* redrive_params\(each_letter=True\)"),
        DAG("redrive", schedule=None, params=redrive_params()),
    ):
        KpipeRedriveOperator(task_id="redrive", pipeline=pipeline, each_letter=True)


def test_a_redrive_runs_what_was_asked_for(operator: Any, world: World, context: Any) -> None:
    result = operator.execute(fill_in(context, exception_class="KeyError", target="output", max_attempts=5))

    assert world.limits == [(Earliest(), Latest())]
    assert (world.submitted, world.found_ledgers) == (1, {"orders.dead.redriven"})
    redrive = world.job.redrive
    assert redrive
    assert (redrive.target, redrive.max_attempts, redrive.parking_topic) == ("output", 5, "orders.parked")
    assert (redrive.selection.exception_class, redrive.selection.pipeline) == ("KeyError", "orders")
    assert (world.job.pipeline.delivery, world.job.plan.topic) == ("exactly_once", "orders.dead")
    assert world.kafka.destination["fitted"] == "out,orders.dead,orders.dead.redriven,orders.parked"
    assert world.options["py_files"] == ["a.py"]
    assert result["outcomes"]["redriven"] == 5
    assert (result["written"], result["dead_lettered"], result["complete"]) == (4, 1, True)
    assert context["ti"].pushed == {PROGRESS_KEY: result}
    assert [pushed["partitions"][0]["next_offset"] for pushed in context["ti"].pushes] == [0, 9]
    assert RedriveResult.from_json(result).partitions[0].outcomes["not_selected"] == 4
    assert result["counted"] == result["partitions"][0]["counted"] == {"refunds": 2}


@pytest.mark.parametrize("span", [None, 3_600, timedelta(hours=1)], ids=repr)
def test_a_redrive_yields_when_its_time_has_passed(
    pipeline: KafkaPipeline, world: World, context: Any, span: Any
) -> None:
    operator = KpipeRedriveOperator(task_id="redrive", pipeline=pipeline, max_run_time=span)
    begun = time.time()
    operator.execute(changed(context, params={}, task_state_store=TaskState()))
    deadline = world.job.deadline
    assert deadline is None if span is None else begun + 3_600 <= (deadline or 0) <= time.time() + 3_600


def test_a_run_that_did_not_finish_fails_after_saying_what_it_did(operator: Any, world: World, context: Any) -> None:
    world.reached = 4
    with pytest.raises(IncompleteRunError):
        operator.execute(fill_in(context))
    assert context["ti"].pushed[PROGRESS_KEY]["complete"] is False
    assert context["ti"].pushed[PROGRESS_KEY]["partitions"][0]["next_offset"] == 4


def test_a_retry_has_the_order_of_the_first_try(operator: Any, world: World, context: Any) -> None:
    world.reached = 4
    with pytest.raises(IncompleteRunError):
        operator.execute(fill_in(context, exception_class="KeyError"))
    first, world.reached = world.job, None
    context["params"]["exception_class"] = "ValueError"
    operator.execute(context)
    assert (world.job.redrive, world.job.plan) == (first.redrive, first.plan)
    assert world.job.attempt != first.attempt
    kept = RedriveOrder.from_json(context["task_state_store"].held[ORDER_KEY])
    assert kept.plan.run_key == "dag/manual__2026/orders.plan"


def test_a_dry_run_needs_no_spark_and_makes_no_ledger(operator: Any, world: World, context: Any) -> None:
    result = operator.execute(fill_in(context, dry_run=True))
    assert (world.previews, world.submitted, world.ledgers) == (1, 0, set())
    assert result["dry_run"] is True


def test_a_dry_run_says_where_the_redrive_would_stop(
    operator: Any, world: World, context: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (planned,) = world.plan.ranges
    stopped = PartitionRedrive.of(PartitionProgress(planned, 4, Counts(), reason="offset 4: written by kpipe 9.8.0"))
    monkeypatch.setattr(module, "preview", lambda settings, order: RedriveResult.of(order, [stopped]))
    result = operator.execute(fill_in(context, dry_run=True))
    assert (result["complete"], result["partitions"][0]["reason"]) == (False, "offset 4: written by kpipe 9.8.0")
    assert "The redrive of partition 0 would stop: offset 4: written by kpipe 9.8.0" in capsys.readouterr().out


def test_without_dead_letters_there_is_nothing_to_do(operator: Any, world: World, context: Any, plan: MakePlan) -> None:
    world.plan = plan((5, 5), **OF_REDRIVE)
    result = operator.execute(fill_in(context))
    assert world.submitted == 0
    assert set(result["outcomes"].values()) == {0}


@pytest.mark.parametrize(
    ("form", "said"),
    [({"recrod": "x"}, "The field 'recrod' is not known"), ({"record": "x"}, "names no record")],
    ids=repr,
)
def test_a_form_that_makes_no_redrive_fails_for_good_before_kafka_is_asked(
    operator: Any, context: Any, monkeypatch: pytest.MonkeyPatch, form: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr(module, "KpipeHook", None)
    with pytest.raises(AirflowFailException, match=said):
        operator.execute(fill_in(context, **form))


def test_params_of_the_dag_that_are_no_fields_of_the_form_are_left_alone(
    pipeline: KafkaPipeline, world: World, context: Any
) -> None:
    with DAG("redrive", schedule=None, params={**redrive_params(), "team": "ours"}):
        operator = KpipeRedriveOperator(task_id="redrive", pipeline=pipeline)
    operator.execute(fill_in(context, team="mine"))
    assert world.submitted == 1


def test_a_cluster_that_is_away_is_worth_another_try(operator: Any, world: World, context: Any) -> None:
    world.missing = KafkaUnavailableError("away")
    with pytest.raises(KafkaUnavailableError):
        operator.execute(fill_in(context))
    assert context["task_state_store"].held == {}


def test_an_address_where_nobody_is_fails_for_good(operator: Any, world: World, context: Any) -> None:
    world.missing = UnreachableError("nobody listens at b:1")
    with pytest.raises(AirflowFailException, match="nobody listens at b:1"):
        operator.execute(fill_in(context))
    assert (world.submitted, context["task_state_store"].held) == (0, {})


@pytest.mark.parametrize("question", ["make_redrive_plan", "check_selection", "check_redrive_retention"])
def test_an_address_that_has_answered_is_right(
    operator: Any, world: World, context: Any, monkeypatch: Any, question: str
) -> None:
    """Both clusters were asked about their topics by then; letters may be read for minutes after that."""

    def nobody(*given: Any, **more: Any) -> Plan:
        raise UnreachableError("nobody listens at b:1")

    monkeypatch.setattr(module, question, nobody)
    with pytest.raises(UnreachableError):
        operator.execute(fill_in(context))
    assert context["task_state_store"].held == {}


def test_a_task_that_is_stopped_takes_its_job_along(operator: Any, world: World, context: Any) -> None:
    operator.on_kill()
    operator.execute(fill_in(context))
    assert world.is_alive
    operator.on_kill()
    assert not world.is_alive


@pytest.mark.parametrize(("field", "value"), [("target", "output"), ("max_attempts", None), ("pipeline", "*")])
def test_a_field_that_the_dag_does_not_declare_is_not_taken_from_conf(
    pipeline: KafkaPipeline, world: World, context: Any, field: str, value: Any
) -> None:
    form = redrive_params("source", 3)
    del form[field]
    with DAG("redrive", schedule=None, params=form):
        operator = KpipeRedriveOperator(
            task_id="redrive", pipeline=pipeline, target="source", max_attempts=3, parking_topic="orders.parked"
        )
    said = {name: param.value for name, param in form.items()}
    with pytest.raises(AirflowFailException, match=f"The field '{field}' is not known. Known are: occurred_from"):
        operator.execute(changed(context, params={**said, field: value}))
    assert (world.limits, world.submitted) == ([], 0)
    operator.execute(changed(context, params=said, task_state_store=TaskState()))
    redrive = world.job.redrive
    assert redrive
    assert (redrive.target, redrive.max_attempts, redrive.selection.pipeline) == ("source", 3, "orders")


def test_a_finished_redrive_that_is_cleared_returns_what_it_did(operator: Any, world: World, context: Any) -> None:
    first = operator.execute(fill_in(context))
    context["ti"].pushed.clear()
    assert operator.execute(context) == first
    assert (len(world.limits), world.submitted) == (1, 1)
    assert context["ti"].pushed == {PROGRESS_KEY: first}


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_choice_that_no_letter_answers_to_is_an_error_and_starts_nothing(
    operator: Any, world: World, context: Any, dry_run: bool
) -> None:
    world.unknown = {"KeyErorr"}
    with pytest.raises(AirflowFailException, match="no dead letter has it"):
        operator.execute(fill_in(context, exception_class="KeyErorr", dry_run=dry_run))
    assert (world.previews, world.submitted, world.ledgers) == (0, 0, set())
    assert context["task_state_store"].held == {}
    # Corrected and cleared, it is decided anew.
    operator.execute(fill_in(context, exception_class="KeyError"))
    assert world.submitted == 1


def test_a_redrive_of_records_that_would_vanish_starts_no_spark(operator: Any, world: World, context: Any) -> None:
    world.vanishing = {"orders"}
    with pytest.raises(AirflowFailException, match="all of it would vanish"):
        operator.execute(fill_in(context, target="source"))
    assert (world.submitted, world.ledgers, context["task_state_store"].held) == (0, set(), {})
    operator.execute(fill_in(context, target="output"))
    assert world.submitted == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"topic": "returns.dead"}, "has topic='returns.dead', and pipeline 'orders' as it is now 'orders.dead'"),
        ({"group": "orders"}, "has group='orders', and pipeline"),
        ({"pipeline": "returns"}, "has pipeline='returns', and pipeline"),
    ],
)
def test_an_order_that_somebody_has_changed_is_refused_before_anything_is_read(
    operator: Any, world: World, context: Any, changes: dict[str, str], said: str
) -> None:
    fill_in(context)
    world.reached = 4
    with pytest.raises(IncompleteRunError):
        operator.execute(context)
    context["task_state_store"].held[ORDER_KEY]["plan"].update(changes)
    with pytest.raises(AirflowFailException, match=said):
        operator.execute(context)
    assert (len(world.limits), world.submitted) == (1, 1)
