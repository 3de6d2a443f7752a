"""The ledger topic beside a dead-letter topic: made when it is missing, kept as wide as its neighbour."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource
from confluent_kafka.cimpl import NewPartitions, NewTopic

from airflow_provider_kpipe.contract.offsets import PartitionRange
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.redrive_ledger import Redriven
from airflow_provider_kpipe.exceptions import KpipeError, UnknownTopicError
from airflow_provider_kpipe.kafka.bounded_reader import read_range
from airflow_provider_kpipe.kafka.positions import Positions, Topic

log = logging.getLogger(__name__)

ANSWER_SECONDS = 30.0
LOOK_SECONDS = 0.1
POLICY = "cleanup.policy"


def ensure_ledger(settings: Mapping[str, str], dead_letters: Topic, ledger: str) -> None:
    """Make the ledger topic, or widen it, if that is needed; refuse one that would forget."""
    wanted = len(dead_letters.partitions)
    admin = AdminClient({"log_level": 3, **settings})
    with Positions(settings) as positions:
        found = _topic(positions, ledger)
        if found is None:
            replicas = _replicas(admin, dead_letters.name)
            topic = NewTopic(ledger, wanted, replication_factor=replicas, config={POLICY: "compact"})
            change = admin.create_topics([topic], request_timeout=ANSWER_SECONDS)[ledger]
            _make(change, dead_letters.name, ledger, wanted)
            log.info("Topic %r is new: it keeps which dead letters of %r are redriven", ledger, dead_letters.name)
        elif len(found.partitions) < wanted:
            change = admin.create_partitions([NewPartitions(ledger, wanted)], request_timeout=ANSWER_SECONDS)[ledger]
            _make(change, dead_letters.name, ledger, wanted)
        _check_policy(admin, ledger)
        _wait(positions, ledger, wanted)


def redriven(settings: Mapping[str, str], plan: Plan, ledger: str) -> Redriven:
    """What the ledger says now; nothing as long as there is no ledger."""
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


def _replicas(admin: AdminClient, topic: str) -> int:
    described = admin.describe_topics(TopicCollection([topic]), request_timeout=ANSWER_SECONDS)[topic].result()
    return min(len(each.replicas) for each in described.partitions)


def _make(change: Future[None], dead_letters: str, ledger: str, partitions: int) -> None:
    try:
        change.result()
    except KafkaException as failure:
        error: KafkaError = failure.args[0]
        # Another redrive of the same dead letters may have been faster.
        if error.code() not in (KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.INVALID_PARTITIONS):
            raise KpipeError(
                f"the ledger topic {ledger!r}, which keeps what is redriven of {dead_letters!r}, could not be made "
                f"({error.str()}): create it with {partitions} partitions and {POLICY}=compact, or let the "
                "connection's user create topics"
            ) from failure


def _check_policy(admin: AdminClient, ledger: str) -> None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, ledger)
    try:
        answer = admin.describe_configs([resource], request_timeout=ANSWER_SECONDS)[resource].result()
    except KafkaException as failure:
        log.info("the settings of %r cannot be read, and are taken to be right: %s", ledger, failure.args[0].str())
        return
    policy = answer[POLICY].value if POLICY in answer else "compact"
    if policy != "compact":
        raise KpipeError(
            f"the ledger topic {ledger!r} has {POLICY}={policy}: it would forget what has been redriven, and redrive "
            f"it again; set {POLICY}=compact"
        )


def _wait(positions: Positions, ledger: str, partitions: int) -> None:
    """Until every partition has a leader: a new topic is known everywhere only after a moment."""
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
