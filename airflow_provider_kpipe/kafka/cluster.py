"""A Kafka cluster as Airflow's side asks it: every question has a time bound, and every error names its cause."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from types import TracebackType
from typing import Any, Self, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe.contract.connecting import CONNECTING
from airflow_provider_kpipe.exceptions import ConnectionSettingsError, KpipeError
from airflow_provider_kpipe.kafka.ailments import Ailments
from airflow_provider_kpipe.kafka.bounds import let_go, result_within
from airflow_provider_kpipe.kafka.broker_errors import failure_of, passes

log = logging.getLogger(__name__)
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

ANSWER_SECONDS = 30.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 1.0
LOOK_SECONDS = 0.1


class Cluster:
    """Owner of clients, and of their reports on their connections. A context manager: it closes them at the end.

    A question gets its answer, or an error, within `answer_seconds`. Until then it is repeated after an error that
    passes by itself, such as the move of a leader.
    """

    def __init__(self, settings: Mapping[str, str], *, answer_seconds: float = ANSWER_SECONDS) -> None:
        self.answer_seconds = answer_seconds
        self._ailments = Ailments()
        self._settings: dict[str, Any] = {
            **CONNECTING,
            **settings,
            "logger": self._ailments,
            "error_cb": self._ailments.note,
        }
        self._admin: AdminClient | None = self._made(AdminClient, self._settings)
        self._consumers: dict[str, Consumer] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all clients; the next question opens them again."""
        let_go(*self._consumers.values())
        self._consumers.clear()
        # An admin client has no close(): it ends when no reference to it is left.
        self._admin = None

    @property
    def address(self) -> str:
        return self._settings.get("bootstrap.servers") or self._settings.get("metadata.broker.list") or "?"

    def ask_admin(
        self,
        question: Callable[[AdminClient, float], Mapping[K, Future[T]]],
        about: str,
        answer_seconds: float | None = None,
    ) -> dict[K, T]:
        """Ask with an admin client and the seconds that are left; return all the answers, or raise the first error."""
        longest = self.answer_seconds if answer_seconds is None else answer_seconds
        return self._ask(lambda seconds: self._answer(question, seconds), self._forget_admin, about, longest)

    def ask_as(self, group: str, question: Callable[[Consumer, float], T], about: str) -> T:
        """Ask with a consumer that has a group's name but never joins the group, and the seconds that are left."""
        return self._ask(
            lambda seconds: question(self._consumer(group), seconds),
            lambda: self.forget(group),
            about,
            self.answer_seconds,
        )

    def forget(self, group: str) -> None:
        """Close the consumer of a group."""
        consumer = self._consumers.pop(group, None)
        if consumer is not None:
            let_go(consumer)

    def open_consumer(self, settings: Mapping[str, Any]) -> Consumer:
        """Make a consumer that the caller has to close."""
        return self._made(Consumer, {**self._settings, **settings})

    def note_answer(self) -> None:
        """Remember that a consumer of the caller's got an answer: the address is right."""
        self._ailments.answered()

    def failure(self, error: KafkaError, about: str) -> KpipeError:
        """Return the exception to raise, by what the clients have reported of their connections."""
        return failure_of(error, self._ailments, about, self.address)

    def _ask(self, question: Callable[[float], T], forget: Callable[[], None], about: str, answer_seconds: float) -> T:
        until, pause = time.monotonic() + answer_seconds, FIRST_PAUSE_SECONDS
        self._ailments.forget()
        while True:
            try:
                answer = question(until - time.monotonic())
                self._ailments.answered()
                return answer
            except KafkaException as failure:
                error: KafkaError = failure.args[0]
                # The traceback's frames would keep the clients open, in a cycle with the futures that hold the error.
                failure.with_traceback(None)
            # A client that knows an earlier leader sticks to it, whatever brokers answer, and reports a cause once.
            forget()
            if not passes(error) or self._ailments.are_final or time.monotonic() + pause >= until:
                raise self.failure(error, about) from KafkaException(error)
            log.debug("asking again %s: %s", about, error.str())
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _answer(self, question: Callable[[AdminClient, float], Mapping[K, Future[T]]], seconds: float) -> dict[K, T]:
        """Wait for the answers until a cause is final: the client itself keeps asking a broker that rejects it."""
        if self._admin is None:
            self._admin = self._made(AdminClient, self._settings)
        admin, until = self._admin, time.monotonic() + seconds
        futures = question(admin, seconds)
        while time.monotonic() < until and not self._ailments.are_final:
            done, waiting = wait(futures.values(), LOOK_SECONDS, FIRST_EXCEPTION)
            if not waiting or any(each.exception() for each in done):
                break
            admin.poll(0)
        admin.poll(0)
        return {asked: result_within(0, future) for asked, future in _failed_first(futures)}

    def _consumer(self, group: str) -> Consumer:
        if group not in self._consumers:
            self._consumers[group] = self.open_consumer({"group.id": group, "enable.auto.commit": False})
        return self._consumers[group]

    def _forget_admin(self) -> None:
        self._admin = None

    def _made(self, kind: Callable[[dict[str, Any]], T], settings: Mapping[str, Any]) -> T:
        try:
            return kind(dict(settings))
        except KafkaException as refusal:
            raise ConnectionSettingsError(
                f"librdkafka rejects the settings of the Kafka connection: {refusal.args[0].str()}: fix its extra"
            ) from refusal


def _failed_first(futures: Mapping[K, Future[T]]) -> list[tuple[K, Future[T]]]:
    """Sort failed futures first: an error is worth more than the absence of another answer."""
    return sorted(futures.items(), key=lambda each: not (each[1].done() and each[1].exception() is not None))
