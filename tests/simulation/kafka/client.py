"""What all clients have in common: requests, and what befalls them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

from confluent_kafka import KafkaError

from tests.simulation.kafka.cluster import Cluster, refusal
from tests.simulation.stage import STAGE

T = TypeVar("T")

# While a leader or a coordinator moves.
PASSING = (
    KafkaError._TRANSPORT,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REQUEST_TIMED_OUT,
)
BROKERS = {1: SimpleNamespace(id=1, host="model", port=9092)}


# One broker has all of them.
IN_SYNC = SimpleNamespace(leader=1, replicas=[1], isrs=[1])


class Described(Mapping[str, Any]):
    """Topics, looked at when somebody wants to know: most calls are made for the connection only."""

    def __init__(self, cluster: Cluster, names: Sequence[str]) -> None:
        self._cluster, self._names = cluster, names

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        found = self._cluster.topics.get(name)
        return SimpleNamespace(
            topic=name,
            error=None if found else KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART),
            partitions=dict.fromkeys(range(len(found.logs)), IN_SYNC) if found else {},
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Client:
    """Belongs to the process whose task makes it."""

    def __init__(self) -> None:
        self.simulation, self.cluster = STAGE.simulation, STAGE.cluster
        task = self.simulation.check()
        if task is not None:
            task.process.clients.append(self)

    def died(self) -> None:
        """Go down with the process."""

    def ask(
        self, apply: Callable[[], T], seconds: float, what: str, *about: Any, late: Callable[[], object] | None = None
    ) -> T:
        """Make a request that the client gives up in time. What passes, it does not try again by itself.

        :param late: what the request does where it arrives after that
        """
        fate = self.simulation.enter(what, *about)
        if fate == "lost":
            if late is not None and self.simulation.befalls("late", what):
                self.cluster.transactions.comes_late(None, late)
            self.simulation.sleep(seconds)
            raise refusal(KafkaError._TIMED_OUT)
        if fate == "passing":
            raise refusal(PASSING[int(self.simulation.chance.random() * len(PASSING))])
        answer = apply()
        self.simulation.leave(what, *about)
        if fate == "reply lost":
            self.simulation.sleep(seconds)
            raise refusal(KafkaError._TIMED_OUT)
        return answer

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """Ask for nothing but what is known: nobody is let go on for that, and nothing befalls it."""
        self.simulation.check()
        names = list(self.cluster.topics) if topic is None else [topic]
        return SimpleNamespace(brokers=BROKERS, topics=Described(self.cluster, names))
