"""Supervisor of partition workers in processes of their own: when one has died, it starts the next one."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NamedTuple

from airflow_provider_kpipe.contract.job import Job, KafkaSettings
from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from kpipe_engine.assignment.precautions import Precautions
from kpipe_engine.assignment.worker_position import WorkerPosition
from kpipe_engine.errors import WorkerDiedError
from kpipe_engine.supervision.crash_cases import Case, Death
from kpipe_engine.supervision.task_layout import Block, Task
from kpipe_engine.supervision.worker_process import CLOSED, TELL_WHERE, serve

log = logging.getLogger("kpipe")

# A process that user code has forked may keep the pipe of a dead worker open.
LOOK_SECONDS = 1.0
# A segment that was interrupted at its limit may take this long to give up.
INTERRUPT_SECONDS = 1.0
TELL_SECONDS = 1.0
# This many blocks in a row wait in vain for a broker's answer, each for its own time: the others need not.
MOST_UNANSWERED = 2


class Answer(NamedTuple):
    """The result of a block, and the clusters at which no broker answers any more, if that has ended the block."""

    done: list[dict[str, Any]]
    silent: list[str]


class WorkerProcess:
    """A process that works on one block after another."""

    def __init__(self, job: Job, kafka: KafkaSettings) -> None:
        self.position = WorkerPosition()
        self._trace = tempfile.TemporaryFile()  # noqa: SIM115  # it stays open as long as the process may write to it
        self.pipe, theirs = Pipe()
        self._status: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        # The objects of this moment are frozen: a child that looked through them for garbage would copy all of them.
        gc.freeze()
        supervisor = os.getpid()
        self._pid = os.fork()
        if not self._pid:
            self.pipe.close()
            serve(job, kafka, supervisor, theirs, self.position, self._trace)
        theirs.close()

    def give(self, block: Block, number: int, precautions: Precautions) -> None:
        self.position.begin()
        self.begun_at = time.time()
        with contextlib.suppress(BrokenPipeError):  # it has died, and is found dead
            self.pipe.send((block, number, precautions))

    def ask(self) -> list[str]:
        """Have the process name the clusters at which no broker answers; none if it dies over that."""
        with contextlib.suppress(BrokenPipeError):
            self.pipe.send(None)
        while not self.pipe.poll(LOOK_SECONDS) and not self.has_died:
            pass
        said = self.said()
        return [] if said is None else Answer(**json.loads(said)).silent

    @property
    def has_died(self) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status is not None

    def said(self) -> bytes | None:
        """Return the result of the block, or CLOSED; None if the process has died."""
        try:
            # If another process holds it open, the pipe of a dead worker is silent, and has no end.
            if self.pipe.poll():
                return self.pipe.recv_bytes()
        except (EOFError, OSError):
            pass
        self.end()
        return None

    def end(self) -> None:
        """Kill the process unless it has died, keep its trace, and close its files. A second call does nothing."""
        if self._trace.closed:
            return
        if not self.has_died:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            _, self._status = os.waitpid(self._pid, 0)
        self.pipe.close()
        # The position is shared with the process, which may have left it anywhere.
        self._trace.seek(0)
        self.trace = self._trace.read().decode(errors="replace")
        self._trace.close()

    def end_where_it_is(self) -> None:
        """Kill the process after it has written down where its threads are."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, TELL_WHERE)
        written, until = 0, time.monotonic() + TELL_SECONDS
        while time.monotonic() < until and not 0 < written == os.fstat(self._trace.fileno()).st_size:
            written = os.fstat(self._trace.fileno()).st_size
            time.sleep(0.05)
        self.end()

    @property
    def death(self) -> Death:
        code = os.waitstatus_to_exitcode(self._status or 0)
        if code < 0:
            name = signal.Signals(-code).name
            return Death("crash", f"was killed by {name}{_MEANINGS.get(name, '')}", self.trace)
        last_line = self.trace.strip().rpartition("\n")[2]
        return Death("crash", f"ended with exit code {code}{f' ({last_line})' if last_line else ''}", self.trace)


_MEANINGS = {"SIGKILL": ", as the kernel does where memory runs out,"}


