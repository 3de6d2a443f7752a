"""The work that somebody does by hand on topics and groups, over a way that nobody disturbs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.torture.cluster import QUIET, Cluster
from tests.torture.history import History
from tests.torture.pipelines import PARTITIONS, Victim

ASK_SECONDS = 5.0
AGAIN_SECONDS = 0.5
RETENTION_SECONDS = 2.5
"""A broker looks every second for records that are too old."""


class Tools:
    """Calls that wait until they have worked, or say that they have not."""

    def __init__(self, cluster: Cluster, history: History) -> None:
        self._cluster, self._history = cluster, history

    def put(self, victim: Victim, offsets: Mapping[int, int]) -> None:
        began, group = time.monotonic(), victim.pipeline.group
        wanted = [TopicPartition(victim.source, partition, offset) for partition, offset in offsets.items()]
        admin = self._cluster.admin()
        while True:
            try:
                asked = admin.alter_consumer_group_offsets(
                    [ConsumerGroupTopicPartitions(group, wanted)], request_timeout=ASK_SECONDS
                )
                told = asked[group].result()
                if all(each.error is None for each in told.topic_partitions):
                    break
            except KafkaException:
                pass
            time.sleep(0.5)
        self._history.group_reset(
            group=group, topic=victim.source, offsets=dict(offsets), began=began, how="alter_consumer_group_offsets"
        )

    def delete_records(self, victim: Victim, partition: int, offset: int) -> bool:
        admin, asked = self._cluster.admin(), TopicPartition(victim.source, partition, offset)
        self._history.log_start_moved(topic=victim.source, partition=partition, offset=offset, how="delete_records")
        try:
            for answer in admin.delete_records([asked], request_timeout=10).values():
                answer.result()
        except KafkaException:
            return False
        return True

    def let_retention_pass(self, victim: Victim) -> bool:
        """Make all that is in the topic too old for a while."""
        try:
            self._set_retention(victim.source, "1")
            time.sleep(RETENTION_SECONDS)
        finally:
            while not self._set_retention(victim.source, "-1"):
                time.sleep(AGAIN_SECONDS)
        time.sleep(RETENTION_SECONDS)
        return self.note_log_starts(victim)

    def _set_retention(self, topic: str, milliseconds: str) -> bool:
        entry = ConfigEntry("retention.ms", milliseconds, incremental_operation=AlterConfigOpType.SET)
        wanted = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        admin = self._cluster.admin()
        try:
            for answer in admin.incremental_alter_configs([wanted], request_timeout=ASK_SECONDS).values():
                answer.result()
        except KafkaException:
            return False
        return True

    def note_log_starts(self, victim: Victim) -> bool:
        """Write down where the log of each partition begins by now; False if none has lost anything."""
        while not (bounds := self.bounds(victim)):
            time.sleep(AGAIN_SECONDS)
        moved = {partition: low for partition, (low, _) in bounds.items() if low}
        for partition, low in moved.items():
            self._history.log_start_moved(topic=victim.source, partition=partition, offset=low, how="seen")
        return bool(moved)

    def bounds(self, victim: Victim) -> dict[int, tuple[int, int]]:
        """Say where the log of each partition begins and ends; empty if nobody answers."""
        with self._reader("torture") as consumer:
            try:
                return {
                    each: consumer.get_watermark_offsets(TopicPartition(victim.source, each), timeout=ASK_SECONDS)
                    for each in range(PARTITIONS)
                }
            except KafkaException:
                return {}

    def committed(self, victim: Victim, seconds: float = 30.0) -> dict[int, int]:
        """Say where its group stands, as soon as no transaction over it is open."""
        wanted = [TopicPartition(victim.source, each) for each in range(PARTITIONS)]
        with self._reader(victim.pipeline.group) as consumer:
            try:
                found = consumer.committed(wanted, timeout=seconds)
            except KafkaException:
                return {}
        return {each.partition: each.offset for each in found if each.offset >= 0}

    @contextmanager
    def _reader(self, group: str) -> Iterator[Consumer]:
        settings = {"bootstrap.servers": self._cluster.direct, "group.id": group, "enable.auto.commit": False, **QUIET}
        consumer = Consumer(settings)
        try:
            yield consumer
        finally:
            consumer.close()
