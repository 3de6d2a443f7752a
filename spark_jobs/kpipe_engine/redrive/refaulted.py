"""Dead letters of records that came out of dead letters."""

from __future__ import annotations

from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.faults.dead_letter_topic import DeadLetters
from kpipe_engine.redrive.original_record import OriginalRecord


class RefaultedDeadLetters:
    """Dead letters of restored records: each is the letter that the record was in, which counts earlier attempts."""

    def __init__(self, letters: DeadLetters) -> None:
        self._letters = letters

    def take(self, message: SourceMessage, fault: Fault) -> None:
        self._letters.take(message.original if isinstance(message, OriginalRecord) else message, fault)
