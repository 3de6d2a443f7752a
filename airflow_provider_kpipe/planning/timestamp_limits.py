"""Limits of topics on the timestamps of their records: a broker deletes or rejects a record beyond them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_provider_kpipe.exceptions import KpipeError
from airflow_provider_kpipe.kafka.topic_limits import POLICY, topic_settings

log = logging.getLogger(__name__)

RETENTION = "retention.ms"
BEFORE = "message.timestamp.before.max.ms"
AFTER = "message.timestamp.after.max.ms"
TIMESTAMPS = "message.timestamp.type"
HOUR_MS = 3_600_000
LARGEST_TIMESTAMP = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TimestampLimit:
    """The longest time between now and the timestamp of a record of a topic."""

    topic: str
    setting: str
    milliseconds: int

    def __str__(self) -> str:
        return f"{self.setting}={self.milliseconds} ({self.milliseconds / HOUR_MS:,.1f} hours) of {self.topic!r}"

    @property
    def is_of_future(self) -> bool:
        return self.setting == AFTER

    def moment(self, now: int) -> int:
        """Return the border of the kept timestamps: the first one or, for a limit of the future, the last one."""
        return now + self.milliseconds if self.is_of_future else now - self.milliseconds

    @property
    def compared(self) -> str:
        return "further in the future than" if self.is_of_future else "older than"

    @property
    def fate(self) -> str:
        """The broker's action on records beyond the limit."""
        return "delete" if self.setting == RETENTION else "reject"

    @property
    def remedy(self) -> str:
        if self.setting == RETENTION:
            return "give the topic a longer retention"
        return f"raise {self.setting} of the topic"


def timestamp_limits(settings: Mapping[str, str], topics: Iterable[str], now: int) -> list[TimestampLimit]:
    """Return the limits that a timestamp may exceed; none if the topics' settings cannot be read."""
    asked = list(dict.fromkeys(topics))
    try:
        found = topic_settings(settings, asked) if asked else {}
    except KpipeError as failure:
        log.info("the retention of the topics cannot be read, and is taken for long: %s", failure)
        return []
    return [limit for topic in asked for limit in _limits_of(topic, found[topic], now)]


def _limits_of(topic: str, settings: Mapping[str, str], now: int) -> list[TimestampLimit]:
    if settings.get(TIMESTAMPS) == "LogAppendTime":
        # The broker replaces every timestamp with its own.
        return []
    names = [BEFORE, AFTER]
    if "delete" in settings.get(POLICY, "delete"):
        names.insert(0, RETENTION)
    limits = [TimestampLimit(topic, name, int(settings.get(name, -1))) for name in names]
    return [each for each in limits if each.milliseconds >= 0 and 0 <= each.moment(now) <= LARGEST_TIMESTAMP]
