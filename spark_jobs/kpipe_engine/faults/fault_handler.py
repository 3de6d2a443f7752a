"""One of four actions for a record that cannot pass: the same one for all faults, or one chosen for each."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from typing import get_args

from airflow_provider_kpipe.contract.faults.causes import Cause, merged
from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.pipeline.policies import FaultAction
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import Origin, Record, SourceMessage, coordinates
from kpipe_engine.assignment.run_monitor import RunMonitor
from kpipe_engine.errors import PartitionHaltedError, PipelineHaltedError, shown
from kpipe_engine.faults.dead_letter_topic import DeadLetters, cannot_read
from kpipe_engine.faults.time_limit import Limit

Choose = Callable[[Fault, SourceMessage], str]


class FaultHandler:
    """Handler of faulted records: it makes a record terminal, or stops in front of it."""

    def __init__(self, choose: Choose, dead_letters: DeadLetters, watch: RunMonitor) -> None:
        self._choose = choose
        self._dead_letters = dead_letters
        self._watch = watch

    def take(self, message: SourceMessage, fault: Fault, counts: Counts) -> None:
        # Once its dead letter has failed to be written, a record has no choice of action: it must not be passed over.
        action = "dead_letter" if fault.kind == "dead_letter" else self._choose(fault, message)
        if action in ("dead_letter", "skip"):
            try:
                self._watch.allow_fault(as_dead_letter=action == "dead_letter")
            except PartitionHaltedError as stop:
                # The records before this one are already processed: the stop has to store the progress up to here.
                raise PartitionHaltedError(str(stop), message.offset()) from stop
        if action == "dead_letter":
            self._dead_letters.take(message, fault)
            counts.dead_lettered += 1
            _note(message, fault, counts)
        elif action == "skip":
            counts.skipped += 1
            _note(message, fault, counts)
        elif action == "stop_pipeline":
            raise PipelineHaltedError(_named(message, fault), message.offset())
        elif action == "stop_partition":
            raise PartitionHaltedError(_named(message, fault), message.offset())
        else:
            raise PartitionHaltedError(
                f"offset {message.offset()}: on_fault chose {action!r}; it chooses one of "
                f"{', '.join(map(repr, get_args(FaultAction)))}",
                message.offset(),
            )


def _note(message: SourceMessage, fault: Fault, counts: Counts) -> None:
    for known in counts.causes:
        # Nearly every fault has a known cause, and is counted here without a further call.
        if known.exception_class == fault.exception_class and known.component == fault.component:
            known.count += 1
            return
    _topic, partition, offset = coordinates(message)
    counts.causes = merged((*counts.causes, Cause.of(fault, partition, offset)))


class UsersChoice:
    """The user's function that chooses an action for each fault, imported at the first fault."""

    def __init__(self, path: str, origin: Origin, limit: Limit) -> None:
        self._path, self._origin, self._limit = path, origin, limit
        self._function: Callable[[Fault, Record], str] | None = None

    def __call__(self, fault: Fault, message: SourceMessage) -> str:
        try:
            if self._function is None:
                with self._limit.step(f"the import of on_fault={self._path!r}"):
                    self._function = self._limit.around(pkgutil.resolve_name(self._path))
            chosen = self._function(fault, Record(message, self._origin))
            if not isinstance(chosen, str):
                raise TypeError(f"it chose a {type(chosen).__name__}, which is not an action")
            return chosen
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            raise PartitionHaltedError(
                f"offset {message.offset()}: on_fault={self._path!r} itself failed over it "
                f"({shown(error)}); the record's fault was {fault}; fix the function, then run again",
                message.offset(),
            ) from error


def _named(message: SourceMessage, fault: Fault) -> str:
    if fault.kind == "source":
        return cannot_read(message, fault)
    return (
        f"offset {message.offset()}: {fault}; fix the segment or the record, or set on_fault='dead_letter', "
        "then run again"
    )
