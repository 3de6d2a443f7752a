from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, Self

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from airflow.sdk.execution_time.context import NEVER_EXPIRE

from airflow_provider_kpipe.contract.job import KafkaSettings
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.progress import Counts, PartitionProgress
from airflow_provider_kpipe.exceptions import IncompleteRunError, OverdueJobError, StalePlanError
from airflow_provider_kpipe.hooks.kpipe import KpipeHook
from airflow_provider_kpipe.operators import spark_job as job_operator
from airflow_provider_kpipe.operators.run import KpipeRunOperator
from airflow_provider_kpipe.operators.spark_job import PROGRESS_KEY
from airflow_provider_kpipe.running import job_run
from airflow_provider_kpipe.running.attempts import Attempt
from tests.kit.task_state import TaskState

MakePlan = Callable[..., Plan]


class World:
    """Stands in for Kafka and Spark: how far each partition comes, what Spark fails with, what a job leaves open."""

    def __init__(self) -> None:
        self.reached: dict[int, tuple[int, str | None]] = {}
        self.failure: Exception | None = None
        self.stale: Exception | None = None
        self.submitted = 0
        self.is_alive = False
        self.open: set[str] = set()
        """Transactions: those of a job that lives are not ended for good."""
        self.found_open: set[str] = set()
        """Those that the job has found."""
        self.leaves_open: set[str] = set()
        self.looked_for_open = 0
        self.stop_reason: str | None = None
        self.ended: Any = "stopped"
        self.looks = 0
        self.done_before = False
        self.moved_at: dict[int, datetime] = {}

    def __call__(self, *given: Any, **more: Any) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def check_in_log(self, plan: Plan) -> None:
        if self.stale:
            raise self.stale

    def progress(self, plan: Plan) -> list[PartitionProgress]:
        if not self.submitted and not self.done_before:
            return list(map(PartitionProgress.not_started, plan.ranges))
        found = []
        for each in plan.ranges:
            next_offset, stopped = self.reached.get(each.partition, (each.end, None))
            ended = self.ended if stopped else None
            found.append(PartitionProgress(each, next_offset, Counts(read=len(each)), reason=stopped, ended=ended))
        return found

    @property
    def is_running(self) -> bool:
        """Whether it has not yielded yet."""
        self.looks -= 1
        return self.looks >= 0

    def request_stop(self, settings: Any, plan: Plan, attempt: int, reason: str, seconds: float) -> None:
        self.stop_reason = reason

    def run(self) -> None:
        self.submitted += 1
        self.found_open = set(self.open)
        self.open |= self.leaves_open
        if self.failure:
            raise self.failure

    def kill(self) -> None:
        self.is_alive = False

    def end_what_is_left_open(self, positions: Any, settings: Any, plan: Plan, seconds: float) -> None:
        self.looked_for_open += 1
        if not self.is_alive:
            self.open -= set(plan.transactional_ids)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    stand_in = World()
    monkeypatch.setattr(KpipeHook, "get_conn", lambda self: {})
    monkeypatch.setattr(job_operator, "fit_to_topics", lambda settings, topics: settings)
    monkeypatch.setattr(KpipeHook, "get_registry", lambda self: {})
    monkeypatch.setattr(job_operator, "begin_attempt", lambda settings, plan: Attempt(plan.number + 1, ()))
    for name in ("Positions", "Submission", "ProgressLog"):
        monkeypatch.setattr(job_run, name, stand_in)
    monkeypatch.setattr(job_run, "check_in_log", lambda positions, plan: stand_in.check_in_log(plan))
    monkeypatch.setattr(job_run, "request_stop", stand_in.request_stop)
    monkeypatch.setattr(job_run, "end_what_is_left_open", stand_in.end_what_is_left_open)
    return stand_in


@pytest.fixture
def run(pipeline: KafkaPipeline, context: Any) -> Callable[..., Any]:
    return lambda plan, **more: KpipeRunOperator(
        task_id="run", **{"pipeline": pipeline, "plan": plan and plan.to_json(), **more}
    ).execute(context)


