"""The meaning of an error of a broker or of a client, and its remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from airflow_provider_kpipe.contract.offsets.metadata import METADATA_BYTES
from airflow_provider_kpipe.contract.permissions import PAGE, forbidden
from airflow_provider_kpipe.exceptions import (
    ConnectionSettingsError,
    ForbiddenError,
    KafkaUnavailableError,
    KpipeError,
    UnreachableError,
)
from airflow_provider_kpipe.kafka.ailments import Ailments

# Errors that Kafka's own clients retry (RetriableException), and those that librdkafka reports while it retries. An
# unknown topic is not among them: most often, its name is misspelt.
_PASSING = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._WAIT_COORD,
        KafkaError._WAIT_CACHE,
        # A client has looked for the leader of a partition that has none just now.
        KafkaError._NOENT,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        KafkaError.PREFERRED_LEADER_NOT_AVAILABLE,
        KafkaError.LISTENER_NOT_FOUND,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NOT_CONTROLLER,
        KafkaError.STALE_BROKER_EPOCH,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.CONCURRENT_TRANSACTIONS,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError.FETCH_SESSION_ID_NOT_FOUND,
        KafkaError.INVALID_FETCH_SESSION_EPOCH,
    }
)
_FORBIDDEN = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "group",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional_id",
}
_REMEDIES = {
    **dict.fromkeys(_FORBIDDEN, f"see {PAGE} for all that the connection's user has to be allowed"),
    KafkaError.UNKNOWN_TOPIC_OR_PART: "see that the topic is there, with all its partitions",
    KafkaError.OFFSET_METADATA_TOO_LARGE: f"raise the brokers' offset.metadata.max.bytes to {METADATA_BYTES} or more",
    KafkaError.INVALID_TRANSACTION_TIMEOUT: "raise the brokers' transaction.max.timeout.ms to 60000 or more",
    KafkaError._BAD_COMPRESSION: (
        "a batch among them is broken, or inflates to more than receive.message.max.bytes: raise that in the extra of "
        "the connection"
    ),
    KafkaError._AUTO_OFFSET_RESET: "the topic does not hold these records (any more): start a new run",
}


def passes(error: KafkaError) -> bool:
    """Tell whether the error may pass by itself in a while."""
    return error.code() in _PASSING


def remedy(error: KafkaError) -> str:
    if passes(error):
        return "see that the cluster is up and that bootstrap.servers and security.protocol of the connection are right"
    return _REMEDIES.get(error.code(), "the broker's log says why")


@contextmanager
def needing(**names: str) -> Iterator[None]:
    """Raise ForbiddenError for a call without the permission to use a `topic`, a `group` or a `transactional_id`."""
    try:
        yield
    except KafkaException as failure:
        error: KafkaError = failure.args[0]
        kind = _FORBIDDEN.get(error.code())
        if kind in names:
            raise ForbiddenError(forbidden(kind.replace("_", " "), names[kind], error.str())) from failure
        raise


def failure_of(error: KafkaError, ailments: Ailments, about: str, address: str) -> KpipeError:
    """Return the exception for an error instead of an answer; `ailments` is what the client has reported meanwhile."""
    if not passes(error):
        kind = ForbiddenError if error.code() in _FORBIDDEN else KpipeError
        return kind(f"the Kafka cluster at {address} rejected the request {about} ({error.str()}): {remedy(error)}")
    said = f"the Kafka cluster at {address} is unreachable, asked {about} ({str(ailments) or error.str()})"
    todo = ailments.remedy or remedy(error)
    if ailments.are_final:
        return ConnectionSettingsError(f"{said}: {todo}")
    if ailments.mean_nobody_answers:
        return UnreachableError(f"{said}: {todo}")
    return KafkaUnavailableError(f"{said}: {todo}")
