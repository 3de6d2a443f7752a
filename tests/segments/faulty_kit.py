"""Segments and a fault handler for tests of what happens to records that do not pass."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from airflow_provider_kpipe import StopPartitionError


def fails(record: Any) -> Any:
    raise ValueError("always")


def raises_its_key(record: Any) -> Any:
    raise ValueError(record.key.decode())


def odd_ones_fail(record: Any) -> Any:
    if json.loads(record.value)["id"] % 2:
        raise ValueError("odd")
    return record


def fails_from_hundred(record: Any) -> Any:
    if json.loads(record.value)["id"] >= 100:
        raise ValueError("since the last deploy")
    return record


class FailsTwice:
    """Passes at the third try of each record."""

    def open(self, context: Any) -> None:
        self.tries: dict[int, int] = {}

    def process(self, record: Any) -> Any:
        offset = record.metadata.offset
        self.tries[offset] = self.tries.get(offset, 0) + 1
        if self.tries[offset] < 3:
            raise TimeoutError(f"try {self.tries[offset]}")
        return record


class SpoilsItsFirstTry:
    """Changes all of a record before its first try fails, and nothing in the second."""

    def open(self, context: Any) -> None:
        self.tried: set[int] = set()

    def process(self, record: Any) -> Any:
        if record.metadata.offset not in self.tried:
            self.tried.add(record.metadata.offset)
            record.value, record.key, record.timestamp, record.partition = b"spoiled", b"spoiled", 1, 0
            record.headers.append(("spoiled", b"1"))
            raise TimeoutError("not yet")
        return record


class SpoilsItsFirstTryAwaited(SpoilsItsFirstTry):
    async def process(self, record: Any) -> Any:
        return super().process(record)


def every_tenth_too_large(record: Any) -> Any:
    if json.loads(record.value)["id"] % 10 == 5:
        record.value = b"x" * 2_000_000
    return record


def looks_at_headers(record: Any) -> Any:
    try:
        record.headers.append(("looked", b"1"))
    except Exception as error:
        raise ValueError("a segment may catch what it likes") from error
    return record


def fails_at_five(record: Any) -> Any:
    if json.loads(record.value)["id"] == 5:
        raise LookupError("five")
    return record


def stops_at_five(record: Any) -> Any:
    """As a segment does whose database is down."""
    if json.loads(record.value)["id"] == 5:
        raise StopPartitionError("down")
    return record


def skip_odd_stop_at_nine(fault: Any, record: Any) -> str:
    return "stop_partition" if json.loads(record.value)["id"] == 9 else "skip"


class Rules:
    """The same, found by a longer path."""

    skip_odd_stop_at_nine = staticmethod(skip_odd_stop_at_nine)


def cannot_choose(fault: Any, record: Any) -> str:
    raise RuntimeError("no idea")


class Counting:
    """Counts what it sees, and passes on the correlation id."""

    def open(self, context: Any) -> None:
        self.context = context

    def process(self, record: Any) -> Any:
        self.context.count("seen")
        self.context.count("ids", json.loads(record.value)["id"])
        record.headers.append(("correlation", record.metadata.correlation_id.encode()))
        return record


class CountsAsParked:
    """Has a word of its own for something, which a redrive uses for something else."""

    def open(self, context: Any) -> None:
        self.context = context

    def process(self, record: Any) -> Any:
        self.context.count("parked")
        return record


class CountsAndFailsAtFive:
    def open(self, context: Any) -> None:
        self.context = context

    def process(self, record: Any) -> Any:
        self.context.count("seen")
        return fails_at_five(record)


def nameless_headers_at_five(record: Any) -> Any:
    """Half of a pair is no name that a header can hold."""
    if json.loads(record.value)["id"] == 5:
        record.headers.append(("\ud800", b"1"))
    return record


def five_too_large_for_its_topic(record: Any) -> Any:
    """Goes to a topic of its own that takes less than the client does."""
    if json.loads(record.value)["id"] == 5:
        record.topic = f"{record.metadata.topic}.small"
        record.value = b"y" * 1_000
    return record


def five_and_six_choose_no_topic_that_is_there(record: Any) -> Any:
    """One is not there, and the other one is none, which is the pipeline's own."""
    if (number := json.loads(record.value)["id"]) in (5, 6):
        record.topic = f"{record.metadata.topic}.nowhere" if number == 5 else None
    return record


FLAKY: Counter[int] = Counter()


def flaky(record: Any) -> Any:
    """The first record's second output fits nowhere; the second record passes at its third try, and at its fifth."""
    at = json.loads(record.value)["id"]
    FLAKY[at] += 1
    if at == 1:
        return [record.copy(), record.copy(value=b"x" * 2_000_000)]
    if at == 2 and FLAKY[at] in (1, 2, 4):
        raise TimeoutError("flaky")
    return record


async def flaky_awaited(record: Any) -> Any:
    return flaky(record)
