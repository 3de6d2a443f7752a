"""A fault: an error that a record could not pass."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from typing import Literal, TypeAlias

from airflow_provider_kpipe.contract.clean_text import cleaned
from airflow_provider_kpipe.contract.faults.stack_trace import class_name, format_exception

FaultKind: TypeAlias = Literal["source", "segment", "destination", "dead_letter", "crash", "timeout"]

# A header has to fit beside the payload under the broker's message limit.
MESSAGE_CHARACTERS = 2_000
STACKTRACE_CHARACTERS = 8_000


@dataclass(frozen=True, slots=True)
class FailedTry:
    """A try that was followed by another."""

    attempt: int
    exception_class: str
    message: str
    delay_seconds: float


@dataclass(frozen=True, slots=True)
class Fault:
    """The component that a record stopped at, the error, and the number of attempts."""

    component: str
    kind: FaultKind
    exception_class: str
    message: str
    stacktrace: str
    attempts: int
    occurred_at: str
    retries: tuple[FailedTry, ...] = ()

    @classmethod
    def of(cls, error: BaseException, component: str, kind: FaultKind, retries: tuple[FailedTry, ...] = ()) -> Fault:
        try:
            message = str(error)
            trace = format_exception(error)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as unspeakable:  # noqa: BLE001  # user code: a fault must come of it, whatever it raises
            message = f"{type(error).__name__}, which cannot say its message: {type(unspeakable).__name__}"
            trace = "".join(traceback.format_tb(error.__traceback__))
        return cls(
            component=component,
            kind=kind,
            exception_class=class_name(error),
            message=message[:MESSAGE_CHARACTERS],
            stacktrace=trace[-STACKTRACE_CHARACTERS:],
            attempts=len(retries) + 1,
            occurred_at=_moment(time.time_ns() // 1_000_000),
            retries=retries,
        )

    def __str__(self) -> str:
        """Return a text for people, in logs and reasons. A dead letter has the message as it was raised."""
        return cleaned(f"{self.kind} {self.component}: {self.exception_class}: {self.message}")


@lru_cache(maxsize=1)
def _moment(milliseconds: int) -> str:
    # If faults are frequent, many of them share one millisecond.
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).isoformat(timespec="milliseconds")
