"""The ledger: which dead letters of a topic have been redriven, in a compacted topic beside it.

A letter's entry is written in the transaction that redrives it, into the partition of the same number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from airflow_provider_kpipe.contract.offsets import PartitionRange
from airflow_provider_kpipe.contract.strict_json import Document


@dataclass(frozen=True, slots=True)
class LedgerEntry(Document):
    """What became of a dead letter, and by which run."""

    SCHEMA_VERSION: ClassVar[int] = 1

    run_key: str
    outcome: Literal["redriven", "parked"]
    at: str


def ledger_key(topic_id: str, source_offset: int) -> bytes:
    """With the id, which a topic that is made anew does not keep: its dead letters start afresh."""
    return f"{topic_id}/{source_offset}".encode()


class Redriven:
    """The offsets of one range that the ledger names, gathered entry by entry."""

    def __init__(self, topic_id: str, planned: PartitionRange) -> None:
        self._prefix = f"{topic_id}/".encode()
        self._range = range(planned.start, planned.end)
        self._offsets: set[int] = set()

    def note(self, key: bytes | None, value: bytes | None) -> None:
        """An entry without a value takes an earlier one back."""
        if key is None or not key.startswith(self._prefix):
            return
        number = key[len(self._prefix) :]
        if not number.isdigit() or int(number) not in self._range:
            return
        if value is None:
            self._offsets.discard(int(number))
        else:
            self._offsets.add(int(number))

    def __contains__(self, source_offset: object) -> bool:
        return source_offset in self._offsets

    def __len__(self) -> int:
        return len(self._offsets)
