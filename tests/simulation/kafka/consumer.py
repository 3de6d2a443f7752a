"""The client's Consumer: assigned by hand, never a member of its group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from tests.simulation.kafka.client import Client
from tests.simulation.kafka.cluster import refusal
from tests.simulation.kafka.groups import NONE, NOTHING, Held
from tests.simulation.kafka.log import Log

# A fetch brings what it brings.
SMALL_FETCH, FEW = 0.3, 8
EARLIEST, LATEST = -2, -1


def held_of(asked: TopicPartition) -> Held:
    return Held(asked.offset, asked.metadata, -1 if asked.leader_epoch is None else asked.leader_epoch)


class Reading:
    """Where a consumer is in one partition."""

    __slots__ = ("at", "epoch", "log", "partition", "paused", "position", "told_end", "topic", "validated")

    def __init__(self, asked: TopicPartition) -> None:
        self.topic, self.partition = asked.topic, asked.partition
        self.at: int | None = asked.offset
        self.epoch = -1 if asked.leader_epoch is None else asked.leader_epoch
        """That of the last record before `at`."""
        self.position = NONE
        self.told_end: int | None = None
        self.paused = False
        self.log: Log | None = None
        self.validated: int | None = None
        """The leader's epoch when it was last asked for the end of ours."""


