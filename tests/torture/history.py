"""The history of a torture: one JSON line for each thing that was done, seen or told, in the order in which it was.

The checker reads it (`checker/events.py` has one class for each method here). It shares nothing with the product.
Records carry their id, a whole number, as decimal text in their key, from the source to outputs and dead letters.
Segments of the torture add the header `torture-run` to what they return, with the key of the run: whoever reads the
outputs can tell then which run has made them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

RUN_HEADER = "torture-run"

Kind = Literal["good", "poison", "filtered", "too_large"]
Fate = int | Literal["dead"]
"""How many outputs a record has, or that it is a dead letter; 0 is a record that is filtered."""
Transaction = Literal["none", "committed", "aborted", "unknown"]
RunKind = Literal["live", "backfill", "published", "redrive"]
Task = Literal["plan", "run", "checkpoint", "redrive", "drained"]
Outcome = Literal["success", "failed", "skipped", "killed"]


class History:
    """Appends to a file; any thread or process may, each with a writer of its own or a shared one."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def close(self) -> None:
        os.close(self._file)

    def _write(self, event: str, **fields: Any) -> None:
        # One clock for all processes of the machine, which nobody sets.
        line = json.dumps({"event": event, "at": round(time.monotonic(), 4), **fields}, separators=(",", ":"))
        # One call appends it whole.
        os.write(self._file, line.encode() + b"\n")

    # The torture itself.

    def begun(self, *, seed: int, minutes: float, commit: str, started: str) -> None:
        """First of all."""
        self._write("begun", seed=seed, minutes=minutes, commit=commit, started=started)

    def ended(self) -> None:
        """Last of all, after the last task and before the topics are read."""
        self._write("ended")

    # What is in the source.

    def produced(
        self,
        *,
        topic: str,
        partition: int,
        records: Sequence[tuple[int, int | None, Kind]],
        transaction: Transaction = "none",
    ) -> None:
        """Write id, offset and kind of each record sent; the offset is None where no acknowledgement came.

        `unknown` where a transaction was sent to be committed, and nobody knows if it was.
        """
        self._write("produced", topic=topic, partition=partition, records=records, transaction=transaction)

    def log_start_moved(self, *, topic: str, partition: int, offset: int, how: str) -> None:
        """Before `delete_records` is called, or as soon as retention is seen to have passed an offset."""
        self._write("log_start_moved", topic=topic, partition=partition, offset=offset, how=how)

    # Who works.

    def declared(
        self,
        *,
        pipeline: str,
        group: str,
        source: str,
        destination: str,
        dead_letter: str | None,
        delivery: Literal["exactly_once", "at_least_once"],
        ordered: bool,
        fates: Mapping[Kind, Fate],
        on_data_loss: Literal["stop_partition", "skip"] = "stop_partition",
        tells_run: bool = True,
        keeps_value: bool = True,
        keeps_headers: bool = True,
    ) -> None:
        """Before its first task.

        :param ordered: whether order within a partition is promised
        :param fates: what the segments make of each kind
        :param tells_run: whether outputs carry the header `torture-run`; a copy without segments cannot
        :param keeps_value: whether outputs have the value of their record
        :param keeps_headers: whether outputs have the headers of their record, in front of others
        """
        self._write(
            "declared",
            pipeline=pipeline,
            group=group,
            source=source,
            destination=destination,
            dead_letter=dead_letter,
            delivery=delivery,
            ordered=ordered,
            fates=dict(fates),
            on_data_loss=on_data_loss,
            tells_run=tells_run,
            keeps_value=keeps_value,
            keeps_headers=keeps_headers,
        )

    def planned(
        self,
        *,
        pipeline: str,
        run: str,
        kind: RunKind,
        number: int,
        group: str,
        topic: str,
        ranges: Mapping[int, tuple[int, int]],
        fates: Mapping[Kind, Fate] | None = None,
    ) -> None:
        """As soon as the plan is known. No group is reset while one of its plans is made.

        :param group: the one that the checkpoint commits to
        :param topic: the source, or for a redrive the dead-letter topic
        :param ranges: by partition, also the empty ones
        :param fates: where the segments are others than declared, as the fixed ones of a redrive
        """
        self._write(
            "planned",
            pipeline=pipeline,
            run=run,
            kind=kind,
            number=number,
            group=group,
            topic=topic,
            ranges=dict(ranges),
            fates=dict(fates) if fates is not None else None,
        )

    def task_begun(self, *, pipeline: str, run: str, task: Task, attempt: int) -> None:
        """Each try of a task, before it does anything."""
        self._write("task_begun", pipeline=pipeline, run=run, task=task, attempt=attempt)

    def task_ended(
        self, *, pipeline: str, run: str, task: Task, attempt: int, outcome: Outcome, error: str | None = None
    ) -> None:
        """Each try of a task, as soon as its process is gone; `killed` where it could not tell."""
        self._write("task_ended", pipeline=pipeline, run=run, task=task, attempt=attempt, outcome=outcome, error=error)

    def checkpoint_told(self, *, pipeline: str, run: str, green: bool, partitions: Sequence[Mapping[str, Any]]) -> None:
        """The record in XCom, which is there also when the task fails.

        :param green: whether the task succeeded
        :param partitions: partition, start, end, committed, complete, and counts: read, written, dead_lettered,
            filtered, skipped, retried, lost
        """
        self._write("checkpoint_told", pipeline=pipeline, run=run, green=green, partitions=list(partitions))

    def redrive_told(
        self,
        *,
        pipeline: str,
        run: str,
        complete: bool,
        outcomes: Mapping[str, int],
        written: int,
        dead_lettered: int,
    ) -> None:
        """The XCom of a redrive."""
        self._write(
            "redrive_told",
            pipeline=pipeline,
            run=run,
            complete=complete,
            outcomes=dict(outcomes),
            written=written,
            dead_lettered=dead_lettered,
        )

    # What others do and see.

    def group_seen(
        self,
        *,
        group: str,
        topic: str,
        looked: float,
        committed: Mapping[int, int],
        stored: Mapping[int, int] | None = None,
    ) -> None:
        """A sample of an observer, who asks for the committed offsets first, and then for the stored ones.

        :param looked: `time.monotonic()` before the first question
        :param committed: by partition, only those that the group holds
        :param stored: by partition, the highest of the groups `<group>.kpipe` and `<group>.kpipe.<slot>`
        """
        self._write(
            "group_seen",
            group=group,
            topic=topic,
            looked=round(looked, 4),
            committed=dict(committed),
            stored=dict(stored) if stored is not None else None,
        )

    def group_reset(self, *, group: str, topic: str, offsets: Mapping[int, int | None], began: float, how: str) -> None:
        """As soon as somebody has moved a group by hand, or deleted it (None); no plan of it is made meanwhile.

        :param began: `time.monotonic()` before it was asked for
        """
        self._write("group_reset", group=group, topic=topic, offsets=dict(offsets), began=round(began, 4), how=how)

    def stable_seen(self, *, topic: str, looked: float, stable: Mapping[int, int], ends: Mapping[int, int]) -> None:
        """A sample of an observer: the last stable offsets, and then the high watermarks; 4 in a second or more.

        :param looked: `time.monotonic()` before the first question
        """
        self._write("stable_seen", topic=topic, looked=round(looked, 4), stable=dict(stable), ends=dict(ends))

    def fault_begun(self, *, fault: int, kind: str, target: str, outage: bool, detail: str = "") -> None:
        """Before it is done.

        :param fault: its number
        :param outage: whether brokers or the way to them are concerned: readers may be held up longer then
        """
        self._write("fault_begun", fault=fault, kind=kind, target=target, outage=outage, detail=detail)

    def fault_ended(self, *, fault: int, effect: str | None) -> None:
        """When all is as before, as when a broker is back in sync.

        :param effect: what it is seen to have done, such as `pid 17 died` or `3 replies lost`; None if nothing
        """
        self._write("fault_ended", fault=fault, effect=effect)

    def drained(self, *, pipeline: str, partitions: Mapping[int, int]) -> None:
        """When the torture thinks that all is read: where the pipeline's group stands."""
        self._write("drained", pipeline=pipeline, partitions=dict(partitions))
