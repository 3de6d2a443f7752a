"""The policies for a record that does not pass: first tries, then an action."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from airflow_provider_kpipe.contract.pipeline.kinds import listed

FaultAction: TypeAlias = Literal["dead_letter", "skip", "stop_partition", "stop_pipeline"]

IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_CLASS_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
LONGEST_DELAY_SECONDS = 3_600.0


class PolicyError(ValueError):
    """Mistake in the declaration of a policy, which cannot work."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The number of tries before a record's fault counts. `max_attempts` includes the first try.

    :param delay_seconds: the wait after the first try
    :param factor: multiplies each further wait: 1 waits the same time, 2 doubles it
    :param longest_delay_seconds: no wait is longer
    :param jitter: the random share of each wait, from 0 to 1, so that partitions do not call the same service at
        the same time
    :param retry_on: names of exception classes, `TimeoutError` or `requests.exceptions.Timeout`, that are worth
        another try, with their subclasses; empty means all
    """

    max_attempts: int = 1
    delay_seconds: float = 0.0
    factor: float = 1.0
    longest_delay_seconds: float = 60.0
    jitter: float = 0.0
    retry_on: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "retry_on", listed("retry_on", self.retry_on, "exception classes", PolicyError))
        if type(self.max_attempts) is not int or self.max_attempts < 1:
            raise PolicyError(f"max_attempts={self.max_attempts!r}: it includes the first try, so it is 1 at least")
        _check_range("delay_seconds", self.delay_seconds, 0, LONGEST_DELAY_SECONDS)
        _check_range("longest_delay_seconds", self.longest_delay_seconds, 0, LONGEST_DELAY_SECONDS)
        if self.delay_seconds > self.longest_delay_seconds:
            raise PolicyError(
                f"delay_seconds={self.delay_seconds!r} is longer than longest_delay_seconds="
                f"{self.longest_delay_seconds!r}: raise the latter"
            )
        _check_range("factor", self.factor, 1, 100)
        _check_range("jitter", self.jitter, 0, 1)
        for name in self.retry_on:
            if not isinstance(name, str) or not _CLASS_NAME.fullmatch(name):
                raise PolicyError(
                    f"retry_on has {name!r}, which is not an exception class: use 'TimeoutError' or 'a.b.C'"
                )

    @classmethod
    def fixed(cls, max_attempts: int, delay_seconds: float, retry_on: Sequence[str] = ()) -> RetryPolicy:
        """Return a policy that waits the same time after each try."""
        return cls(max_attempts, delay_seconds, longest_delay_seconds=delay_seconds, retry_on=retry_on)

    @classmethod
    def exponential(
        cls,
        max_attempts: int,
        delay_seconds: float = 0.1,
        longest_delay_seconds: float = 60.0,
        jitter: float = 0.5,
        retry_on: Sequence[str] = (),
    ) -> RetryPolicy:
        """Return a policy that doubles the wait after each try."""
        return cls(max_attempts, delay_seconds, 2.0, longest_delay_seconds, jitter, retry_on)

    def delay_after(self, attempt: int, chance: float) -> float:
        """Return the seconds to wait after a try, the first being 1; `chance` is a random number from 0 to 1."""
        # The exponent is bounded: a float would overflow before the longest delay applies.
        grown = self.delay_seconds * self.factor ** min(attempt - 1, 64)
        return min(grown, self.longest_delay_seconds) * (1 - self.jitter * chance)

    def covers(self, error: BaseException) -> bool:
        """Tell whether an error is worth another try."""
        if not self.retry_on:
            return True
        return any(
            not {kind.__name__, kind.__qualname__, f"{kind.__module__}.{kind.__qualname__}"}.isdisjoint(self.retry_on)
            for kind in type(error).__mro__
        )


@dataclass(frozen=True, slots=True)
class DeadLetterBudget:
    """The number of records of a run that may fault before it stops the pipeline instead of flooding the topic.

    The ratio is that of the records that became dead letters, or were skipped, to those that were read. It counts at
    the end of a chunk, and earlier only if so many records have faulted that the chunk would have to last for long.
    """

    max_dead_letters: int | None = None
    max_dead_letter_ratio: float | None = None

    # A ratio says nothing about the first few records.
    SMALLEST_SAMPLE = 100
    # A flood is more dead letters than a producer without transactions sends before it can be made to drop them.
    FLOOD = 1_000

    def __post_init__(self) -> None:
        most, ratio = self.max_dead_letters, self.max_dead_letter_ratio
        if most is not None and (type(most) is not int or most < 0):
            raise PolicyError(f"max_dead_letters={most!r}: use a whole number from 0, or None for no limit")
        if ratio is not None:
            _check_range("max_dead_letter_ratio", ratio, 0, 1)

    @property
    def limits(self) -> bool:
        return self.max_dead_letters is not None or self.max_dead_letter_ratio is not None

    def exceeded_by(self, dead_letters: int, read: int, skipped: int = 0) -> str | None:
        """Return, in words, the limit that so many faults among `read` records exceed; None if they exceed none."""
        if self.max_dead_letters is not None and dead_letters > self.max_dead_letters:
            return f"more than max_dead_letters={self.max_dead_letters} dead letters in this run"
        if read >= self.SMALLEST_SAMPLE and self.ratio_is_exceeded_by(dead_letters, read, skipped):
            share = f"{dead_letters + skipped} of {read} records faulted"
            return f"{share}, more than max_dead_letter_ratio={self.max_dead_letter_ratio} of them"
        return None

    def ratio_is_exceeded_by(self, dead_letters: int, read: int, skipped: int = 0) -> bool:
        """Tell whether so many faults exceed the ratio, however small the sample."""
        return self.max_dead_letter_ratio is not None and dead_letters + skipped > self.max_dead_letter_ratio * read

    def faults_left(self, dead_letters: int, read: int, skipped: int = 0) -> int:
        """Return how many more records may fault within a chunk, whatever the outcome of those between them."""
        left = []
        if self.max_dead_letters is not None:
            left.append(self.max_dead_letters - dead_letters)
        if self.max_dead_letter_ratio is not None:
            left.append(int(self.max_dead_letter_ratio * read) + self.FLOOD - dead_letters - skipped)
        return min(left)


def check_on_fault(on_fault: str | None, has_dead_letter: bool) -> None:
    """Raise PolicyError if `on_fault` is neither an action nor the import path of a function that chooses one."""
    if on_fault is None:
        return
    if on_fault not in get_args(FaultAction) and not IMPORT_PATH.fullmatch(on_fault):
        raise PolicyError(
            f"on_fault={on_fault!r}: use one of {', '.join(map(repr, get_args(FaultAction)))}, or the import path "
            "of a function that chooses among them, 'module:name'"
        )
    if on_fault == "dead_letter" and not has_dead_letter:
        raise PolicyError("on_fault='dead_letter' needs a dead_letter topic: give the pipeline one")


def _check_range(name: str, value: float, least: float, most: float) -> None:
    if type(value) not in (int, float) or not least <= value <= most:
        raise PolicyError(f"{name}={value!r}: use a number from {least:g} to {most:g}")
