from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_kpipe import exceptions
from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.pipeline.declaration import PipelineError
from airflow_provider_kpipe.contract.pipeline.policies import PolicyError
from airflow_provider_kpipe.contract.pipeline.scaling import ScalingError
from airflow_provider_kpipe.contract.redrive.redrive import RedriveError
from airflow_provider_kpipe.exceptions import (
    ConnectionSettingsError,
    HeldUpError,
    KafkaUnavailableError,
    KpipeError,
    UnreachableError,
)
from airflow_provider_kpipe.forms.fields import FormError
from airflow_provider_kpipe.task_runtime.errors import failing_without_retry, first_contact

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
    with pytest.raises(expected, match="the reason") as raised, failing_without_retry():
        raise kind("the reason")
    assert type(raised.value) is expected


def drawn() -> Iterator[tuple[str, str, bool]]:
    """Each kind of the drawing in the module, the one above it, and whether it has a star."""
    above: list[str] = []
    for indent, name, star in re.findall(r"^((?: {4})+)(\w+)( \*)?$", exceptions.__doc__ or "", re.MULTILINE):
        depth = len(indent) // 4 - 1
        above[depth:] = [name]
        yield name, above[depth - 1] if depth else "", bool(star)


def test_the_module_draws_its_kinds() -> None:
    kinds = [(each.__name__, each.__mro__[1].__name__, each.retriable) for each in KINDS]
    assert sorted(drawn()) == sorted((name, "" if name == "KpipeError" else above, star) for name, above, star in kinds)


@pytest.mark.parametrize(
    "kind", [DocumentError, FormError, PipelineError, PolicyError, RedriveError, ScalingError, UnicodeError]
)
def test_what_is_wrong_in_itself_fails_without_a_retry(kind: type[ValueError]) -> None:
    with pytest.raises(AirflowFailException, match="the reason"), failing_without_retry():
        raise kind("the reason")


def test_a_declaration_that_cannot_work_fails_without_a_retry() -> None:
    with pytest.raises(AirflowFailException, match="no such mode"), failing_without_retry():
        raise ValueError("no such mode")


def test_an_error_of_other_code_stays_as_it_is() -> None:
    with pytest.raises(KeyError), failing_without_retry():
        raise KeyError("other")


def test_at_the_first_contact_a_silent_address_is_a_mistake() -> None:
    with pytest.raises(ConnectionSettingsError, match="nobody listens there"), first_contact():
        raise UnreachableError("nobody listens there")


@pytest.mark.parametrize("kind", [KafkaUnavailableError, HeldUpError])
def test_at_the_first_contact_any_other_silence_is_an_outage(kind: type[KpipeError]) -> None:
    with pytest.raises(kind) as raised, first_contact():
        raise kind("later")
    assert type(raised.value) is kind
