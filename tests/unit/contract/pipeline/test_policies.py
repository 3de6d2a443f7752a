from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.faults.stack_trace import class_name
from airflow_provider_kpipe.contract.pipeline.declaration import (
    KafkaDeadLetter,
    KafkaDestination,
    KafkaPipeline,
    KafkaSource,
)
from airflow_provider_kpipe.contract.pipeline.policies import DeadLetterBudget, PolicyError, RetryPolicy

PARTS: dict[str, Any] = {"name": "p", "source": KafkaSource("in"), "destination": KafkaDestination("out")}


def test_by_default_a_record_is_tried_once() -> None:
    assert RetryPolicy().max_attempts == 1


def test_a_fixed_wait_stays_the_same() -> None:
    policy = RetryPolicy.fixed(4, 1.5)
    assert [policy.delay_after(attempt, 0.9) for attempt in (1, 2, 3)] == [1.5, 1.5, 1.5]


def test_an_exponential_wait_doubles_up_to_its_cap() -> None:
    policy = RetryPolicy.exponential(9, delay_seconds=1, longest_delay_seconds=10, jitter=0)
    assert [policy.delay_after(attempt, 0.5) for attempt in (1, 2, 3, 4, 5, 6)] == [1, 2, 4, 8, 10, 10]


@given(
    delay=st.floats(0, 100),
    cap=st.floats(0, 3_600),
    factor=st.floats(1, 100),
    jitter=st.floats(0, 1),
    attempt=st.integers(1, 10_000),
    chance=st.floats(0, 1),
)
def test_a_wait_lies_between_its_jittered_share_and_its_cap(
    delay: float, cap: float, factor: float, jitter: float, attempt: int, chance: float
) -> None:
    cap = max(delay, cap)
    policy = RetryPolicy(10_001, delay, factor, cap, jitter)
    wait = policy.delay_after(attempt, chance)
    assert 0 <= wait <= cap
    assert wait >= min(delay, cap) * (1 - jitter) * (1 - 1e-9)
    assert policy.delay_after(attempt, 0) >= wait


def test_a_delay_that_the_cap_would_cut_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"delay_seconds=120 is longer than longest_delay_seconds=60\.0: raise"):
        RetryPolicy.exponential(3, delay_seconds=120)


class FlakyError(ConnectionError):
    class NestedError(Exception):
        pass


def test_a_nested_class_is_chosen_by_the_name_that_its_dead_letters_bear() -> None:
    error = FlakyError.NestedError()
    for name in (class_name(error), "FlakyError.NestedError", "NestedError"):
        assert RetryPolicy(2, retry_on=[name]).covers(error)


@pytest.mark.parametrize(
    ("names", "covered"),
    [
        ((), True),
        (("FlakyError",), True),
        (("ConnectionError",), True),
        (("builtins.OSError",), True),
        (("ValueError",), False),
        ((f"{__name__}.FlakyError",), True),
        (("another.module.FlakyError",), False),
    ],
    ids=repr,
)
def test_errors_are_chosen_by_class_and_by_what_it_is_derived_from(names: tuple[str, ...], covered: bool) -> None:
    assert RetryPolicy(2, retry_on=names).covers(FlakyError()) is covered


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"max_attempts": 0}, "max_attempts=0: it includes the first try"),
        ({"max_attempts": True}, "max_attempts=True"),
        ({"max_attempts": 2, "delay_seconds": -1}, "delay_seconds=-1: use a number from 0 to 3600"),
        ({"max_attempts": 2, "delay_seconds": float("nan")}, "delay_seconds=nan"),
        ({"factor": 0.5}, "factor=0.5: use a number from 1 to 100"),
        ({"jitter": 2}, "jitter=2: use a number from 0 to 1"),
        ({"retry_on": "TimeoutError"}, "must be a list"),
        ({"retry_on": ["not a class"]}, "'not a class', which is not an exception class"),
    ],
    ids=repr,
)
def test_a_retry_policy_that_cannot_work_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyError, match="^" + said.replace("(", r"\(") + "|" + said):
        RetryPolicy(**arguments)


@pytest.mark.parametrize(
    ("budget", "dead", "read", "exceeded"),
    [
        (DeadLetterBudget(), 10_000, 10_000, False),
        (DeadLetterBudget(max_dead_letters=0), 1, 1, True),
        (DeadLetterBudget(max_dead_letters=5), 5, 5, False),
        (DeadLetterBudget(max_dead_letters=5), 6, 1_000_000, True),
        (DeadLetterBudget(max_dead_letter_ratio=0.1), 50, 99, False),
        (DeadLetterBudget(max_dead_letter_ratio=0.1), 10, 100, False),
        (DeadLetterBudget(max_dead_letter_ratio=0.1), 11, 100, True),
        (DeadLetterBudget(5, 0.9), 6, 1_000, True),
    ],
    ids=repr,
)
def test_a_budget_is_exceeded_by_count_or_by_ratio(
    budget: DeadLetterBudget, dead: int, read: int, exceeded: bool
) -> None:
    assert bool(budget.exceeded_by(dead, read)) is exceeded


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"on_fault": "explode"}, "on_fault='explode': use one of 'dead_letter', 'skip'"),
        ({"on_fault": "dead_letter"}, "needs a dead_letter topic"),
        ({"max_dead_letters": -1}, "max_dead_letters=-1"),
        ({"max_dead_letters": 1.5}, "max_dead_letters=1.5"),
        ({"max_dead_letter_ratio": 1.5}, "max_dead_letter_ratio=1.5: use a number from 0 to 1"),
    ],
    ids=repr,
)
def test_a_pipeline_with_a_policy_that_cannot_work_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        KafkaPipeline(**PARTS, **arguments)


@pytest.mark.parametrize(
    ("on_fault", "dead_letter", "action"),
    [
        (None, None, "stop_partition"),
        (None, KafkaDeadLetter("dead"), "dead_letter"),
        ("skip", KafkaDeadLetter("dead"), "skip"),
        ("stop_pipeline", None, "stop_pipeline"),
        ("module:choose", None, "module:choose"),
    ],
    ids=repr,
)
def test_a_pipeline_has_the_action_of_its_policy(on_fault: Any, dead_letter: Any, action: str) -> None:
    assert KafkaPipeline(**PARTS, dead_letter=dead_letter, on_fault=on_fault).fault_action == action


def test_policies_cross_a_process_border() -> None:
    pipeline = KafkaPipeline(
        **PARTS,
        retry=RetryPolicy.exponential(5, retry_on=["TimeoutError"]),
        on_fault="skip",
        max_dead_letters=7,
        max_dead_letter_ratio=0.25,
    )
    assert KafkaPipeline.from_json(json.loads(json.dumps(pipeline.to_json()))) == pipeline