@pytest.mark.parametrize(
    ("changes", "said"), [({"dry_run": True}, "Dry run"), ({"ranges": ()}, "The plan is empty")], ids=["dry", "empty"]
)
def test_a_run_without_anything_to_do_is_skipped(
    run: Any, plan: MakePlan, world: World, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(AirflowSkipException, match=said):
        run(plan((0, 5), **changes))
    assert (world.submitted, world.looked_for_open) == (0, 0)


def test_the_job_gets_the_registry_of_each_end(
    run: Any, plan: MakePlan, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[KafkaSettings] = []

    def submission(job: object, kafka: KafkaSettings, **more: Any) -> World:
        given.append(kafka)
        return world

    monkeypatch.setattr(job_run, "Submission", submission)
    for name in ("conn", "registry"):
        monkeypatch.setattr(KpipeHook, f"get_{name}", lambda self, name=name: {name: self.kafka_conn_id})
    apart = KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out", "other"), delivery="at_least_once")
    run(plan((0, 5)), pipeline=apart)
    assert given == [
        KafkaSettings(
            {"conn": "kafka_default"}, {"conn": "other"}, {"registry": "kafka_default"}, {"registry": "other"}
        )
    ]


def test_a_plan_of_empty_ranges_is_skipped(run: Any, plan: MakePlan, world: World) -> None:
    with pytest.raises(AirflowSkipException, match="The plan is empty"):
        run(plan((5, 5), (0, 0)))


def test_a_missing_plan_fails_for_good(run: Any, world: World) -> None:
    with pytest.raises(AirflowFailException, match="has no plan"):
        run(None)


def test_a_re_created_topic_fails_without_retry_before_spark_is_asked(run: Any, plan: MakePlan, world: World) -> None:
    world.stale = StalePlanError("topic 'orders' was re-created")
    with pytest.raises(AirflowFailException, match="re-created"):
        run(plan((0, 5)))
    assert (world.submitted, world.looked_for_open) == (0, 0)


def test_a_run_that_came_to_its_end_returns_its_progress(run: Any, plan: MakePlan, world: World, context: Any) -> None:
    result = run(plan((0, 5), (7, 7)))
    assert result["run_key"] == "dag/manual__2026/orders.plan"
    assert [each["state"] for each in result["partitions"]] == ["complete", "complete"]
    assert context["ti"].pushed == {PROGRESS_KEY: result}


def test_a_run_in_which_hardly_a_record_passed_fails(
    run: Any, plan: MakePlan, world: World, context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulted = [PartitionProgress(each, 60, Counts(read=60, dead_lettered=60)) for each in plan((0, 60), (0, 60)).ranges]
    monkeypatch.setattr(world, "progress", lambda plan: faulted)
    with pytest.raises(AirflowFailException, match=r"120 of 120 records faulted, more than max_dead_letter_ratio=0\.5"):
        run(plan((0, 60), (0, 60)))
    assert [each["dead_lettered"] for each in context["ti"].pushed[PROGRESS_KEY]["partitions"]] == [60, 60]


def test_partitions_that_were_not_finished_fail_the_run_and_are_named(
    run: Any, plan: MakePlan, world: World, context: Any
) -> None:
    world.reached = {1: (30, "offset 30: no dead-letter topic"), 2: (0, None)}
    with pytest.raises(IncompleteRunError) as failure:
        run(plan((0, 100), (10, 50), (0, 9)))
    said = str(failure.value)
    assert said.startswith("2 of 3 partitions of 'orders' were not read to their end; what they completed is")
    assert "partition 1 is at 30 of [10, 50): offset 30: no dead-letter topic" in said
    assert "partition 2 is at 0 of [0, 9): its worker did not come to the end" in said
    assert "partition 0" not in said
    assert context["ti"].pushed[PROGRESS_KEY]["partitions"][1]["stored"] == 30


def test_partitions_that_are_silent_are_named_with_since_when_and_so_is_a_job_that_was_ended(
    run: Any, plan: MakePlan, world: World
) -> None:
    world.reached = {1: (30, None), 2: (0, None)}
    world.moved_at = {1: datetime(2026, 1, 31, 12, tzinfo=timezone.utc)}
    world.failure = OverdueJobError("Spark's driver had not come to its end")
    planned = plan((0, 100), (10, 50), (0, 9))
    world.leaves_open = set(planned.transactional_ids)
    with pytest.raises(IncompleteRunError) as failure:
        run(planned)
    said = str(failure.value)
    assert said.startswith("Spark's driver had not come to its end\n2 of 3 partitions")
    assert (
        "partition 1 is at 30 of [10, 50): its worker did not come to the end, and stored nothing after 2026-01" in said
    )
    assert "partition 2 is at 0 of [0, 9): its worker did not come to the end; see above" in said
    assert world.open == set()


def test_hundreds_of_unfinished_partitions_make_a_short_message(run: Any, plan: MakePlan, world: World) -> None:
    world.reached = dict.fromkeys(range(300), (0, "gone"))
    with pytest.raises(IncompleteRunError) as failure:
        run(plan(*[(0, 9)] * 300))
    assert str(failure.value).count("gone") == 10
    assert str(failure.value).endswith("and 290 more")


def test_the_failure_of_spark_is_the_cause_of_an_unfinished_run(run: Any, plan: MakePlan, world: World) -> None:
    world.failure, world.reached = AirflowException("exit code 1"), {0: (3, None)}
    with pytest.raises(IncompleteRunError) as failure:
        run(plan((0, 5)))
    assert failure.value.__cause__ is world.failure


def test_a_failure_of_spark_after_the_last_record_does_not_matter(run: Any, plan: MakePlan, world: World) -> None:
    world.failure = AirflowException("exit code 1")
    assert run(plan((0, 5)))["partitions"][0]["state"] == "complete"


def test_open_transactions_of_earlier_jobs_and_of_a_failed_one_are_ended(
    run: Any, plan: MakePlan, world: World
) -> None:
    world.failure = AirflowException("exit code 1")
    planned = plan((0, 5), (7, 7), (0, 9))
    world.open = {planned.transactional_id(0), "another run's"}
    world.leaves_open = {planned.transactional_id(2)}
    run(planned)
    assert (world.found_open, world.open) == ({"another run's"}, {"another run's"})


def test_a_job_that_came_to_its_end_has_left_nothing_open(run: Any, plan: MakePlan, world: World) -> None:
    run(plan((0, 5)))
    # Nobody looks a second time.
    assert (world.submitted, world.looked_for_open) == (1, 1)


def test_at_least_once_has_no_transactions_to_end(run: Any, plan: MakePlan, world: World) -> None:
    world.failure = AirflowException("exit code 1")
    loose = KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out"), delivery="at_least_once")
    planned = plan((0, 5))
    # Whoever has ids of these names writes exactly once.
    world.open = set(planned.transactional_ids)
    run(planned, pipeline=loose)
    assert (world.submitted, world.open) == (1, set(planned.transactional_ids))


def test_a_task_that_is_stopped_takes_its_job_along_and_then_ends_its_transactions(
    pipeline: KafkaPipeline, plan: MakePlan, world: World, context: Any
) -> None:
    planned = plan((0, 5))
    operator = KpipeRunOperator(task_id="run", pipeline=pipeline, plan=planned.to_json())
    operator.on_kill()
    assert (world.submitted, world.stop_reason) == (0, None)
    operator.execute(context)
    world.is_alive, world.open = True, set(planned.transactional_ids)
    operator.on_kill()
    assert (world.is_alive, world.open, world.stop_reason) == (False, set(), None)


def test_a_job_that_runs_is_asked_to_yield_before_it_is_killed(
    pipeline: KafkaPipeline, plan: MakePlan, world: World, context: Any
) -> None:
    planned = plan((0, 5))
    operator = KpipeRunOperator(task_id="run", pipeline=pipeline, plan=planned.to_json())
    operator.execute(context)
    world.looks, world.is_alive, world.open = 3, True, set(planned.transactional_ids)
    operator.on_kill()
    assert (world.stop_reason, world.is_alive, world.open) == ("the task was stopped", False, set())
    # It has been watched until it was gone.
    assert world.looks == -1


@pytest.mark.parametrize(
    ("ended", "max_run_time", "for_good"),
    [
        ("yielded", 1e-6, True),
        ("revoked", None, True),
        ("yielded", None, False),
        ("yielded", 3_600, False),
        ("stopped", 1e-6, False),
    ],
)
def test_only_what_was_given_up_for_good_is_not_tried_again(
    pipeline: KafkaPipeline, plan: MakePlan, world: World, context: Any, ended: str, max_run_time: Any, for_good: bool
) -> None:
    world.ended, world.reached = ended, {0: (3, "why")}
    operator = KpipeRunOperator(
        task_id="run", pipeline=pipeline, plan=plan((0, 5)).to_json(), max_run_time=max_run_time
    )
    with pytest.raises(AirflowFailException if for_good else IncompleteRunError, match=r"partition 0 is at 3 .*: why"):
        operator.execute(context)


def test_a_run_that_kafka_knows_to_be_complete_submits_nothing(
    run: Any, plan: MakePlan, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.done_before = True
    planned = plan((0, 5), (7, 7))
    world.open = set(planned.transactional_ids)
    result = run(planned)
    assert [(each["state"], each["read"]) for each in result["partitions"]] == [("complete", 5), ("complete", 0)]
    assert (world.submitted, world.open) == (0, set())
    assert "Run dag/manual__2026/orders.plan is complete" in caplog.text


def test_a_finished_run_that_is_cleared_keeps_its_counts_whatever_kafka_knows(
    run: Any, plan: MakePlan, world: World, context: Any
) -> None:
    context["task_state_store"] = state = TaskState()
    first = run(plan((0, 5)))
    assert state.retentions == {NEVER_EXPIRE}
    # A newer run has overwritten what was stored, and the topic is gone.
    world.stale = StalePlanError("topic 'orders' was re-created")
    context["ti"].pushed.clear()
    assert run(plan((0, 5))) == first
    assert (world.submitted, world.looked_for_open) == (1, 1)
    assert context["ti"].pushed == {PROGRESS_KEY: first}


def test_ranges_completed_by_another_plan_do_not_count(run: Any, plan: MakePlan, world: World, context: Any) -> None:
    context["task_state_store"] = TaskState()
    run(plan((0, 5)))
    world.submitted = 0
    assert run(plan((0, 9)))["partitions"][0]["end"] == 9
    assert world.submitted == 1


def test_a_run_that_did_not_come_to_its_end_is_not_kept(run: Any, plan: MakePlan, world: World, context: Any) -> None:
    context["task_state_store"] = state = TaskState()
    world.reached = {0: (3, "why")}
    with pytest.raises(IncompleteRunError):
        run(plan((0, 5)))
    assert state.held == {}
