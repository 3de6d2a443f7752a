"""The client's AdminClient. What it answers is there at once: the waiting is done where it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import ConfigResource

from tests.simulation.kafka.client import Client
from tests.simulation.kafka.cluster import refusal
from tests.simulation.kafka.groups import NOTHING


class Answer:
    """A future that is completed."""

    __slots__ = ("_error", "_result")

    def __init__(self, result: Any = None, error: KafkaException | None = None) -> None:
        self._result, self._error = result, error

    def done(self) -> bool:
        return True

    def exception(self, timeout: float | None = None) -> KafkaException | None:
        return self._error

    def result(self, timeout: float | None = None) -> Any:
        if self._error is not None:
            raise self._error
        return self._result


class AdminClient(Client):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__()

    def poll(self, timeout: float = 0) -> int:
        self.simulation.check()
        return 0

    def describe_topics(self, topics: TopicCollection, request_timeout: float = 30.0) -> dict[str, Answer]:
        return self._ask_of_each(topics.topic_names, self._topic, request_timeout, "describe_topics")

    def list_offsets(
        self, asked: Mapping[TopicPartition, Any], isolation_level: Any = None, request_timeout: float = 30.0
    ) -> dict[TopicPartition, Answer]:
        committed = isolation_level is None or isolation_level.name == "READ_COMMITTED"

        def found(place: TopicPartition) -> Any:
            log, spec = self.cluster.log(place.topic, place.partition), asked[place]
            kind, end = type(spec).__name__, log.end_for(committed)
            if kind == "EarliestSpec":
                offset = log.start
            elif kind == "LatestSpec":
                offset = end
            else:
                offset = log.offset_at(spec._value, committed)
            return SimpleNamespace(offset=offset, leader_epoch=None if offset < 0 else log.epoch, timestamp=-1)

        return self._ask_of_each(asked, found, request_timeout, "list_offsets")

    def list_consumer_group_offsets(
        self,
        asked: Sequence[ConsumerGroupTopicPartitions],
        require_stable: bool = False,
        request_timeout: float = 30.0,
    ) -> dict[str, Answer]:
        (one,) = asked

        def found(name: str) -> Any:
            group = self.cluster.group(name)
            wanted = one.topic_partitions
            places = [(each.topic, each.partition) for each in wanted] if wanted else sorted(group.offsets)
            answers = []
            for place in places:
                held = group.offsets.get(place, NOTHING)
                unstable = require_stable and group.is_pending(place)
                answers.append(
                    SimpleNamespace(
                        topic=place[0],
                        partition=place[1],
                        offset=NOTHING.offset if unstable else held.offset,
                        metadata=None if unstable else held.metadata,
                        leader_epoch=held.leader_epoch,
                        error=KafkaError(KafkaError.UNSTABLE_OFFSET_COMMIT) if unstable else None,
                    )
                )
            return SimpleNamespace(group_id=name, topic_partitions=answers)

        return self._ask_of_each([one.group_id], found, request_timeout, "list_group")

    def describe_consumer_groups(self, names: Sequence[str], request_timeout: float = 30.0) -> dict[str, Answer]:
        def found(name: str) -> Any:
            group = self.cluster.group(name)
            members = [SimpleNamespace(client_id=each, host=host) for each, host in group.members]
            return SimpleNamespace(group_id=name, members=members)

        return self._ask_of_each(names, found, request_timeout, "describe_group")

    def describe_configs(
        self, resources: Sequence[ConfigResource], request_timeout: float = 30.0
    ) -> dict[ConfigResource, Answer]:
        def found(resource: ConfigResource) -> Any:
            is_broker = resource.restype == ConfigResource.Type.BROKER
            settings = self.cluster.broker_settings if is_broker else self.cluster.topic(resource.name).settings
            return {name: SimpleNamespace(name=name, value=value) for name, value in settings.items()}

        return self._ask_of_each(resources, found, request_timeout, "describe_configs")

    def create_topics(self, topics: Sequence[Any], request_timeout: float = 30.0) -> dict[str, Answer]:
        wanted = {each.topic: each for each in topics}

        def make(name: str) -> None:
            if name in self.cluster.topics:
                raise refusal(KafkaError.TOPIC_ALREADY_EXISTS)
            partitions = wanted[name].num_partitions
            self.cluster.create(name, max(1, partitions), **(wanted[name].config or {}))

        return self._ask_of_each(wanted, make, request_timeout, "create_topics")

    def create_partitions(self, wanted: Sequence[Any], request_timeout: float = 30.0) -> dict[str, Answer]:
        counts = {each.topic: each.new_total_count for each in wanted}

        def grow(name: str) -> None:
            if len(self.cluster.topic(name).logs) >= counts[name]:
                raise refusal(KafkaError.INVALID_PARTITIONS)
            self.cluster.grow(name, counts[name])

        return self._ask_of_each(counts, grow, request_timeout, "create_partitions")

    def _topic(self, name: str) -> Any:
        found = self.cluster.topic(name)
        partitions = [SimpleNamespace(id=each, replicas=[1], leader=1, isr=[1]) for each in range(len(found.logs))]
        return SimpleNamespace(name=name, topic_id=found.id, partitions=partitions)

    def _ask_of_each(
        self, asked: Iterable[Any], answer: Callable[[Any], Any], seconds: float, what: str
    ) -> dict[Any, Answer]:
        """One request for all, which has one fate."""

        def answers() -> dict[Any, Answer]:
            found = {}
            for each in asked:
                try:
                    found[each] = Answer(answer(each))
                except KafkaException as error:
                    found[each] = Answer(error=error)
            return found

        try:
            return self.ask(answers, seconds, what)
        except KafkaException as error:
            return {each: Answer(error=error) for each in asked}
