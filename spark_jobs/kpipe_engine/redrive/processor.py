"""Return of the records of dead letters, each once, however often users start the redrive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple, cast

from airflow_provider_kpipe.contract.dead_letters.dead_letter import DeadLetter
from airflow_provider_kpipe.contract.dead_letters.messages import read_dead_letter
from airflow_provider_kpipe.contract.documents import OtherVersionError
from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.contract.redrive.ledger import Place, SourceRecord
from airflow_provider_kpipe.contract.redrive.redrive import COUNTERS, Outcome, Redrive, refused_letter, written_topics
from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.errors import ChunkFailedError, KnownFaults, PartitionHaltedError, UnwritableRecordError
from kpipe_engine.processing.processor import RecordProcessor
from kpipe_engine.reading.messages import read_headers
from kpipe_engine.redrive.ledger import Ledger
from kpipe_engine.redrive.original_record import OriginalRecord, choose_restore
from kpipe_engine.writing.producer_session import ProducerSession


class _Decided(NamedTuple):
    """A dead letter, its outcome and, if it is redriven, the record inside."""

    message: SourceMessage
    outcome: Outcome
    letter: DeadLetter | None
    restored: OriginalRecord | None


class RedriveProcessor:
    """Processor of dead letters, which gives the records inside to the processor of a pipeline, or of the source topic.

    Whatever the outcome of such a record, its letter is done, and gets its ledger entry in the same transaction.
    """

    def __init__(
        self, job: Job, redrive: Redrive, inner: RecordProcessor, ledger: Ledger, session: ProducerSession
    ) -> None:
        self._redrive = redrive
        self._inner = inner
        self._ledger = ledger
        self._session = session
        self._restore = choose_restore(job.pipeline, redrive.target)
        self._written_topics = written_topics(job.pipeline, redrive)

    def open(self) -> None:
        """Open the inner processor, and read the ledger before any letter is in hand."""
        self._inner.open()
        self._ledger.decisions()

    def process(
        self, messages: Sequence[SourceMessage], counts: Counts, known_faults: KnownFaults, until: float
    ) -> int:
        stuck = self._first_stuck(messages, known_faults) if known_faults else None
        decided, unreadable = self._decide(messages if stuck is None else messages[:stuck])
        handled = 0
        while handled < len(decided):
            if decided[handled].outcome == "parked":
                self._park(decided[handled])
                _count(decided[handled : handled + 1], counts)
                handled += 1
                continue
            stretch = list(takewhile(lambda each: each.outcome != "parked", decided[handled:]))
            passed = self._pass(stretch, counts, known_faults, until)
            handled += passed
            if passed < len(stretch):
                return handled
        if unreadable is not None:
            raise unreadable
        if stuck is not None:
            refused = messages[stuck].offset()
            raise PartitionHaltedError(self._refused(refused, known_faults[refused]), refused)
        return handled

    @property
    def waits(self) -> float:
        return self._inner.waits

    def close(self) -> None:
        self._inner.close()

    def _decide(self, messages: Sequence[SourceMessage]) -> tuple[list[_Decided], PartitionHaltedError | None]:
        """Decide about all messages, or about those in front of one that only another version of kpipe can read."""
        decided: list[_Decided] = []
        if not messages:
            return decided, None
        decisions = self._ledger.decisions()
        for message in messages:
            try:
                letter = read_dead_letter(message.key(), message.value(), read_headers(message))
            except OtherVersionError as error:
                return decided, PartitionHaltedError(refused_letter(message.offset(), error), message.offset())
            place = Place(message.partition(), message.offset())
            outcome = decisions.outcome_of(letter, place, message.timestamp()[1])
            restored = self._restore(message, letter) if letter and outcome == "redriven" else None
            decided.append(_Decided(message, outcome, letter, restored))
        return decided, None

    def _pass(self, stretch: Sequence[_Decided], counts: Counts, known_faults: KnownFaults, until: float) -> int:
        """Redrive the chosen letters of a stretch, and return how many of all its letters are done, in order."""
        chosen = [each for each in stretch if each.restored]
        stopped: PartitionHaltedError | None = None
        try:
            taken = self._give([each.restored for each in chosen if each.restored], counts, known_faults, until)
        except PartitionHaltedError as stop:
            if stop.next_offset is None:
                raise
            stopped, taken = stop, sum(each.message.offset() < stop.next_offset for each in chosen)
        done = stretch if taken == len(chosen) else stretch[: stretch.index(chosen[taken])]
        for each in chosen[:taken]:
            # Its outputs are on their way already: only a new try of the chunk leaves them out.
            self._enter(each, "redriven")
        _count(done, counts)
        if stopped is not None:
            raise stopped
        return len(done)

    def _give(self, chosen: Sequence[SourceMessage], counts: Counts, known_faults: KnownFaults, until: float) -> int:
        if not chosen:
            return 0
        # The number of counters that segments may have is limited: the redrive's own are not among them.
        ours = {name: counts.named.pop(name) for name in COUNTERS.values() if name in counts.named}
        try:
            return self._inner.process(chosen, counts, known_faults, until)
        finally:
            counts.named.update(ours)

    def _enter(self, decided: _Decided, outcome: Literal["redriven", "parked"]) -> None:
        message, letter = decided.message, cast("DeadLetter", decided.letter)
        try:
            self._ledger.enter(Place(message.partition(), message.offset()), outcome, SourceRecord.of(letter))
        except UnwritableRecordError as error:
            raise _refusal(message, error) from error

    def _park(self, decided: _Decided) -> None:
        self._enter(decided, "parked")
        message = decided.message
        try:
            self._session.produce(
                message.offset(),
                "dead_letter",
                cast("str", self._redrive.parking_topic),  # without one, nothing is parked
                message.value(),
                message.key(),
                timestamp=message.timestamp()[1],
                headers=message.headers(),
            )
        except UnwritableRecordError as error:
            raise _refusal(message, error) from error

    def _first_stuck(self, messages: Sequence[SourceMessage], known_faults: KnownFaults) -> int | None:
        """Return the position of the first letter for which a necessary write failed, or None."""
        for position, message in enumerate(messages):
            fault = known_faults.get(message.offset())
            if fault is not None and fault.kind == "dead_letter":
                return position
        return None

    def _refused(self, source_offset: int, fault: Fault) -> str:
        return (
            f"offset {source_offset}: what its redrive has to write was rejected ({fault.message}): see that the "
            f"topics {', '.join(map(repr, self._written_topics[1:]))} are there, may be written to and take so large "
            "a record, then run again"
        )


def _refusal(message: SourceMessage, error: UnwritableRecordError) -> ChunkFailedError:
    fault = error.fault("dead_letter")
    return ChunkFailedError(str(fault), {message.offset(): fault})


def _count(done: Iterable[_Decided], counts: Counts) -> None:
    """Count the letters by outcome; those that the inner processor was not given count as read and filtered."""
    for each in done:
        counter = COUNTERS[each.outcome]
        counts.named[counter] = counts.named.get(counter, 0) + 1
        if each.restored is None:
            counts.read += 1
            counts.filtered += 1
