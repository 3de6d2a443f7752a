"""Positions on a cluster: ends of logs, moments, committed and stored offsets, topic ids."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self, TypeVar

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, ListOffsetsResultInfo, OffsetSpec

from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.kafka_names import details_group_of, published_group_of
from airflow_provider_kpipe.contract.offsets.metadata import METADATA_BYTES
from airflow_provider_kpipe.contract.offsets.ranges import NO_EPOCH
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.details import Details, with_details
from airflow_provider_kpipe.contract.progress.progress import PartitionProgress, StoredProgress
from airflow_provider_kpipe.contract.progress.resuming import committed_beyond, progress_of
from airflow_provider_kpipe.contract.progress.standing import Held, Stored
from airflow_provider_kpipe.exceptions import KafkaUnavailableError, KpipeError, StalePlanError, UnknownTopicError
from airflow_provider_kpipe.kafka.cluster import ANSWER_SECONDS, Cluster
from airflow_provider_kpipe.kafka.held_offsets import held_offsets
from airflow_provider_kpipe.kafka.open_transactions import name_what_holds_up

log = logging.getLogger(__name__)
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

_UNKNOWN_TOPIC = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)
_ISOLATION = {
    "read_committed": IsolationLevel.READ_COMMITTED,
    "read_uncommitted": IsolationLevel.READ_UNCOMMITTED,
}


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as it is now; its id changes when it is deleted and re-created."""

    name: str
    id: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of a partition's log, and the epoch of its leader."""

    offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """An offset that a group holds for a partition, with the metadata beside it."""

    offset: int
    metadata: str | None
    leader_epoch: int = NO_EPOCH
    where: str = field(default="", compare=False)
    """The partition and the group of the offset, for an error."""

    @property
    def held(self) -> Held:
        """The offset as a checkpoint, or another tool, has committed it."""
        return Held.of(self.offset, self.metadata, self.leader_epoch, self.where)

    @property
    def stored(self) -> Stored | None:
        """The offset as a run has stored it; None if no run has."""
        progress = StoredProgress.read_text(self.metadata, self.where)
        return None if progress is None else Stored(self.offset, progress, leader_epoch=self.leader_epoch)


