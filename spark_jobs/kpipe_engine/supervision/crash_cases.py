"""Pure: derives the precautions of a worker from the deaths of those before it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timezone

from airflow_provider_kpipe.contract.faults.fault import STACKTRACE_CHARACTERS, Fault, FaultKind
from kpipe_engine.assignment.precautions import Precautions, Suspicion
from kpipe_engine.assignment.worker_position import At, Reading
from kpipe_engine.errors import SegmentTimeoutError, WorkerDiedError
from kpipe_engine.supervision.task_layout import Block

SHRINK = 32
"""Factor by which the chunks after a death are smaller than the one that the worker died over."""
MOST_DEATHS = 10
"""Limit of deaths. From a first chunk of any size to a record that kills two workers in a chunk of its own, it takes at
most eight."""
MOST_DEATHS_OVER_NOTHING = 3
_LAST_CALL_FIRST = "(most recent call first):"


@dataclass(frozen=True, slots=True)
class Death:
    """The way in which a worker has died."""

    kind: FaultKind
    message: str
    trace: str = ""

    def fault(self, component: str, attempts: int) -> Fault:
        error = SegmentTimeoutError if self.kind == "timeout" else WorkerDiedError
        fault = Fault.of(error(f"over this record the worker {self.message}"), component, self.kind)
        trace = _up_to_the_engine(self.trace)[-STACKTRACE_CHARACTERS:] or fault.stacktrace
        return replace(fault, stacktrace=trace, attempts=attempts)


class Case:
    """A block and the workers that died over it.

    The first death shows which records were being handled. They are redone in smaller chunks, and a death over one of
    those shows which records to look at next. A record that makes two workers in a row die in a chunk of its own is
    found, and is a fault like any other. A death may also follow its record late, or come of load rather than of a
    record: then everything since the stored offset is suspected, and the number of tries is limited.
    """

    def __init__(self, block: Block, component: str, memory_mb: int | None) -> None:
        self.block = block
        self.precautions = Precautions()
        self.is_done = False
        """Tells whether the result of the block is known; its worker then only has to close."""
        self._component = component
        self._memory_mb = memory_mb
        self._read: Reading | None = None
        self._alone: tuple[int, int] | None = None
        self._deaths = self._deaths_over_nothing = 0

    def note_death(self, death: Death, at: At | Reading | None, was_at_ease: bool) -> str:
        """Put the precautions of the next worker into `precautions`, and return them in words.

        :param at: the records that the segments received last, or the read that the worker was at with none in hand
        :param was_at_ease: whether the worker was past the records that those before it died over
        """
        self.precautions = replace(self.precautions, follows_death=True)
        if at is None:
            return self._note_death_over_nothing(death, was_at_ease)
        if isinstance(at, Reading):
            return self._note_death_in_read(death, at)
        self._read, is_of_read = None, self._read is not None
        self._deaths = 1 if was_at_ease else self._deaths + 1
        # A suspicion that comes of a read is dropped: none of its records was in hand yet.
        self.precautions, found = self._next(at, death, None if is_of_read else self.precautions.suspicion)
        return f"partition {at.partition}: its worker {death.message} at offsets {at.first} to {at.after - 1}; {found}"

    def note_hang(self, death: Death) -> str:
        """Stop the block over user code that hung outside of any record: it would make the next worker hang, too."""
        reason = f"the worker {death.message}; fix it or what it needs, then run again"
        self._stop(reason, *(planned.partition for planned in self.block))
        return f"partitions {self.partitions}: {reason}"

    @property
    def partitions(self) -> str:
        return ", ".join(str(planned.partition) for planned in self.block)

    def give_up(self, at: At | None, stored_at: float, overdue: float) -> str:
        """After the deadline, leave the next worker only to store the reason, and return that.

        :param stored_at: time of the last store, in seconds since 1970
        :param overdue: seconds since the deadline
        """
        since = datetime.fromtimestamp(stored_at, timezone.utc).isoformat(timespec="seconds")
        where = f"partition {at.partition}, offsets {at.first} to {at.after - 1}" if at else "no record"
        reason = (
            f"the run has reached its max_run_time, and {overdue:.0f} s later the worker was still busy with {where}; "
            f"it had stored nothing since {since}, and was ended"
        )
        self.precautions = replace(self.precautions, yields=reason, suspicion=None)
        return reason

    @property
    def is_given_up(self) -> bool:
        """Tell whether the worker only has to give up all of its partitions."""
        if self.is_done:
            return False
        return self.precautions.yields is not None or all(
            planned.partition in self.precautions.stops for planned in self.block
        )

    def _note_death_in_read(self, death: Death, at: Reading) -> str:
        """Fetch less at a time from there on, until a batch is found that ends a worker by itself."""
        before, self._read = self._read, at
        where = f"partition {at.partition}: its worker {death.message} while it fetched from offset {at.offset}"
        if before is not None and before[:2] == at[:2] and at.most == 1:
            reason = (
                f"the worker {death.message} while it fetched the batch at offset {at.offset}, and nothing else: most "
                "likely the batch inflates to more than it has memory for "
                f"(worker_memory_mb={self._memory_mb}); raise that, or for zstd lower receive.message.max.bytes in the "
                "extra of the source's connection, then run again"
            )
            self._stop(reason, at.partition)
            return f"{where}; {reason}"
        suspicion = Suspicion(at.partition, None, at.offset + at.most, _fewer(at.most))
        self.precautions = replace(self.precautions, suspicion=suspicion)
        return f"{where}, with no record in hand; from there on, {suspicion.records} are fetched at a time"

    def _note_death_over_nothing(self, death: Death, was_at_ease: bool) -> str:
        where = f"while it had no record in hand: its clients were opened, or {self._component} was imported or opened"
        self._deaths_over_nothing = 1 if was_at_ease else self._deaths_over_nothing + 1
        if self._deaths_over_nothing < MOST_DEATHS_OVER_NOTHING:
            return f"a worker {death.message} {where}; it is tried again"
        reason = (
            f"the worker {death.message} {where} ({MOST_DEATHS_OVER_NOTHING} times); see the executor's log, then run "
            "again"
        )
        self._stop(reason, *(planned.partition for planned in self.block))
        return reason

    def _next(self, at: At, death: Death, before: Suspicion | None) -> tuple[Precautions, str]:
        """Return precautions with the narrowest suspicion that this death allows, and describe them."""
        precautions, is_found = self.precautions, self._is_found(at, death)
        if before is None or not before.covers(at):
            suspicion = Suspicion(at.partition, at.first, at.after, _fewer(at.read))
        elif is_found:
            return self._condemn(at, death)
        else:
            suspicion = Suspicion(at.partition, None, at.after, _fewer(at.in_chunk))
        if self._deaths >= MOST_DEATHS:
            reason = (
                f"the worker died {self._deaths} times, the last time it {death.message} at offsets {at.first} to "
                f"{at.after - 1}, and no record makes it die by itself: look at its memory and at its native "
                "libraries, then run again"
            )
            self._stop(reason, at.partition)
            return self.precautions, reason
        return replace(precautions, suspicion=suspicion), f"they are redone, {suspicion.records} in a chunk"

    def _is_found(self, at: At, death: Death) -> bool:
        """Tell whether the record was alone in its chunk twice in a row, or once if a time limit was exceeded.

        A general cause of deaths, such as memory that leaks or that a container lacks, ends some workers over a chunk
        of one record, too, but hardly two over the same record. Only an exceeded time limit has no other cause.
        """
        before, self._alone = self._alone, (at.partition, at.first) if at.in_chunk == 1 else None
        return self._alone is not None and (death.kind == "timeout" or self._alone == before)

    def _condemn(self, at: At, death: Death) -> tuple[Precautions, str]:
        known = self.precautions.culprits.get(at.partition, {})
        if at.first in known:
            reason = (
                f"offset {at.first}: {known[at.first]}; on_fault, or the dead-letter mapper, also ended the worker: "
                f"it {death.message}; fix it, then run again"
            )
            self._stop(reason, at.partition)
            return self.precautions, reason
        fault, self._deaths = death.fault(self._component, self._deaths), 0
        culprits = {**self.precautions.culprits, at.partition: {**known, at.first: fault}}
        suspicion = Suspicion(at.partition, None, at.after, 1)
        return replace(
            self.precautions, suspicion=suspicion, culprits=culprits
        ), f"offset {at.first} is found to be the cause"

    def _stop(self, reason: str, *partitions: int) -> None:
        stops = {**self.precautions.stops, **dict.fromkeys(partitions, reason)}
        self.precautions, self._deaths = replace(self.precautions, suspicion=None, stops=stops), 0


def _up_to_the_engine(trace: str) -> str:
    """Cut a crash trace off at the engine's frames: the way in which the engine called a segment explains nothing.

    A crash trace begins with the last call.
    """
    kept, is_engine = [], False
    for line in trace.splitlines(keepends=True):
        is_engine = line.startswith(" ") and (is_engine or (_LAST_CALL_FIRST in trace and "kpipe_engine" in line))
        if not is_engine:
            kept.append(line)
    return "".join(kept)


def _fewer(records: int) -> int:
    return max(1, records // SHRINK)
