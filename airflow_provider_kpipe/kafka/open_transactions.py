"""The name of the transaction that keeps a group from being read: a reader sees only that no broker answers."""

from __future__ import annotations

from collections.abc import Collection

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition

from airflow_provider_kpipe.contract.kafka_names import committer_to
from airflow_provider_kpipe.exceptions import HeldUpError, KafkaUnavailableError, KpipeError
from airflow_provider_kpipe.kafka.cluster import Cluster

NAMING_SECONDS = 5.0


def name_what_holds_up(
    cluster: Cluster, group: str, topic: str, partitions: Collection[int], failure: KafkaUnavailableError
) -> None:
    """Raise HeldUpError for a group that was not read in time, if its offsets are being committed; else just return."""
    cause = failure.__cause__
    if not (isinstance(cause, KafkaException) and cause.args[0].code() == KafkaError._TIMED_OUT):
        return
    try:
        held_up = being_committed(cluster, group, topic, partitions) if _is_coordinated(cluster, group) else []
    except KpipeError:
        return
    if held_up:
        writers = ", ".join(dict.fromkeys(committer_to(group, topic, partition) for partition in held_up))
        raise HeldUpError(
            f"group {group!r} cannot be read: a transaction that commits its offsets for partitions "
            f"{', '.join(map(str, held_up))} of {topic!r} has not ended within {cluster.answer_seconds:g} s, most "
            f"likely that of transactional id {writers}; its client is still running, or was killed before it "
            "committed. Try again later, or run the checkpoint of that run again, which ends the transaction at once; "
            "the broker ends it when the transaction's timeout is over"
        ) from cause


def being_committed(cluster: Cluster, group: str, topic: str, partitions: Collection[int]) -> list[int]:
    """Return the partitions in which an offset of the group is part of an open transaction."""
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition) for partition in partitions])
    answer = cluster.ask_admin(
        lambda admin, seconds: admin.list_consumer_group_offsets([asked], require_stable=True, request_timeout=seconds),
        f"about group {group!r}",
        NAMING_SECONDS,
    )[group]
    found = [each for each in answer.topic_partitions or [] if each.error is not None]
    return sorted(each.partition for each in found if each.error.code() == KafkaError.UNSTABLE_OFFSET_COMMIT)


def _is_coordinated(cluster: Cluster, group: str) -> bool:
    """Tell whether the group's coordinator is there: else a client that asks for offsets may crash its process."""
    try:
        cluster.ask_admin(
            lambda admin, seconds: admin.describe_consumer_groups([group], request_timeout=seconds),
            f"about group {group!r}",
            NAMING_SECONDS,
        )
    except KpipeError as error:
        # A group that does not exist yet, or that the user may not describe, has a coordinator.
        return not error.retriable
    return True
