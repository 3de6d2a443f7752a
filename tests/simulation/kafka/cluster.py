"""The cluster: topics, groups, transactions, and what an operator or a broker does to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from confluent_kafka import KafkaError, KafkaException

from tests.simulation.kafka.groups import Group, Held, OnCommit
from tests.simulation.kafka.log import Log, Row
from tests.simulation.kafka.transactions import Transactions
from tests.simulation.scheduler import Simulation
from tests.simulation.stage import STAGE

TOPIC_SETTINGS: Mapping[str, str] = {
    "cleanup.policy": "delete",
    "max.message.bytes": "1048588",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.after.max.ms": "3600000",
    "min.insync.replicas": "1",
}
BROKER_SETTINGS: Mapping[str, str] = {"offset.metadata.max.bytes": "4096"}


def refusal(code: int, text: str = "", **flags: bool) -> KafkaException:
    """The error of a broker or of a client."""
    return KafkaException(KafkaError(code, text or KafkaError(code).str(), **flags))


class Topic:
    """A topic from when it is made to when it is deleted."""

    def __init__(self, name: str, identity: str, partitions: int, settings: Mapping[str, str]) -> None:
        self.name, self.id = name, identity
        self.logs = [Log(name, partition) for partition in range(partitions)]
        self.settings = {**TOPIC_SETTINGS, **settings}
        self.largest = int(self.settings["max.message.bytes"])
        self.oldest_ms = int(self.settings["message.timestamp.before.max.ms"])
        self.is_compacted = self.settings["cleanup.policy"] == "compact"

    def grow(self, partitions: int) -> None:
        self.logs += [Log(self.name, partition) for partition in range(len(self.logs), partitions)]


class Cluster:
    """Comes onto the stage as it is made: clients that are made from then on are its."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.topics: dict[str, Topic] = {}
        self.groups: dict[str, Group] = {}
        self.transactions = Transactions(simulation)
        self.on_commit: list[OnCommit] = []
        """Called with group, place, old and new offset for each that is committed."""
        self.broker_settings = dict(BROKER_SETTINGS)
        self._ids = count(1)
        simulation.background.append(self.transactions)
        STAGE.simulation, STAGE.cluster = simulation, self

    # What clients ask

    def log(self, topic: str, partition: int) -> Log:
        found = self.find_log(topic, partition)
        if found is None:
            raise refusal(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return found

    def find_log(self, topic: str, partition: int) -> Log | None:
        found = self.topics.get(topic)
        return found.logs[partition] if found is not None and 0 <= partition < len(found.logs) else None

    def topic(self, name: str) -> Topic:
        found = self.topics.get(name)
        if found is None:
            raise refusal(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return found

    def group(self, name: str) -> Group:
        found = self.groups.get(name)
        if found is None:
            found = self.groups[name] = Group(name, self.on_commit)
        return found

    # What operators do

    def create(self, topic: str, partitions: int = 1, **settings: str) -> Topic:
        """Make a topic; settings have `_` for `.`, as in cleanup_policy="compact"."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        found = self.topics[topic] = Topic(topic, f"id-{topic}-{next(self._ids)}", partitions, named)
        return found

    def delete(self, topic: str, keeps_offsets: bool = False) -> None:
        """Delete a topic. A broker forgets what groups hold of it."""
        for log in self.topics.pop(topic).logs:
            self.transactions.forget(log)
        if not keeps_offsets:
            for group in self.groups.values():
                group.forget(topic)
                for pending in group.pending.values():
                    for place in [place for place in pending if place[0] == topic]:
                        del pending[place]

    def recreate(self, topic: str, partitions: int | None = None, keeps_offsets: bool = False) -> Topic:
        """Delete a topic and make it anew, with another id."""
        old = self.topic(topic)
        self.delete(topic, keeps_offsets)
        new = Topic(topic, f"id-{topic}-{next(self._ids)}", partitions or len(old.logs), old.settings)
        self.topics[topic] = new
        return new

    def grow(self, topic: str, partitions: int) -> None:
        self.topic(topic).grow(partitions)

    def append(self, topic: str, partition: int, rows: Iterable[Row], transaction: int | None = None) -> range:
        """Write as somebody else does: at once, or in a transaction with that number (from 1,000,000 on), which `mark`
        ends. Gives the offsets."""
        log = self.log(topic, partition)
        first = log.end
        log.append(rows, transaction)
        return range(first, log.end)

    def mark(self, topic: str, partition: int, transaction: int, commit: bool) -> None:
        """End the transaction of somebody else in this log."""
        self.log(topic, partition).mark(transaction, 0, commit)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Move the start of a log, as retention does, too."""
        self.log(topic, partition).delete_before(before)

    def compact(self, topic: str, partition: int) -> None:
        self.log(topic, partition).compact()

    def elect(self, topic: str, partition: int, lost: int = 0) -> None:
        """Have another broker lead; it has lost the last so many offsets if the election is unclean."""
        self.log(topic, partition).elect(lost)

    def reset(self, group: str, topic: str, offsets: Mapping[int, int], metadata: str | None = None) -> None:
        """Move a group, as a tool does while nobody is in it. `on_commit` is not told."""
        for partition, offset in offsets.items():
            self.group(group).offsets[topic, partition] = Held(offset, metadata)

    def expire(self, group: str, topic: str | None = None) -> None:
        """Forget what a group holds, as brokers do after `offsets.retention.minutes`, of one topic or of all."""
        self.group(group).forget(topic)

    def join(self, group: str, client_id: str, host: str = "/127.0.0.1") -> None:
        self.group(group).members.append((client_id, host))

    def part(self, group: str) -> None:
        """All members leave a group."""
        self.group(group).members.clear()

    # For checks

    def read(
        self, topic: str, partition: int, committed: bool = True, whole: bool = False
    ) -> Iterator[tuple[int, Row]]:
        """What a reader gets now, with offsets; `whole` with what has left the log."""
        return self.log(topic, partition).read(committed, 0 if whole else None)

    def settle(self) -> None:
        """Write all markers that are on their way."""
        self.transactions.settle()
