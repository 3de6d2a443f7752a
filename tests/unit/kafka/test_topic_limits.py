from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pytest

from airflow_provider_kpipe.contract.job import BATCH_BYTES
from airflow_provider_kpipe.exceptions import ForbiddenError
from airflow_provider_kpipe.kafka import topic_limits as module
from airflow_provider_kpipe.kafka.topic_limits import LIMIT, OVERHEAD_BYTES, fit_to_topics

Declare = Callable[..., None]
MEGABYTE = 1_048_576


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Declare:
    """Gives each topic its largest message: `declare(orders=1_000)`."""

    def limits(**topics: int) -> None:
        def topic_settings(_: Mapping[str, str], asked: Iterable[str]) -> dict[str, dict[str, str]]:
            return {topic: {LIMIT: str(topics[topic])} for topic in asked}

        monkeypatch.setattr(module, "topic_settings", topic_settings)

    return limits


def test_a_record_may_be_as_large_as_any_topic_takes_and_a_batch_as_all_of_them_take(declare: Declare) -> None:
    declare(orders=100_000, returns=4 * MEGABYTE)
    assert fit_to_topics({"acks": "all"}, ["orders", "returns"]) == {
        "acks": "all",
        "batch.size": str(100_000 - OVERHEAD_BYTES),
        "message.max.bytes": str(4 * MEGABYTE - OVERHEAD_BYTES),
    }


def test_a_topic_that_takes_much_does_not_make_batches_larger(declare: Declare) -> None:
    declare(orders=MEGABYTE)
    assert fit_to_topics({}, ["orders"])["batch.size"] == str(BATCH_BYTES)


def test_librdkafka_takes_no_smaller_limit(declare: Declare) -> None:
    declare(orders=10)
    assert fit_to_topics({}, ["orders"]) == {"batch.size": "1000", "message.max.bytes": "1000"}


def test_a_setting_of_the_connection_wins(declare: Declare) -> None:
    declare(orders=100_000)
    assert fit_to_topics({"batch.size": "5", "message.max.bytes": "7"}, ["orders"]) == {
        "batch.size": "5",
        "message.max.bytes": "7",
    }


def test_nothing_is_fitted_to_topics_of_which_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "topic_settings", lambda settings, topics: {"orders": {}})
    assert fit_to_topics({"acks": "all"}, ["orders"]) == {"acks": "all"}

    def forbidden(settings: object, topics: object) -> None:
        raise ForbiddenError("may not be described")

    monkeypatch.setattr(module, "topic_settings", forbidden)
    assert fit_to_topics({"acks": "all"}, ["orders"]) == {"acks": "all"}
