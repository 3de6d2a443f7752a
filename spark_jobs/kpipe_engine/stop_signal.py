"""The signal to give partitions up before their end: at the deadline of the run, or on request."""

from __future__ import annotations

import logging
import math
import threading
import time
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaException, TopicPartition

from airflow_provider_kpipe.contract.connecting import connecting
from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.kafka_names import stop_group_of
from airflow_provider_kpipe.contract.progress.stop_request import StopRequest, stop_partition_of
from kpipe_engine.client_settings import Settings, let_go, log_error
from kpipe_engine.memory_limit import room_for_a_client

log = logging.getLogger("kpipe")

# Most tasks are over before a user could want to stop them: they never ask.
FIRST_LOOK_SECONDS = 1.0
LOOK_SECONDS = 0.5
ANSWER_SECONDS = 5.0


class StopSignal:
    """Signal that partitions should yield now, with the reason."""

    def __init__(self, deadline: float | None = None) -> None:
        self._deadline = deadline
        self._asked: str | None = None
        self._stop = threading.Event()
        self.is_set = False
        """Is true from the first request on. It is read for each record, and so it is a plain attribute."""

    @property
    def reason(self) -> str | None:
        if self._asked is None and self.seconds_left <= 0:
            self.request("the run has reached its max_run_time")
        return self._asked

    def request(self, reason: str) -> None:
        self._asked = reason
        self.is_set = True
        self._stop.set()

    @property
    def seconds_left(self) -> float:
        return math.inf if self._deadline is None else self._deadline - time.time()

    def wait(self, seconds: float) -> None:
        """Sleep, or return as soon as there is a reason to yield."""
        self._stop.wait(max(0.0, min(seconds, self.seconds_left)))


class KafkaStopSignal(StopSignal):
    """A signal that a stop request in Kafka sets: within the `with` block, a thread looks for a request."""

    def __init__(self, job: Job, settings: Settings) -> None:
        super().__init__(job.deadline)
        self._job, self._settings = job, settings
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="kpipe-stop-requests", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _listen(self) -> None:
        if self._done.wait(FIRST_LOOK_SECONDS):
            return
        settings = connecting({**self._settings, "error_cb": log_error})
        with room_for_a_client():
            consumer = Consumer({**settings, "group.id": stop_group_of(self._job.plan.working_group)})
        asked = [TopicPartition(self._job.plan.topic, stop_partition_of(self._job.plan))]
        try:
            while not self._done.is_set() and self._asked is None:
                self._look(consumer, asked)
                self._done.wait(LOOK_SECONDS)
        finally:
            let_go(consumer)

    def _look(self, consumer: Consumer, asked: list[TopicPartition]) -> None:
        try:
            (found,) = consumer.committed(asked, timeout=ANSWER_SECONDS)
        except KafkaException as failure:
            log.debug("requests to stop cannot be read now: %s", failure)
            return
        try:
            request = StopRequest.read_text(found.metadata)
        except DocumentError as error:
            # A request to an earlier attempt stays in Kafka, and would stop all later attempts.
            if found.offset == self._job.attempt:
                self.request(f"a stop request cannot be read: {error}")
            return
        if request is not None and request.attempt == self._job.attempt:
            self.request(request.reason)
