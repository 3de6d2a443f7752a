from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pytest

from airflow_provider_kpipe.exceptions import ForbiddenError
from airflow_provider_kpipe.planning import timestamp_limits as module
from airflow_provider_kpipe.planning.timestamp_limits import (
    AFTER,
    BEFORE,
    HOUR_MS,
    LARGEST_TIMESTAMP,
    RETENTION,
    TIMESTAMPS,
    TimestampLimit,
    timestamp_limits,
)

NOW = 1_000 * HOUR_MS
Find = Callable[..., list[str]]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Find:
    """Names the settings that limit the timestamps of a topic with these settings."""

    def find(**settings: object) -> list[str]:
        declared = {name.replace("_", "."): str(value) for name, value in settings.items()}
        monkeypatch.setattr(module, "topic_settings", lambda _, topics: {"orders": declared})
        return [each.setting for each in timestamp_limits({}, ["orders"], NOW)]

    return find


def test_a_topic_limits_age_and_future(found: Find) -> None:
    limits = {"message_timestamp_before_max_ms": HOUR_MS, "message_timestamp_after_max_ms": HOUR_MS}
    assert found(retention_ms=HOUR_MS, **limits) == [RETENTION, BEFORE, AFTER]


def test_no_setting_is_no_limit(found: Find) -> None:
    assert found() == []
    assert found(retention_ms=-1) == []


def test_a_topic_that_only_compacts_deletes_nothing_for_its_age(found: Find) -> None:
    assert found(retention_ms=HOUR_MS, cleanup_policy="compact") == []
    assert found(retention_ms=HOUR_MS, cleanup_policy="compact,delete") == [RETENTION]


def test_a_topic_whose_broker_sets_the_timestamps_limits_none(found: Find) -> None:
    assert found(retention_ms=HOUR_MS, **{TIMESTAMPS.replace(".", "_"): "LogAppendTime"}) == []


def test_a_limit_that_no_timestamp_exceeds_is_none(found: Find) -> None:
    assert found(retention_ms=NOW) == [RETENTION]
    assert found(retention_ms=NOW + 1) == []
    assert found(message_timestamp_after_max_ms=LARGEST_TIMESTAMP - NOW) == [AFTER]
    assert found(message_timestamp_after_max_ms=LARGEST_TIMESTAMP - NOW + 1) == []


def test_each_topic_is_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def topic_settings(_: Mapping[str, str], topics: Iterable[str]) -> dict[str, dict[str, str]]:
        asked.append(list(topics))
        return {topic: {RETENTION: str(HOUR_MS)} for topic in topics}

    monkeypatch.setattr(module, "topic_settings", topic_settings)
    found = timestamp_limits({}, ["orders", "parked", "orders"], NOW)
    assert ([each.topic for each in found], asked) == (["orders", "parked"], [["orders", "parked"]])
    assert timestamp_limits({}, [], NOW) == []
    assert len(asked) == 1


def test_settings_that_may_not_be_read_limit_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(settings: object, topics: object) -> None:
        raise ForbiddenError("may not be described")

    monkeypatch.setattr(module, "topic_settings", forbidden)
    assert timestamp_limits({}, ["orders"], NOW) == []


def test_a_limit_says_whom_it_hits_and_what_helps() -> None:
    old, future = TimestampLimit("orders", RETENTION, 36 * HOUR_MS), TimestampLimit("orders", AFTER, HOUR_MS)
    assert str(old) == "retention.ms=129600000 (36.0 hours) of 'orders'"
    assert (old.moment(NOW), future.moment(NOW)) == (NOW - 36 * HOUR_MS, NOW + HOUR_MS)
    assert (old.compared, old.fate, old.remedy) == ("older than", "delete", "give the topic a longer retention")
    assert (future.compared, future.fate) == ("further in the future than", "reject")
    assert future.remedy == "raise message.timestamp.after.max.ms of the topic"
