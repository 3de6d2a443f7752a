"""Dead letters from a function of the user's, found by import path."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from typing import Any

from airflow_provider_kpipe.contract.dead_letters.dead_letter import DeadLetter, Header
from airflow_provider_kpipe.contract.dead_letters.dialects import redrive_headers
from airflow_provider_kpipe.contract.dead_letters.header_names import check_header_name
from airflow_provider_kpipe.contract.dead_letters.messages import DeadLetterMessage
from kpipe_engine.errors import PartitionHaltedError, shown
from kpipe_engine.faults.time_limit import NO_LIMIT, Limit


class Mapper:
    """Caller of the user's function, which adds the headers that a redrive needs to those that the function returns."""

    def __init__(self, path: str, limit: Limit = NO_LIMIT) -> None:
        self._path, self._limit = path, limit
        self._function: Callable[[DeadLetter], Any] | None = None

    def __call__(self, letter: DeadLetter) -> DeadLetterMessage:
        try:
            if self._function is None:
                # Imported at the first dead letter: a run without one needs no mapper.
                self._function = self._found()
            key, value, headers = self._function(letter)
            _check_part("key", key)
            _check_part("value", value)
            return DeadLetterMessage(key, value, [*_pairs(headers), *redrive_headers(letter)])
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            raise PartitionHaltedError(
                f"offset {letter.source.offset}: the dead letter mapper {self._path!r} made nothing of the record "
                f"({shown(error)}): it takes a DeadLetter and returns key, value and headers; "
                "fix it, or ship its module with py_files, then run again",
                letter.source.offset,
            ) from error

    def _found(self) -> Callable[[DeadLetter], Any]:
        with self._limit.step(f"the import of the dead letter mapper {self._path!r}"):
            return self._limit.around(pkgutil.resolve_name(self._path))


def _check_part(name: str, part: Any) -> None:
    if not isinstance(part, (bytes, str, type(None))):
        raise TypeError(f"the {name} that it returned is {type(part).__name__}: bytes, str or None can be written")


def _pairs(headers: Any) -> list[Header]:
    pairs = []
    for name, value in headers or ():
        _check_part(f"header {name!r}", value)
        check_header_name(name)
        pairs.append((name, value))
    return pairs