class Supervisor:
    """Supervisor of the worker processes of one of Spark's Python workers: it starts and watches them.

    It opens no Kafka client and imports no user code. So it can fork at any time, and survives anything that user code
    does. Idle processes wait for the next task.
    """

    def __init__(self, job: Job, kafka: KafkaSettings) -> None:
        self._job, self._kafka = job, kafka
        self._component = ", ".join(job.pipeline.segments) or job.pipeline.name
        self._idle: list[WorkerProcess] = []
        self._unanswered = 0

    def run(self, task: Task, number: int) -> Iterator[dict[str, Any]]:
        waiting = deque(Case(block, self._component, self._job.pipeline.worker_memory_mb) for block in task.blocks)
        at_work: dict[Connection, tuple[WorkerProcess, Case]] = {}
        self._ask_again()
        try:
            while waiting or at_work:
                if self._unanswered >= MOST_UNANSWERED:
                    yield from self._leave_untried(waiting)
                while waiting and len(at_work) < task.at_once:
                    self._begin(waiting.popleft(), number, at_work)
                for pipe in _heard(at_work):
                    child, case = at_work[pipe]
                    said = child.said()
                    if said == CLOSED:
                        self._idle.append(child)
                        del at_work[pipe]
                    elif said is not None:
                        case.is_done = True
                        answer = Answer(**json.loads(said))
                        self._note_silence(answer.silent)
                        yield from answer.done
                    else:
                        self._note_death(case, child)
                        _give_back(at_work, pipe, waiting)
                for pipe, (child, case) in list(at_work.items()):
                    if self._end_if_late(case, child):
                        _give_back(at_work, pipe, waiting)
        finally:
            for child, _ in at_work.values():
                child.end()

    def _ask_again(self) -> None:
        """Give a later task another chance if all clusters answer by now; meanwhile healthy hosts take other tasks."""
        if self._unanswered < MOST_UNANSWERED:
            return
        child = self._free_child()
        silent = child.ask()
        # If the child has died over the question, `_free_child` discards it.
        self._idle.append(child)
        if not silent:
            self._note_silence(silent)

    def _note_silence(self, clusters: list[str]) -> None:
        self._unanswered = self._unanswered + 1 if clusters else 0
        self._silent = ", ".join(clusters)

    def _leave_untried(self, waiting: deque[Case]) -> Iterator[dict[str, Any]]:
        """End the blocks that are left: they would only wait for the same cluster again."""
        reason = (
            f"not tried: {MOST_UNANSWERED} workers in a row have ended because no broker answers at {self._silent}; "
            "see that the brokers run and that workers can reach them, then run again"
        )
        while waiting:
            case = waiting.popleft()
            log.warning("partitions %s: %s", case.partitions, reason)
            for planned in case.block:
                yield replace(PartitionProgress.not_started(planned), reason=reason, ended="stopped").to_json()

    def close(self) -> None:
        """End the idle processes."""
        while self._idle:
            self._idle.pop().end()

    def _begin(self, case: Case, number: int, at_work: dict[Connection, tuple[WorkerProcess, Case]]) -> None:
        child = self._free_child()
        child.give(case.block, number, case.precautions)
        at_work[child.pipe] = child, case

    def _free_child(self) -> WorkerProcess:
        while self._idle and self._idle[-1].has_died:
            self._idle.pop().end()
        return self._idle.pop() if self._idle else WorkerProcess(self._job, self._kafka)

    def _end_if_late(self, case: Case, child: WorkerProcess) -> bool:
        # These are read before the signal, which may wake the worker up.
        at, step, hung = child.position.at, child.position.step, self._hung(child.position)
        overdue = time.time() - self._job.overdue_after(0)
        is_overdue = time.time() > max(child.begun_at + self._job.grace_seconds, self._job.overdue_after(1))
        if hung is None and not is_overdue:
            return False
        child.end_where_it_is()
        self._stop_if_given_up(case, child)
        if case.is_done:
            said = _left_unclosed(case, hung or f"max_run_time was reached {overdue:.0f} s ago")
        elif hung is None or is_overdue:
            said = case.give_up(at, child.position.stored_at, overdue)
        else:
            death = Death("timeout", f"was ended, as {hung}", child.trace)
            said = case.note_hang(death) if step else case.note_death(death, at, child.position.is_at_ease)
        log.warning("%s\n%s", said, child.trace)
        return True

    def _hung(self, position: WorkerPosition) -> str | None:
        """Describe the user code that has taken too long, if any has."""
        limit, step = self._job.pipeline.segment_timeout, position.step
        if limit is None:
            return None
        if step is not None and step.seconds > self._job.step_seconds(limit) + INTERRUPT_SECONDS:
            return f"{step.name} had not come to its end within {self._job.step_seconds(limit):g} s"
        is_late = position.longest_call > limit + INTERRUPT_SECONDS
        return f"a segment had not answered within {limit:g} s" if is_late else None

    def _stop_if_given_up(self, case: Case, child: WorkerProcess) -> None:
        if case.is_given_up:
            raise WorkerDiedError(
                f"the worker of partitions {case.partitions} {child.death.message} also while it only had to say "
                f"that it stops: {child.trace or 'see the log of the executor'}"
            )

    def _note_death(self, case: Case, child: WorkerProcess) -> None:
        self._stop_if_given_up(case, child)
        if case.is_done:
            said = _left_unclosed(case, f"its worker {child.death.message}")
        else:
            at = child.position.at or child.position.reading
            said = case.note_death(child.death, at, child.position.is_at_ease)
        log.warning("%s\n%s", said, child.trace)


def _heard(at_work: dict[Connection, tuple[WorkerProcess, Case]]) -> list[Connection]:
    """Return the pipes of the workers that have answered, or died."""
    heard = [each for each in wait(list(at_work), LOOK_SECONDS) if isinstance(each, Connection)]
    return heard or [pipe for pipe, (child, _) in at_work.items() if child.has_died]


def _give_back(at_work: dict[Connection, tuple[WorkerProcess, Case]], pipe: Connection, waiting: deque[Case]) -> None:
    """Queue a case again after its worker has ended, unless its result is known."""
    _, case = at_work.pop(pipe)
    if not case.is_done:
        waiting.appendleft(case)


def _left_unclosed(case: Case, reason: str) -> str:
    return f"partitions {case.partitions}: results are stored, but closing failed: {reason}"
