"""Emits the events of partitions as they happen: in the log, and on a topic if the pipeline has one for them."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, Literal, TypeAlias

from confluent_kafka import KafkaException, Producer

from airflow_provider_kpipe.contract.connecting import connecting
from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.kafka_names import lease_id_of
from airflow_provider_kpipe.contract.progress.progress import Ending
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.client_settings import Settings, let_go, log_error

Event: TypeAlias = Literal[
    "assigned",
    "started",
    "chunk_stored",
    "paused",
    "resumed",
    "draining",
    "drained",
    "yielded",
    "revoked",
    "faulted",
    "completed",
]

_LAST: Mapping[Ending | None, Event] = {
    None: "completed",
    "stopped": "faulted",
    "yielded": "yielded",
    "revoked": "revoked",
}

log = logging.getLogger("kpipe.events")

FLUSH_SECONDS = 10.0


class PartitionEvents:
    """Emits no events."""

    def emit(self, event: Event, state: RangeState, **details: Any) -> None:
        """Emit an event of the partition of a range."""

    def emit_stored(self, state: RangeState, drains: bool) -> None:
        """Emit that a chunk is stored, and how the partition has ended if that is stored with it."""
        self.emit("chunk_stored", state)
        if drains and state.ended == "yielded":
            self.emit("drained", state)
        if state.ended is not None or not state.is_working:
            self.emit(_LAST[state.ended], state, reason=state.reason)

    def close(self) -> None:
        """Emit nothing more."""


class LoggedEvents(PartitionEvents):
    """Emits events in the log, one JSON object a line."""

    def __init__(self, job: Job) -> None:
        self._common = {"pipeline": job.plan.pipeline, "run_key": job.plan.run_key, "topic": job.plan.topic}

    def emit(self, event: Event, state: RangeState, **details: Any) -> None:
        log.info("%s", json.dumps(self.document(event, state, details)))

    def document(self, event: Event, state: RangeState, details: dict[str, Any]) -> dict[str, Any]:
        counts = dataclasses.asdict(state.counts)
        return {
            "event": event,
            "at": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            **self._common,
            "partition": state.partition,
            "lease_id": lease_id_of(self._common["topic"], state.partition),
            "start": state.range.start,
            "end": state.range.end,
            # Each piece of a cut partition emits its own events.
            "piece": state.range.slot,
            "pieces": state.pieces,
            "next_offset": state.stored,
            "highest_completed_offset": state.stored - 1,
            "counts": counts,
            **details,
        }


class PublishedEvents(LoggedEvents):
    """Emits the same as records, keyed by partition. They are outside of the chunks: a failed chunk's are sent, too."""

    def __init__(self, job: Job, settings: Settings, topic: str) -> None:
        super().__init__(job)
        own = {"linger.ms": 50, **settings, "acks": "all", "error_cb": log_error}
        self._producer = Producer(connecting(own))
        self._topic = topic

    def emit(self, event: Event, state: RangeState, **details: Any) -> None:
        document = json.dumps(self.document(event, state, details))
        log.info("%s", document)
        key = f"{self._common['topic']}:{state.partition}"
        try:
            self._producer.produce(self._topic, document.encode(), key.encode())
        except (BufferError, KafkaException) as error:
            # The log has the event. The worker's records do not wait for events.
            log.warning("an event was not written to %r: %s", self._topic, error)

    def close(self) -> None:
        if left := self._producer.flush(FLUSH_SECONDS):
            log.warning("%d events were not written to %r within %.0f s", left, self._topic, FLUSH_SECONDS)
            self._producer.purge(blocking=False)
        let_go(self._producer)


def without_events(job: Job) -> Job:
    """Return the same job, whose workers emit no events: another worker does."""
    if not job.pipeline.partitions.emit_partition_execution_events:
        return job
    scaling = dataclasses.replace(job.pipeline.partitions, emit_partition_execution_events=False, events_topic=None)
    return dataclasses.replace(job, pipeline=dataclasses.replace(job.pipeline, partitions=scaling))
