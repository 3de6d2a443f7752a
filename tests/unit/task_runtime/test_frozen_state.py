from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk.execution_time.context import NEVER_EXPIRE

from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.task_runtime.frozen_state import frozen, record, recorded
from tests.kit.task_state import TaskState

MakePlan = Callable[..., Plan]


@pytest.fixture
def state(context: Any) -> TaskState:
    """The task's state, which its tries share."""
    store = TaskState()
    context["task_state_store"] = store
    return store


def test_the_first_try_decides(context: Any, state: TaskState, plan: MakePlan) -> None:
    first = frozen(context, "plan", Plan, lambda: plan((0, 5)))
    again = frozen(context, "plan", Plan, lambda: plan((0, 9)))
    assert first == again == plan((0, 5))
    assert state.retentions == {NEVER_EXPIRE}


def test_each_key_has_a_document_of_its_own(context: Any, state: TaskState, plan: MakePlan) -> None:
    frozen(context, "plan", Plan, lambda: plan((0, 5)))
    assert frozen(context, "other", Plan, lambda: plan((0, 9))) == plan((0, 9))


def test_without_a_state_each_try_decides(context: Any, plan: MakePlan) -> None:
    frozen(context, "plan", Plan, lambda: plan((0, 5)))
    assert frozen(context, "plan", Plan, lambda: plan((0, 9))) == plan((0, 9))
    record(context, "result", plan((0, 5)), {"read": 5})
    assert recorded(context, "result", plan((0, 5))) is None


def test_a_result_counts_for_the_very_document_that_it_is_of(context: Any, state: TaskState, plan: MakePlan) -> None:
    assert recorded(context, "result", plan((0, 5))) is None
    record(context, "result", plan((0, 5)), {"read": 5})
    assert recorded(context, "result", plan((0, 5))) == {"read": 5}
    assert recorded(context, "result", plan((0, 6))) is None
    assert state.retentions == {NEVER_EXPIRE}


def test_a_result_that_something_else_has_left_there_is_none(context: Any, state: TaskState, plan: MakePlan) -> None:
    state.set("result", "5 records")
    assert recorded(context, "result", plan((0, 5))) is None