class Consumer(Client):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self._group = settings["group.id"]
        self._committed_only = settings.get("isolation.level", "read_committed") == "read_committed"
        self._tells_ends = settings.get("enable.partition.eof", False) in (True, "true")
        self._reset = settings.get("auto.offset.reset", "latest")
        self._readings: list[Reading] = []

    # Offsets of the group

    def consumer_group_metadata(self) -> bytes:
        self.simulation.check()
        return str(self._group).encode()

    def committed(self, asked: Sequence[TopicPartition], timeout: float = -1) -> list[TopicPartition]:
        places = [(each.topic, each.partition) for each in asked]
        return self.ask(lambda: self._held(places, timeout), timeout, "committed", self._group)

    def _held(self, places: Sequence[tuple[str, int]], timeout: float) -> list[TopicPartition]:
        group = self.cluster.group(self._group)
        # RequireStable: the broker answers UNSTABLE_OFFSET_COMMIT while one is pending, and the client asks again.
        waits = self._committed_only and group.are_pending(places)
        if waits and not self.simulation.wait(lambda: not group.are_pending(places), timeout):
            raise refusal(KafkaError._TIMED_OUT)
        held = [(place, group.offsets.get(place, NOTHING)) for place in places]
        return [
            TopicPartition(*place, each.offset, each.metadata or "", leader_epoch=each.leader_epoch)
            if each.offset >= 0
            else TopicPartition(*place, each.offset)
            for place, each in held
        ]

    def commit(
        self, message: None = None, offsets: Sequence[TopicPartition] = (), asynchronous: bool = True
    ) -> list[TopicPartition]:
        def apply() -> list[TopicPartition]:
            group = self.cluster.group(self._group)
            if group.members:
                raise refusal(KafkaError.UNKNOWN_MEMBER_ID)
            most = int(self.cluster.broker_settings["offset.metadata.max.bytes"])
            answers = []
            for each in offsets:
                answer = TopicPartition(each.topic, each.partition, each.offset, each.metadata or "")
                if self.cluster.find_log(each.topic, each.partition) is None:
                    raise refusal(KafkaError.UNKNOWN_TOPIC_OR_PART)
                if len((each.metadata or "").encode()) > most:
                    raise refusal(KafkaError.OFFSET_METADATA_TOO_LARGE)
                group.put((each.topic, each.partition), held_of(each))
                answers.append(answer)
            return answers

        def late() -> None:
            self.simulation.note("late", "commit", self._group)
            with suppress(KafkaException):
                apply()

        places = [(each.partition, each.offset) for each in offsets]
        return self.ask(apply, 60.0, "commit", self._group, *places, late=late)

    # Reading

    def assign(self, asked: Sequence[TopicPartition]) -> None:
        self.simulation.check()
        self._readings = [Reading(each) for each in asked]

    def assignment(self) -> list[TopicPartition]:
        self.simulation.check()
        return [TopicPartition(each.topic, each.partition) for each in self._readings]

    def pause(self, asked: Iterable[TopicPartition]) -> None:
        self._pause(asked, True)

    def resume(self, asked: Iterable[TopicPartition]) -> None:
        self._pause(asked, False)

    def _pause(self, asked: Iterable[TopicPartition], paused: bool) -> None:
        places = {(each.topic, each.partition) for each in asked}
        for reading in self._readings:
            if (reading.topic, reading.partition) in places:
                reading.paused = paused

    def position(self, asked: Sequence[TopicPartition]) -> list[TopicPartition]:
        self.simulation.check()
        found = {(each.topic, each.partition): each.position for each in self._readings}
        return [
            TopicPartition(each.topic, each.partition, found.get((each.topic, each.partition), NONE)) for each in asked
        ]

    def get_watermark_offsets(
        self, asked: TopicPartition, timeout: float = -1, cached: bool = False
    ) -> tuple[int, int]:
        def apply() -> tuple[int, int]:
            log = self.cluster.log(asked.topic, asked.partition)
            return log.start, log.stable_end if self._committed_only else log.end

        return self.ask(apply, timeout, "watermarks", asked.topic, asked.partition)

    def poll(self, timeout: float = -1) -> Message | None:
        found = self.consume(1, timeout)
        return found[0] if found else None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        if self.simulation.enter("consume", self._group) is not None:
            self.simulation.sleep(max(timeout, 0.0))
            return []
        found = self._fetched(num_messages)
        if not found and timeout > 0 and self.simulation.wait(self._has_more, timeout):
            found = self._fetched(num_messages)
        return found

    def close(self) -> None:
        self.simulation.check()
        self._readings = []

    def _has_more(self) -> bool:
        for each in self._readings:
            if each.at is None or each.paused:
                continue
            log = self.cluster.find_log(each.topic, each.partition)
            if log is not None and (
                not log.start <= each.at <= log.end
                or log.end_for(self._committed_only) > each.at
                or log.epoch != each.validated
            ):
                return True
        return False

    def _fetched(self, most: int) -> list[Message]:
        chance = self.simulation.chance
        if chance.random() < SMALL_FETCH:
            most = 1 + int(chance.random() * min(most, FEW))
        found: list[Message] = []
        for reading in self._readings:
            if reading.at is not None and not reading.paused and len(found) < most:
                self._read(reading, most, found)
        return found

    def _read(self, reading: Reading, most: int, found: list[Message]) -> None:
        log = self.cluster.find_log(reading.topic, reading.partition)
        if log is None:
            return
        if reading.at in (EARLIEST, LATEST):
            reading.at = log.start if reading.at == EARLIEST else log.end_for(self._committed_only)
        assert reading.at is not None
        if reading.log is not log or reading.validated != log.epoch:
            if self._is_truncated(reading, log):
                text = f"Partition log truncation detected at offset {reading.at} (leader epoch {reading.epoch})"
                found.append(self._end_with(reading, text))
                return
            reading.log, reading.validated = log, log.epoch
        if not log.start <= reading.at <= log.end:
            if self._reset == "error":
                found.append(self._end_with(reading, "Broker: Offset out of range"))
                return
            reading.at = log.start if self._reset in ("earliest", "smallest", "beginning") else log.end
        self._take(reading, log, most, found)

    def _take(self, reading: Reading, log: Log, most: int, found: list[Message]) -> None:
        at, until, committed = reading.at or 0, log.end_for(self._committed_only), self._committed_only
        entries = log.entries
        while at < until and len(found) < most:
            entry = entries[at]
            at += 1
            reading.epoch = entry.epoch
            if entry.row is None:
                reading.position = at
            elif entry.is_seen(committed):
                found.append(log.message_at(at - 1))
                reading.position = at
        reading.at = at
        if self._tells_ends and at >= until and len(found) < most and reading.told_end != until:
            reading.told_end = until
            found.append(
                Message(
                    topic=log.topic,
                    partition=log.partition,
                    offset=max(at, until),
                    error=KafkaError(KafkaError._PARTITION_EOF),
                )
            )

    @staticmethod
    def _is_truncated(reading: Reading, log: Log) -> bool:
        """Whether the leader knows no record of our epoch up to where we are."""
        return reading.epoch >= 0 and log.epoch > reading.epoch and log.end_of_epoch(reading.epoch) < (reading.at or 0)

    @staticmethod
    def _end_with(reading: Reading, text: str) -> Message:
        """The client is told not to look for another offset by itself: it reads no further."""
        at, reading.at = reading.at, None
        error = KafkaError(KafkaError._AUTO_OFFSET_RESET, text)
        return Message(topic=reading.topic, partition=reading.partition, offset=at, error=error)
