"""The ledger topic beside a dead-letter topic: created if missing, and given at least as many partitions."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TypeAlias

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource
from confluent_kafka.cimpl import NewPartitions, NewTopic

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.permissions import PAGE
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.redrive.ledger import Redriven
from airflow_provider_kpipe.exceptions import KpipeError, UnknownTopicError
from airflow_provider_kpipe.kafka.bounded_reader import read_range
from airflow_provider_kpipe.kafka.cluster import Cluster
from airflow_provider_kpipe.kafka.positions import Positions, Topic
from airflow_provider_kpipe.kafka.topic_limits import POLICY

log = logging.getLogger(__name__)
Change: TypeAlias = Callable[[AdminClient, float], Mapping[str, Future[None]]]

ANSWER_SECONDS = 30.0
LOOK_SECONDS = 0.1


def ensure_ledger(settings: Mapping[str, str], dead_letters: Topic, ledger: str) -> None:
    """Create the ledger topic, or add partitions to it, if needed; refuse one that would delete old entries."""
    wanted = len(dead_letters.partitions)
    with Positions(settings) as positions:
        found = _topic(positions, ledger)
        if found is None:
            replicas = _replicas(positions.cluster, dead_letters.name)
            topic = NewTopic(ledger, wanted, replication_factor=replicas, config={POLICY: "compact"})
            _make(
                positions.cluster,
                lambda admin, seconds: admin.create_topics([topic], request_timeout=seconds),
                dead_letters.name,
                ledger,
                wanted,
            )
            log.info("Topic %r is new: it keeps which dead letters of %r are redriven", ledger, dead_letters.name)
        elif len(found.partitions) < wanted:
            more = NewPartitions(ledger, wanted)
            _make(
                positions.cluster,
                lambda admin, seconds: admin.create_partitions([more], request_timeout=seconds),
                dead_letters.name,
                ledger,
                wanted,
            )
        _check_policy(positions.cluster, ledger)
        _wait(positions, ledger, wanted)


def redriven(settings: Mapping[str, str], plan: Plan, ledger: str) -> Redriven:
    """Return the entries that the ledger has now; none if there is no ledger yet."""
    found = Redriven(plan.topic_id, plan.ranges)
    with Positions(settings) as positions:
        topic = _topic(positions, ledger)
        if topic is None:
            return found
        first = positions.earliest(topic, plan.isolation_level)
        after_last = positions.latest(topic, plan.isolation_level)
    for partition in topic.partitions:
        entries = PartitionRange(partition, first[partition], after_last[partition], None)
        for entry in read_range(settings, ledger, entries):
            found.note(partition, entry.key(), entry.value())
    return found


def _topic(positions: Positions, name: str) -> Topic | None:
    try:
        return positions.topic(name)
    except UnknownTopicError:
        return None


def _replicas(cluster: Cluster, topic: str) -> int:
    described = cluster.ask_admin(
        lambda admin, seconds: admin.describe_topics(TopicCollection([topic]), request_timeout=seconds),
        f"about topic {topic!r}",
    )[topic]
    return min(len(each.replicas) for each in described.partitions)


def _make(cluster: Cluster, change: Change, dead_letters: str, ledger: str, partitions: int) -> None:
    try:
        cluster.ask_admin(change, f"for a change of topic {ledger!r}")
    except KpipeError as failure:
        cause = failure.__cause__
        error: KafkaError | None = cause.args[0] if isinstance(cause, KafkaException) else None
        # Another redrive of these letters may have done it first, or an earlier request of ours whose answer was lost.
        if error is not None and error.code() in (KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.INVALID_PARTITIONS):
            return
        if failure.retriable:
            raise
        raise KpipeError(
            f"the ledger topic {ledger!r}, which keeps what is redriven of {dead_letters!r}, could not be made "
            f"({error.str() if error else failure}): create it with {partitions} partitions and {POLICY}=compact, or "
            f"let the connection's user create it (see {PAGE})"
        ) from failure


def _check_policy(cluster: Cluster, ledger: str) -> None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, ledger)
    try:
        answer = cluster.ask_admin(
            lambda admin, seconds: admin.describe_configs([resource], request_timeout=seconds),
            f"about the settings of topic {ledger!r}",
        )[resource]
    except KpipeError as failure:
        if failure.retriable:
            raise
        log.info("the settings of %r cannot be read, and are taken to be right: %s", ledger, failure)
        return
    policy = answer[POLICY].value if POLICY in answer else "compact"
    if policy != "compact":
        raise KpipeError(
            f"the ledger topic {ledger!r} has {POLICY}={policy}: it would forget what has been redriven, and redrive "
            f"it again; set {POLICY}=compact"
        )


def _wait(positions: Positions, ledger: str, partitions: int) -> None:
    """Wait until every partition has a leader: all brokers know a new topic only after a moment."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            topic = positions.topic(ledger)
            if len(topic.partitions) >= partitions:
                positions.latest(topic, "read_committed")
                return
        except KpipeError:
            if time.monotonic() > deadline:
                raise
        if time.monotonic() > deadline:
            raise KpipeError(f"the ledger topic {ledger!r} has not got its {partitions} partitions: try again")
        time.sleep(LOOK_SECONDS)
