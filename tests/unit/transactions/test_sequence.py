from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_kpipe.exceptions import KafkaUnavailableError, KpipeError
from airflow_provider_kpipe.kafka.cluster import ANSWER_SECONDS
from airflow_provider_kpipe.transactions import sequence
from airflow_provider_kpipe.transactions.sequence import DRAW_TRIES, draw_number
from tests.kit.clock import Clock

SILENCE = KafkaError(KafkaError._TRANSPORT)
FENCED = KafkaError(KafkaError._FENCED, "somebody draws, too", True)
FORBIDDEN = KafkaError(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def draw(monkeypatch: pytest.MonkeyPatch, *answers: KafkaError | int, seconds: float) -> tuple[int | KpipeError, int]:
    """What is drawn, or raised, and how often it was tried, where each try takes so long."""
    clock, left = Clock(), list(answers)

    def once(*_asked: Any) -> int:
        clock.now += seconds
        answer = left.pop(0)
        if isinstance(answer, KafkaError):
            raise KafkaException(answer)
        return answer

    monkeypatch.setattr(sequence, "time", clock)
    monkeypatch.setattr(sequence, "_draw", once)
    drawn: int | KpipeError
    try:
        drawn = draw_number({}, "orders", "orders")
    except KpipeError as error:
        drawn = error
    return drawn, len(answers) - len(left)


def test_a_cluster_that_is_silent_is_not_asked_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    failure, tries = draw(monkeypatch, *[SILENCE] * DRAW_TRIES, seconds=ANSWER_SECONDS)
    assert isinstance(failure, KafkaUnavailableError)
    assert tries == 1


def test_a_fenced_draw_is_repeated_a_limited_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    assert draw(monkeypatch, FENCED, SILENCE, 7, seconds=1.0) == (7, 3)
    failure, tries = draw(monkeypatch, *[FENCED] * (DRAW_TRIES + 1), seconds=1.0)
    assert isinstance(failure, KpipeError)
    assert tries == DRAW_TRIES


def test_a_permanent_error_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    failure, tries = draw(monkeypatch, FORBIDDEN, 7, seconds=1.0)
    assert (type(failure), tries) == (KpipeError, 1)
