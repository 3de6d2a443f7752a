"""Turns the provider's errors into Airflow's: what trying again cannot mend fails the task at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_kpipe.exceptions import KpipeError


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
