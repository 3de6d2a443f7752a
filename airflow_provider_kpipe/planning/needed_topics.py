"""The topics that must exist before a run begins; an error names all missing ones at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline
from airflow_provider_kpipe.exceptions import UnknownTopicError
from airflow_provider_kpipe.kafka.positions import Positions, Topic
from airflow_provider_kpipe.planning.make_plan import check_kept_partitions

Settings = Mapping[str, str]


def check_needed_topics(pipeline: KafkaPipeline, source_settings: Settings, written_settings: Settings) -> None:
    """Raise for a missing topic, which would turn every record into a dead letter, or fail them all."""
    roles = pipeline.topic_roles
    source = {"source": roles["source"]}
    written = {role: topic for role, topic in roles.items() if role != "source"}
    found = topics_of(pipeline.name, [(source_settings, source), (written_settings, written)])
    check_kept_partitions(pipeline, len(found["source"].partitions), found["destination"])


def topics_of(pipeline: str, asked: Iterable[tuple[Settings, Mapping[str, str]]]) -> dict[str, Topic]:
    """Return each topic by its role, of those that are asked for on each cluster."""
    found: dict[str, Topic] = {}
    missing: list[str] = []
    for settings, roles in asked:
        with Positions(settings) as positions:
            for role, name in roles.items():
                try:
                    found[role] = positions.topic(name)
                except UnknownTopicError:
                    where = settings.get("bootstrap.servers") or settings.get("metadata.broker.list") or "?"
                    missing.append(f"{role} topic {name!r} on the cluster at {where}")
    if missing:
        raise UnknownTopicError(
            f"pipeline {pipeline!r} lacks {' and '.join(missing)}: create what is missing, or correct its name in the "
            "pipeline"
        )
    return found
