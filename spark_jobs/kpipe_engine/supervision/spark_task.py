"""One Spark task: its blocks of partitions, one after another or several at once."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from confluent_kafka import KafkaException

from airflow_provider_kpipe.contract.job import Job, KafkaSettings, unpack
from kpipe_engine.assignment.events import without_events
from kpipe_engine.assignment.precautions import Precautions
from kpipe_engine.client_settings import QUEUE_KBYTES
from kpipe_engine.errors import PartitionHaltedError, reason_of
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.supervision.supervisor import Supervisor
from kpipe_engine.supervision.task_layout import Task
from kpipe_engine.wiring import build_worker

# Spark reuses its Python workers: the supervisor that a task leaves behind serves the next task of the same job.
_supervisors: dict[tuple[str, str, int], Supervisor] = {}


def run_task(packed: str, settings: str, task: Task, number: int) -> Iterator[dict[str, Any]]:
    """Run a task in one of Spark's Python workers, which must survive any record: see the supervisor."""
    _tell_the_log()
    return _supervisor(packed, settings, task.at_once).run(task, number)


def _supervisor(packed: str, settings: str, at_once: int) -> Supervisor:
    key = packed, settings, at_once
    if key not in _supervisors:
        for other in list(_supervisors):
            _supervisors.pop(other).close()
        kafka = _shared(KafkaSettings.from_json(unpack(settings)), at_once)
        _supervisors[key] = Supervisor(Job.from_json(unpack(packed)), kafka)
    return _supervisors[key]


def claim_what_is_cut(packed: str, settings: str) -> None:
    """Store our lease on each partition that is cut, before any of its pieces begins: all of them rely on it."""
    # The task that works on a piece emits its events.
    job, kafka = without_events(Job.from_json(unpack(packed))), KafkaSettings.from_json(unpack(settings))
    for planned in job.plan.pending:
        if planned.cuts:
            # Segments are not imported: an import that hangs or ends its process would hit the driver and the job.
            precautions = Precautions(stops={planned.partition: "it is only taken on"})
            worker = build_worker(job, kafka, planned.pieces[:1], StopSignal(), precautions=precautions)
            try:
                worker.open()
            except KafkaException as failure:
                raise PartitionHaltedError(
                    f"partition {planned.partition} is cut into pieces, and could not be taken on: {reason_of(failure)}"
                ) from failure
            finally:
                worker.close()


def _shared(kafka: KafkaSettings, at_once: int) -> KafkaSettings:
    """Divide the memory that one worker may take for its queues among the workers of a task."""
    if at_once == 1:
        return kafka
    share = str(QUEUE_KBYTES // at_once)
    return replace(
        kafka,
        source={"queued.max.messages.kbytes": share, **kafka.source},
        destination={"queue.buffering.max.kbytes": share, **kafka.destination},
    )


def _tell_the_log() -> None:
    """Configure the log: Spark does not do so in its Python workers, and all lines below a warning would be lost."""
    log = logging.getLogger("kpipe")
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
