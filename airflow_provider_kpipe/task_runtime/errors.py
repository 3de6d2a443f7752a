"""Turns the provider's errors into Airflow's: what trying again cannot mend fails the task at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_kpipe.exceptions import ConnectionSettingsError, KpipeError, UnreachableError


@contextmanager
def failing_for_good() -> Iterator[None]:
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
    """The first questions to each connection of which nothing says that it has ever worked.

    That nobody is at its address is a mistake in it; an address that has answered is right.
    """
    try:
        yield
    except UnreachableError as error:
        raise ConnectionSettingsError(str(error)) from error
