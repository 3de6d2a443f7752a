from __future__ import annotations

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_kpipe import exceptions
from airflow_provider_kpipe.exceptions import (
    ConnectionSettingsError,
    HeldUpError,
    KafkaUnavailableError,
    KpipeError,
    UnreachableError,
)
from airflow_provider_kpipe.task_runtime.errors import failing_for_good, first_contact

KINDS = [each for each in vars(exceptions).values() if isinstance(each, type) and issubclass(each, KpipeError)]
PASSING = {
    "CommitError",
    "GroupInUseError",
    "HeldUpError",
    "IncompleteRunError",
    "KafkaUnavailableError",
    "OverdueJobError",
    "UnreachableError",
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_task_is_tried_again_only_for_an_error_that_may_pass(kind: type[KpipeError]) -> None:
    expected: type[Exception] = kind if kind.__name__ in PASSING else AirflowFailException
    with pytest.raises(expected, match="the reason") as raised, failing_for_good():
        raise kind("the reason")
    assert type(raised.value) is expected


def test_a_declaration_that_cannot_work_fails_for_good() -> None:
    with pytest.raises(AirflowFailException, match="no such mode"), failing_for_good():
        raise ValueError("no such mode")


def test_an_error_of_other_code_stays_as_it_is() -> None:
    with pytest.raises(KeyError), failing_for_good():
        raise KeyError("other")


def test_at_the_first_contact_a_silent_address_is_a_mistake() -> None:
    with pytest.raises(ConnectionSettingsError, match="connection refused"), first_contact():
        raise UnreachableError("connection refused")


@pytest.mark.parametrize("kind", [KafkaUnavailableError, HeldUpError])
def test_at_the_first_contact_any_other_silence_is_an_outage(kind: type[KpipeError]) -> None:
    with pytest.raises(kind) as raised, first_contact():
        raise kind("later")
    assert type(raised.value) is kind