class Positions:
    """Reader of positions on one cluster. A context manager: it keeps a client per group open inside the block."""

    def __init__(self, settings: Mapping[str, str], *, answer_seconds: float = ANSWER_SECONDS) -> None:
        self.cluster = Cluster(settings, answer_seconds=answer_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cluster.close()

    def topic(self, name: str) -> Topic:
        found = self._ask_about_topic(
            name,
            lambda admin, seconds: admin.describe_topics(TopicCollection([name]), request_timeout=seconds),
            f"about topic {name!r}",
        )[name]
        return Topic(name, str(found.topic_id), tuple(sorted(each.id for each in found.partitions)))

    def check_topic(self, plan: Plan) -> Topic:
        """Return the topic of a plan; raise StalePlanError if it is not the one planned against."""
        found = self.topic(plan.topic)
        if found.id != plan.topic_id:
            raise StalePlanError(
                f"topic {plan.topic!r} was re-created since it was planned (its id was {plan.topic_id}, now it is "
                f"{found.id}): the offsets of the plan mean other records; start a new run"
            )
        return found

    def earliest(self, topic: Topic, isolation_level: str) -> dict[int, int]:
        return self._list(topic.name, topic.partitions, OffsetSpec.earliest(), isolation_level)

    def latest(self, topic: Topic, isolation_level: str) -> dict[int, int]:
        return {partition: end.offset for partition, end in self.ends(topic, isolation_level).items()}

    def ends(self, topic: Topic, isolation_level: str) -> dict[int, LogEnd]:
        found = self._results(topic.name, topic.partitions, OffsetSpec.latest(), isolation_level)
        return {
            each: LogEnd(end.offset, NO_EPOCH if end.leader_epoch is None else end.leader_epoch)
            for each, end in found.items()
        }

    def at(self, topic: Topic, timestamp_ms: int, isolation_level: str, ends: Mapping[int, int]) -> dict[int, int]:
        """Return the first offset at or after a moment; the end of the log if no record is that young."""
        found = self._list(topic.name, topic.partitions, OffsetSpec.for_timestamp(timestamp_ms), isolation_level)
        return {each: ends[each] if offset < 0 else offset for each, offset in found.items()}

    def group_offsets(self, group: str, topic: str, partitions: Collection[int]) -> dict[int, GroupOffset]:
        """Return the offsets that a group holds.

        They are read as a consumer, which waits for a transaction that is just being committed; the admin client would
        show the offset from before it.
        """
        asked = [TopicPartition(topic, partition) for partition in partitions]
        try:
            answers = self.cluster.ask_as(
                group, lambda consumer, seconds: held_offsets(consumer, asked, seconds), f"about group {group!r}"
            )
        except KafkaUnavailableError as failure:
            name_what_holds_up(self.cluster, group, topic, partitions, failure)
            raise
        return {
            each.partition: GroupOffset(
                each.offset,
                each.metadata,
                NO_EPOCH if each.leader_epoch is None else each.leader_epoch,
                f"partition {each.partition} in group {group!r}",
            )
            for each in answers
            if each.offset >= 0
        }

    def progress(self, plan: Plan) -> list[PartitionProgress]:
        """Return how far the run of a plan has come, in the order of its ranges."""
        stored, reached = self._stored_by_slot(plan), committed_beyond(plan, self.checkpoints(plan))
        found = []
        for planned in plan.ranges:
            at = reached.get(planned.partition)
            whole = progress_of(planned, plan, stored[0].get(planned.partition), at)
            if whole.ended != "revoked" and (planned.cuts or whole.done or planned.done):
                pieces = [
                    progress_of(piece, plan, stored[piece.slot].get(piece.partition), at) for piece in planned.pieces
                ]
                whole = PartitionProgress.of_pieces(planned, pieces)
            found.append(whole)
        return found

    def checkpoints(self, plan: Plan) -> dict[int, list[Held]]:
        """Return what the run's working group holds for the plan's partitions, and the last commits of checkpoints."""
        partitions = [each.partition for each in plan.ranges]
        groups = (plan.working_group, published_group_of(plan.working_group))
        found = [self.group_offsets(group, plan.topic, partitions) for group in groups]
        return {partition: [held[partition].held for held in found if partition in held] for partition in partitions}

    def _stored_by_slot(self, plan: Plan) -> dict[int, dict[int, Stored]]:
        partitions: dict[int, list[int]] = {0: []}
        for planned in plan.ranges:
            for piece in planned.pieces:
                partitions.setdefault(piece.slot, []).append(piece.partition)
        return {slot: self.stored(plan.progress_group(slot), plan.topic, those) for slot, those in partitions.items()}

    def stored(self, group: str, topic: str, partitions: Collection[int]) -> dict[int, Stored]:
        """Return what runs have stored in one of their groups."""
        held = self.group_offsets(group, topic, partitions)
        found = {partition: stored for partition, each in held.items() if (stored := each.stored) is not None}
        detailed = [partition for partition, each in found.items() if each.progress.is_detailed]
        details = self.group_offsets(details_group_of(group), topic, detailed) if detailed else {}
        return {**found, **{each: _detailed(found[each], details.get(each)) for each in detailed}}

    def stored_so_far(self, group: str, topic: str, partitions: Collection[int]) -> dict[int, Stored]:
        """Return what was stored before any open transaction, without waiting for it; leave out the unreadable."""
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition) for partition in partitions])
        answer = self.cluster.ask_admin(
            lambda admin, seconds: admin.list_consumer_group_offsets([asked], request_timeout=seconds),
            f"about group {group!r}",
        )[group]
        found = {}
        for each in answer.topic_partitions:
            with suppress(DocumentError):
                held = GroupOffset(each.offset, each.metadata).stored
                if held is not None:
                    found[each.partition] = held
        return found

    def topics_of(self, group: str) -> set[str]:
        """Return the topics for which a group holds an offset."""
        found = self.cluster.ask_admin(
            lambda admin, seconds: admin.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group)], request_timeout=seconds
            ),
            f"about group {group!r}",
        )[group]
        return {each.topic for each in found.topic_partitions or [] if each.offset >= 0}

    def members(self, group: str) -> list[str]:
        """Return the client ids and hosts of the consumers that are in the group now."""
        try:
            described = self.cluster.ask_admin(
                lambda admin, seconds: admin.describe_consumer_groups([group], request_timeout=seconds),
                f"about group {group!r}",
            )[group]
        except KpipeError as error:
            cause = error.__cause__
            if isinstance(cause, KafkaException) and cause.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return []
            raise
        return [f"{member.client_id} on {member.host}" for member in described.members]

    def metadata_bytes(self, topic: Topic) -> int:
        """Return how many bytes the broker accepts beside an offset; its default if the user may not read the limit."""

        def question(admin: AdminClient, seconds: float) -> Mapping[ConfigResource, Future[dict[str, ConfigEntry]]]:
            brokers = admin.list_topics(topic.name, timeout=seconds).brokers
            resource = ConfigResource(ConfigResource.Type.BROKER, str(min(brokers)))
            return admin.describe_configs([resource], request_timeout=seconds)

        try:
            (found,) = self.cluster.ask_admin(question, "about its settings").values()
        except KpipeError as error:
            if error.retriable:
                raise
            log.debug("the broker's offset.metadata.max.bytes is not known: %s", error)
            return METADATA_BYTES
        return int(found["offset.metadata.max.bytes"].value or METADATA_BYTES)

    def _list(self, topic: str, partitions: Iterable[int], spec: OffsetSpec, isolation_level: str) -> dict[int, int]:
        found = self._results(topic, partitions, spec, isolation_level)
        return {partition: result.offset for partition, result in found.items()}

    def _results(
        self, topic: str, partitions: Iterable[int], spec: OffsetSpec, isolation_level: str
    ) -> dict[int, ListOffsetsResultInfo]:
        asked = {TopicPartition(topic, partition): spec for partition in partitions}
        level = _ISOLATION[isolation_level]
        answers = self._ask_about_topic(
            topic,
            lambda admin, seconds: admin.list_offsets(asked, isolation_level=level, request_timeout=seconds),
            f"about {topic!r}",
        )
        return {at.partition: found for at, found in answers.items()}

    def _ask_about_topic(
        self, topic: str, question: Callable[[AdminClient, float], Mapping[K, Future[T]]], about: str
    ) -> dict[K, T]:
        try:
            return self.cluster.ask_admin(question, about)
        except KpipeError as failure:
            cause = failure.__cause__
            if isinstance(cause, KafkaException) and cause.args[0].code() in _UNKNOWN_TOPIC:
                raise UnknownTopicError(
                    f"topic {topic!r} is not on the cluster at {self.cluster.address}: create it, or fix its name "
                    "in the pipeline"
                ) from cause
            raise


def _detailed(stored: Stored, held: GroupOffset | None) -> Stored:
    details = Details.read_text(held.metadata, held.where) if held else None
    return replace(stored, progress=with_details(stored.progress, details))
