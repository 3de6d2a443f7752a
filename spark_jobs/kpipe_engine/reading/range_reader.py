"""Reader of one range of one partition, which detects the end of the range by position."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from operator import length_hint
from typing import cast

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from airflow_provider_kpipe.contract.dead_letters.consumed_headers import headers_of
from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.offsets.ranges import NO_EPOCH, PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaSource
from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.errors import NoAnswerError, PartitionHaltedError, stop_if_forbidden
from kpipe_engine.reading.messages import BareMessage
from kpipe_engine.reading.shared_consumer import SharedConsumer

READ_SECONDS = 0.1
STALL_SECONDS = 120.0


class RangeReader:
    """Reader of range after range. `next_offset` is the offset after the last record returned, holes passed over."""

    def __init__(self, shared_consumer: SharedConsumer, declared: KafkaSource, topic: str) -> None:
        self._shared_consumer, self._topic = shared_consumer, topic
        self._skip_lost = declared.on_data_loss == "skip"
        self.range: PartitionRange | None = None
        self._skips: list[tuple[int, int]] = []
        self._given_back: list[SourceMessage] = []
        self._lost = 0
        self._stop: PartitionHaltedError | None = None
        self.is_alone = False
        """Tells whether the reader fetches only the records that are read next."""
        self.unreadable: dict[int, Fault] = {}
        """Faults of the records that were read last, by offset."""

    @property
    def finished(self) -> bool:
        return self.next_offset >= self._end

    def start_at(self, planned: PartitionRange, next_offset: int, skips: Iterable[Sequence[int]] = ()) -> None:
        """Start to read a range at an offset, and leave out the spans that are done already."""
        first, self.range = self.range is None, planned
        self._partition, self._end = planned.partition, planned.end
        self._skips = sorted((first, after) for first, after in skips if after > next_offset and first < planned.end)
        self._lost = 0
        self._go_to(self._after_skips(next_offset))
        if first:
            # Also, only a client that is new to a leader finds out that the leader has lost records since the plan.
            self._shared_consumer.learn_leaders(self._topic)

    def _go_to(self, next_offset: int) -> None:
        self._given_back, self._stop = [], None
        self.next_offset = self._beyond = next_offset
        self._heard_at = time.monotonic()
        epoch = self.range.leader_epoch if self.range else NO_EPOCH
        self._turn_to(TopicPartition(self._topic, self._partition, next_offset, leader_epoch=epoch))

    def _turn_to(self, place: TopicPartition) -> None:
        self._place = place
        self._shared_consumer.assign(*(() if self.is_alone else (place,)))

    def fetch_alone(self, is_alone: bool) -> None:
        """Stop fetching ahead, or start it again."""
        if is_alone != self.is_alone:
            self.is_alone = is_alone
            self.forget()

    def forget(self) -> None:
        """Forget the range: `start_at` has to name the next one."""
        self.range = None

    def renew(self) -> None:
        """Start over with a new consumer: `start_at` has to name the next range."""
        self._shared_consumer.renew()
        self.forget()

    def pause(self) -> None:
        self._shared_consumer.pause(TopicPartition(self._topic, self._partition))

    def resume(self) -> None:
        if self.range is not None:  # after a new start, nothing is paused
            self._heard_at = time.monotonic()
            self._shared_consumer.resume(TopicPartition(self._topic, self._partition))

    def read(self, most: int) -> list[SourceMessage]:
        """Return records of the range, in order; none if there are none right now or the range has ended."""
        if self._given_back:
            messages, self._given_back = self._given_back, []
            self.next_offset = self._beyond
            return messages
        if self._stop is not None:
            raise self._stop
        batch = self._fetch(self.next_offset, min(most, self._end - self.next_offset))
        messages = cast("list[SourceMessage]", [message for message in batch if message.error() is None])
        if messages:
            self.next_offset = messages[-1].offset() + 1
            if self.next_offset > self._end:
                messages = [message for message in messages if message.offset() < self._end]
                self.next_offset = self._end
            if self._skips:
                messages = self._skip(messages)
        if len(messages) < len(batch):
            self._heed([message for message in batch if message.error() is not None], bool(messages))
        self._watch(heard=bool(batch))
        self._read_headers(messages)
        return messages

    def _fetch(self, first: int, most: int) -> list[Message]:
        if not self.is_alone:
            return self._shared_consumer.consume(most, READ_SECONDS)
        self._place.offset = first
        return self._shared_consumer.fetch_alone(self._place, most)

    def _read_headers(self, messages: list[SourceMessage]) -> None:
        """Put unreadable headers aside: at a second request, the client returns something that crashes the process."""
        self.unreadable = {}
        rest = iter(messages)
        while True:
            try:
                deque(map(headers_of, rest), maxlen=0)
                return
            except SystemError as error:
                at = len(messages) - length_hint(rest) - 1
                self.unreadable[messages[at].offset()] = Fault.of(error.__cause__ or error, self._topic, "source")
                messages[at] = BareMessage(messages[at])

    def _skip(self, messages: list[SourceMessage]) -> list[SourceMessage]:
        wanted = [each for each in messages if not any(first <= each.offset() < after for first, after in self._skips)]
        onwards = self._after_skips(self.next_offset)
        if onwards != self.next_offset:
            self._go_to(onwards)
        return wanted

    def _after_skips(self, next_offset: int) -> int:
        for first, after in self._skips:
            if first <= next_offset < after:
                next_offset = min(after, self._end)
        return next_offset

    def give_back(self, messages: list[SourceMessage]) -> None:
        """Take back records that were read but not handled; `read` returns them next."""
        if messages:
            # The client may have reported already that the range ends after them, and does so only once.
            self._beyond = self.next_offset
            self._given_back = messages
            self.next_offset = messages[0].offset()

    def take_lost(self) -> int:
        """Return how many records were lost since the last call: they had left the topic, or were in a broken batch."""
        lost, self._lost = self._lost, 0
        return lost

    def _heed(self, events: list[Message], has_messages: bool) -> None:
        for event in events:
            error = cast("KafkaError", event.error())
            if error.code() == KafkaError._PARTITION_EOF:
                # All below the event's offset is read: markers and compacted records can end a range, too.
                if (event.offset() or 0) >= self._end:
                    self.next_offset = self._end
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                try:
                    self._pass_over_lost(error)
                except PartitionHaltedError as stop:
                    # The client reports this once. The records read before come first: they cannot be read again.
                    if not has_messages:
                        raise
                    self._stop = stop
                    return
            elif error.code() == KafkaError._BAD_COMPRESSION:
                # The client reports this again and again. The records before the batch come first.
                if not has_messages:
                    self._pass_over_batch(event.offset() or 0, error)
                    return
            elif not error.retriable():
                stop_if_forbidden(error, topic=self._topic)
                raise KafkaException(error)

    def _watch(self, heard: bool) -> None:
        now = time.monotonic()
        if heard:
            self._heard_at = now
            return
        position = self._shared_consumer.position(TopicPartition(self._topic, self._partition))
        if position >= self._end:
            self.next_offset = self._end
        elif now - self._heard_at > STALL_SECONDS:
            raise PartitionHaltedError(
                f"no answer from the broker about offset {self.next_offset} for {STALL_SECONDS:.0f} s: "
                "look at the leader of this partition, then run again"
            )

    def _pass_over_batch(self, first: int, error: KafkaError) -> None:
        """Pass over a batch that the client cannot decompress, or that would take too much memory.

        Stop the partition unless the pipeline skips lost records.
        """
        self._stop_unless_skipped(
            f"the batch at offset {first} cannot be decompressed ({error.str()}): either it is broken, or it inflates "
            "to more than receive.message.max.bytes; raise that in the extra of the source's connection, or set "
            "on_data_loss='skip' to continue without the records in it, then run again"
        )
        asked = max(first, self.next_offset)
        after = self._after_batch(first, asked)
        self._lost += after - asked
        self._go_to(after)

    def _after_batch(self, first: int, inside: int) -> int:
        """Find the first offset behind the batch, by reads: the client does not report how many records are in it."""
        step = 1
        while (outside := min(inside + step, self._end)) < self._end and self._is_in_batch(first, outside):
            inside, step = outside, step * 2
        while outside - inside > 1:
            between = (inside + outside) // 2
            if self._is_in_batch(first, between):
                inside = between
            else:
                outside = between
        return outside

    def _is_in_batch(self, first: int, asked: int) -> bool:
        self._turn_to(TopicPartition(self._topic, self._partition, asked))
        until = time.monotonic() + STALL_SECONDS
        while time.monotonic() < until:
            for found in self._fetch(asked, 1):
                error = found.error()
                if error is None or error.code() == KafkaError._PARTITION_EOF:
                    return False
                if error.code() == KafkaError._BAD_COMPRESSION:
                    return found.offset() == first
        raise NoAnswerError(f"the broker did not answer within {STALL_SECONDS:g} s about offset {asked}")

    def _pass_over_lost(self, error: KafkaError) -> None:
        asked = self.next_offset
        first, after_last = self._shared_consumer.extent(TopicPartition(self._topic, self._partition))
        if asked >= first:
            raise PartitionHaltedError(
                f"offset {asked} is not the one that was planned, and the log goes from {first} to {after_last}: the "
                f"topic was truncated or re-created ({error.str()}); plan again"
            )
        until = min(first, self._end)
        self._stop_unless_skipped(
            f"records {asked} to {until - 1} have left the topic before they were read (the log starts at "
            f"{first}): plan again from 'earliest', or set on_data_loss='skip' to continue without them"
        )
        self._lost += until - asked
        self._go_to(until)

    def _stop_unless_skipped(self, reason: str) -> None:
        if not self._skip_lost:
            raise PartitionHaltedError(reason)
