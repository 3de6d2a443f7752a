"""A plain consume-transform-produce loop over all partitions of a topic, from the beginning to their present end."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from per_record import TASKS
from serve import Run, serve

READ_RECORDS = 1_000
READ_SECONDS = 0.1
ANSWER_SECONDS = 60.0


class Loop:
    """One job. At the end of a chunk it waits for all acknowledgements, and then commits the offsets."""

    def __init__(self, consumer: Consumer, request: dict[str, Any]) -> None:
        self._consumer = consumer
        self._topic, self._output = request["source"], request["output"]
        self._task: Callable[[bytes], bytes | None] | None = TASKS.get(request["task"])
        self._chunk_records = request["chunk_records"]
        self._transactions = request["transactional_id"] is not None
        own = {"transactional.id": request["transactional_id"]} if self._transactions else {}
        self._failed: list[Any] = []
        self._producer = Producer({**request["producer"], **own, "on_delivery": self._note})

    def run(self) -> None:
        ends = self._ends()
        self._consumer.assign([TopicPartition(self._topic, number, 0) for number in ends])
        if self._transactions:
            self._producer.init_transactions()
            self._producer.begin_transaction()
        position = dict.fromkeys(ends, 0)
        room, left = self._chunk_records, sum(ends.values())
        while left:
            for messages in self._read():
                self._handle(messages)
                for message in messages:
                    position[message.partition()] = message.offset() + 1
                left, room = left - len(messages), room - len(messages)
            if room <= 0:
                self._commit(position)
                room = self._chunk_records
                if self._transactions:
                    self._producer.begin_transaction()
        self._commit(position)

    def _ends(self) -> dict[int, int]:
        partitions = self._consumer.list_topics(self._topic, timeout=ANSWER_SECONDS).topics[self._topic].partitions
        return {
            number: self._consumer.get_watermark_offsets(TopicPartition(self._topic, number), timeout=ANSWER_SECONDS)[1]
            for number in partitions
        }

    def _read(self) -> Iterator[list[Message]]:
        messages = self._consumer.consume(READ_RECORDS, READ_SECONDS)
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
        if messages:
            yield messages

    def _handle(self, messages: list[Message]) -> None:
        produce, task, topic = self._producer.produce, self._task, self._output
        for message in messages:
            value = message.value()
            if task is not None:
                value = task(value)
                if value is None:
                    continue
            arguments = (topic, value, message.key(), -1, None, None, message.timestamp()[1], message.headers())
            while True:
                try:
                    produce(*arguments)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._producer.poll(0)

    def _commit(self, position: dict[int, int]) -> None:
        offsets = [TopicPartition(self._topic, number, after) for number, after in position.items()]
        if self._transactions:
            self._producer.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata())
            self._producer.commit_transaction()
        else:
            self._producer.flush()
            self._consumer.commit(offsets=offsets, asynchronous=False)
        if self._failed:
            raise KafkaException(self._failed[0])

    def _note(self, error: Any, _message: Message) -> None:
        if error is not None:
            self._failed.append(error)


def open_session() -> Run:
    # As in kpipe's workers: messages hold no cycles, and searching for cycles costs 8 % of a copy.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)

    def run(request: dict[str, Any]) -> dict[str, Any]:
        with closing(Consumer(request["consumer"])) as consumer:
            Loop(consumer, request).run()
        return {}

    return run


if __name__ == "__main__":
    serve(open_session)
