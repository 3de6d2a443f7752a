from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from airflow.sdk import DAG, TriggerRule
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_provider_kpipe.contract.faults.causes import Cause
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery, KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.checkpoint import (
    CHECKPOINT_KEY,
    COMMITTED_KEY,
    Checkpoint,
    CommittedOffsets,
    PartitionCheckpoint,
)
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.exceptions import CommitError, GroupInUseError, GroupMovedError, StalePlanError
from airflow_provider_kpipe.hooks.kpipe import KpipeHook
from airflow_provider_kpipe.operators import checkpoint as module
from airflow_provider_kpipe.operators.checkpoint import KpipeCheckpointOperator
from tests.kit.task_state import TaskState

MakePlan = Callable[..., Plan]
Answer = Callable[[Any], None]


def partition(number: int, committed: int, stopped: str | None = None) -> PartitionCheckpoint:
    return PartitionCheckpoint(number, 0, 10, committed, committed >= 10, stopped, Counts(read=committed))


def checkpoint(*partitions: PartitionCheckpoint) -> Checkpoint:
    return Checkpoint("dag/manual__2026/orders.plan", "orders", "orders", "orders", partitions)


def test_mapped_too_it_runs_whatever_became_of_the_run(pipeline: KafkaPipeline) -> None:
    with DAG("mapped", schedule=None):
        mapped = KpipeCheckpointOperator.partial(task_id="checkpoint", pipeline=pipeline).expand(plan=[{}, {}])
        chosen = KpipeCheckpointOperator.partial(
            task_id="chosen", pipeline=pipeline, trigger_rule=TriggerRule.ONE_SUCCESS
        ).expand(plan=[{}])
    assert (mapped.trigger_rule, chosen.trigger_rule) == (TriggerRule.ALL_DONE, TriggerRule.ONE_SUCCESS)


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans that were published."""
    monkeypatch.setattr(KpipeHook, "get_conn", lambda self: {})
    return []


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch, published: list[Plan]) -> Answer:
    """Says what publishing gives, or raises."""

    def set_answer(given: Checkpoint | Exception) -> None:
        def publish(settings: Any, plan: Plan, destination: Any) -> Checkpoint:
            published.append(plan)
            if isinstance(given, Exception):
                raise given
            return given

        monkeypatch.setattr(module, "publish", publish)

    return set_answer


@pytest.fixture
def execute(pipeline: KafkaPipeline, context: Any) -> Callable[[Any], Any]:
    return lambda plan: KpipeCheckpointOperator(task_id="checkpoint", pipeline=pipeline, plan=plan).execute(context)


def test_a_checkpoint_runs_whatever_became_of_the_run(pipeline: KafkaPipeline) -> None:
    operator = KpipeCheckpointOperator(task_id="checkpoint", pipeline=pipeline, plan=None)
    assert operator.trigger_rule == TriggerRule.ALL_DONE


def test_published_offsets_are_recorded(
    execute: Any, plan: MakePlan, answer: Answer, published: list[Plan], context: Any
) -> None:
    made = checkpoint(partition(0, 10), partition(1, 10))
    answer(made)
    planned = plan((0, 10), (0, 10))
    assert execute(planned.to_json()) == made.to_json()
    assert context["ti"].pushed[CHECKPOINT_KEY] == made.to_json()
    assert published == [planned]


def test_the_log_ends_with_what_was_counted_in_all_partitions(
    execute: Any, plan: MakePlan, answer: Answer, capfd: pytest.CaptureFixture[str]
) -> None:
    parts = [Counts(700, 600, 50, 40, 10, 3, 0, {"refunds": 2}), Counts(800, 800, named={"refunds": 1, "read": 5})]
    made = [PartitionCheckpoint(at, 0, 10, 10, True, None, counts) for at, counts in enumerate(parts)]
    answer(checkpoint(*made))
    execute(plan((0, 10), (0, 10)).to_json())
    *_, last = capfd.readouterr().out.splitlines()
    assert (
        "all of 'orders': read 1,500, written 1,400, dead lettered 50, filtered 40, skipped 10, retried 3, lost 0, "
        "read 5, refunds 3 "
    ) in last


def test_the_log_says_why_records_could_not_pass(
    execute: Any, plan: MakePlan, answer: Answer, context: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    parts = [Counts(causes=(Cause("ValueError", "orders:parse", 2, at, 17),)) for at in range(2)]
    answer(checkpoint(*(PartitionCheckpoint(at, 0, 10, 10, True, None, counts) for at, counts in enumerate(parts))))
    execute(plan((0, 10), (0, 10)).to_json())
    assert "could not pass: 4 x ValueError in orders:parse, first orders-0 at offset 17" in capfd.readouterr().out
    recorded = context["ti"].pushed[CHECKPOINT_KEY]["partitions"][1]["counts"]["causes"]
    assert recorded == [
        {"exception_class": "ValueError", "component": "orders:parse", "count": 2, "partition": 1, "offset": 17}
    ]


def test_a_run_that_stopped_half_way_is_recorded_and_then_fails_for_good(
    execute: Any, plan: MakePlan, answer: Answer, context: Any
) -> None:
    made = checkpoint(partition(0, 10), partition(1, 4, "offset 4: no dead-letter topic"), partition(2, 5))
    answer(made)
    with pytest.raises(AirflowFailException) as failure:
        execute(plan((0, 10), (0, 10), (0, 10)).to_json())
    assert "2 of 3 partitions of 'orders' stopped before their end; what they had completed is committed" in str(
        failure.value
    )
    assert "partition 1: offset 4: no dead-letter topic" in str(failure.value)
    assert context["ti"].pushed[CHECKPOINT_KEY] == made.to_json()


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        (Counts(read=60, dead_lettered=60), "120 of 120 records faulted, more than max_dead_letter_ratio=0.5"),
        (Counts(read=60, skipped=60), "120 of 120 records faulted, more than max_dead_letter_ratio=0.5"),
        (Counts(read=60, written=30, dead_lettered=30), None),
        (Counts(read=60, filtered=60), None),
        (Counts(read=49, dead_lettered=49), None),
    ],
    ids=["dead letters", "skipped", "half of them", "all filtered", "too few to tell"],
)
def test_a_run_that_came_to_its_end_with_hardly_a_record_passed_is_committed_and_fails(
    execute: Any, plan: MakePlan, answer: Answer, context: Any, counts: Counts, said: str | None
) -> None:
    made = checkpoint(*(PartitionCheckpoint(at, 0, 60, 60, True, None, counts) for at in (0, 1)))
    answer(made)
    with nullcontext() if said is None else pytest.raises(AirflowFailException, match=said):
        execute(plan((0, 60), (0, 60)).to_json())
    assert context["ti"].pushed[CHECKPOINT_KEY] == made.to_json()


def test_a_partition_without_a_reason_is_not_finished(execute: Any, plan: MakePlan, answer: Answer) -> None:
    answer(checkpoint(partition(0, 4)))
    with pytest.raises(AirflowFailException, match="First: partition 0: not finished"):
        execute(plan((0, 10)).to_json())


@pytest.mark.parametrize(("delivery", "given"), [("exactly_once", {"of": "out_conn"}), ("at_least_once", None)])
def test_it_ends_what_a_killed_job_has_left_open_where_there_are_transactions(
    plan: MakePlan, context: Any, monkeypatch: pytest.MonkeyPatch, delivery: Delivery, given: Any
) -> None:
    settings: list[Any] = []
    monkeypatch.setattr(KpipeHook, "get_conn", lambda self: {"of": self.kafka_conn_id})

    def publish(*each: Any) -> Checkpoint:
        settings.append(each)
        return checkpoint(partition(0, 10))

    monkeypatch.setattr(module, "publish", publish)
    ends = KafkaSource("orders", "out_conn"), KafkaDestination("out", "out_conn")
    planned = plan((0, 10))
    KpipeCheckpointOperator(
        task_id="checkpoint", pipeline=KafkaPipeline("orders", *ends, delivery=delivery), plan=planned.to_json()
    ).execute(context)
    assert settings == [({"of": "out_conn"}, planned, given)]


def test_a_dry_run_commits_nothing(
    execute: Any, plan: MakePlan, answer: Answer, published: list[Plan], context: Any
) -> None:
    answer(checkpoint())
    with pytest.raises(AirflowSkipException, match="Dry run: nothing is committed"):
        execute(plan((0, 10), dry_run=True).to_json())
    assert (published, context["ti"].pushed) == ([], {})


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (GroupMovedError("someone else moved it"), AirflowFailException),
        (StalePlanError("re-created"), AirflowFailException),
        (GroupInUseError("live members"), GroupInUseError),
        (CommitError("not committed"), CommitError),
    ],
    ids=["moved", "stale", "in use", "not committed"],
)
def test_only_errors_that_a_retry_may_fix_are_tried_again(
    execute: Any, plan: MakePlan, answer: Answer, context: Any, error: Exception, raised: type[Exception]
) -> None:
    answer(error)
    with pytest.raises(raised, match=str(error)):
        execute(plan((0, 10)).to_json())
    assert context["ti"].pushed == {}


@pytest.mark.parametrize("document", [None, {}, {"schema_version": 9}], ids=repr)
def test_without_a_plan_nothing_is_published(
    execute: Any, answer: Answer, published: list[Plan], document: Any
) -> None:
    answer(checkpoint())
    with pytest.raises(AirflowFailException):
        execute(document)
    assert published == []


def test_a_complete_checkpoint_that_is_cleared_returns_its_record_and_publishes_nothing(
    execute: Any, plan: MakePlan, answer: Answer, published: list[Plan], context: Any
) -> None:
    context["task_state_store"] = TaskState()
    first = checkpoint(partition(0, 10))
    answer(first)
    execute(plan((0, 10)).to_json())
    # A newer run has gone on: Kafka no longer knows of this one.
    answer(checkpoint(PartitionCheckpoint(0, 0, 10, 30, True, None, Counts())))
    context["ti"].pushed.clear()
    assert execute(plan((0, 10)).to_json()) == first.to_json()
    assert context["ti"].pushed[CHECKPOINT_KEY] == first.to_json()
    assert len(published) == 1


def test_it_remembers_where_the_group_stands_also_in_partitions_of_earlier_runs(
    execute: Any, plan: MakePlan, answer: Answer, context: Any
) -> None:
    context["ti"].pulled = {("checkpoint", COMMITTED_KEY): CommittedOffsets("orders", "orders", {0: 5, 7: 3}).to_json()}
    answer(checkpoint(partition(0, 10), PartitionCheckpoint(1, 0, 10, None, True, None, Counts())))
    execute(plan((0, 10), (0, 10)).to_json())
    remembered = CommittedOffsets.from_json(context["ti"].pushed[COMMITTED_KEY])
    assert remembered == CommittedOffsets("orders", "orders", {0: 10, 7: 3})


def test_so_it_does_where_the_run_stopped_half_way_and_where_it_is_cleared(
    execute: Any, plan: MakePlan, answer: Answer, context: Any
) -> None:
    context["task_state_store"] = TaskState()
    answer(checkpoint(partition(0, 4)))
    with pytest.raises(AirflowFailException):
        execute(plan((0, 10)).to_json())
    assert context["ti"].pushed[COMMITTED_KEY]["offsets"] == {"0": 4}
    answer(checkpoint(partition(0, 10)))
    for _ in range(2):
        # Clearing a task removes its XComs.
        context["ti"].pushed.clear()
        execute(plan((0, 10)).to_json())
        assert context["ti"].pushed[COMMITTED_KEY]["offsets"] == {"0": 10}


def test_a_run_with_a_group_of_its_own_hides_nothing_of_what_is_known_of_the_pipelines(
    execute: Any, plan: MakePlan, answer: Answer, context: Any
) -> None:
    answer(replace(checkpoint(partition(0, 10)), group="orders.backfill.dag/manual__2026/orders.plan"))
    execute(plan((0, 10)).to_json())
    assert CHECKPOINT_KEY in context["ti"].pushed
    assert COMMITTED_KEY not in context["ti"].pushed


def test_a_checkpoint_of_a_run_that_stopped_half_way_is_made_again(
    execute: Any, plan: MakePlan, answer: Answer, context: Any
) -> None:
    context["task_state_store"] = TaskState()
    answer(checkpoint(partition(0, 4)))
    with pytest.raises(AirflowFailException):
        execute(plan((0, 10)).to_json())
    answer(checkpoint(partition(0, 10)))
    assert execute(plan((0, 10)).to_json()) == checkpoint(partition(0, 10)).to_json()
