"""Turns the provider's errors into Airflow's: an error that a retry cannot fix fails the task at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_kpipe.exceptions import ConnectionSettingsError, KpipeError, UnreachableError


@contextmanager
def failing_without_retry() -> Iterator[None]:
    """Fail the task at once for an error that a retry would only meet again.

    Each ValueError counts as one. Ours are about a declaration, a template, a form, a setting or a stored document,
    and that of a library is about what it is handed: a retry has the same. What may pass, such as an answer that does
    not come, is a KpipeError or an error of another kind.
    """
    try:
        yield
    except KpipeError as error:
        if error.retriable:
            raise
        raise AirflowFailException(str(error)) from error
    except ValueError as error:
        raise AirflowFailException(str(error)) from error


@contextmanager
def first_contact() -> Iterator[None]:
    """Guard the first requests over a connection that is not known to have ever worked.

    If no broker answers, its address counts as a mistake; an address that has answered before is right.
    """
    try:
        yield
    except UnreachableError as error:
        raise ConnectionSettingsError(str(error)) from error
