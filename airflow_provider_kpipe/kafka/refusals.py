"""What to do where a broker gives an error for an answer."""

from __future__ import annotations

from confluent_kafka import KafkaError

# Nobody is there, or a leader or a coordinator is just moving to another broker.
_PASSING = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._WAIT_COORD,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    }
)
_REMEDIES = {
    KafkaError.GROUP_AUTHORIZATION_FAILED: "allow the connection's user to read the group (an ACL; the pipeline's "
    "groups all begin with its group_id, those of redrives with 'kpipe.redrive')",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "allow the connection's user to describe the topic, and to read or write it "
    "as the pipeline does (ACLs)",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "see that the topic is there, with all its partitions",
    KafkaError._AUTO_OFFSET_RESET: "the topic does not hold these records (any more): start a new run",
}


def passes(error: KafkaError) -> bool:
    """Whether it may be gone by itself in a while."""
    return error.code() in _PASSING


def remedy(error: KafkaError) -> str:
    if passes(error):
        return "see that the cluster is up and that bootstrap.servers and security.protocol of the connection are right"
    return _REMEDIES.get(error.code(), "the broker's log says why")
