"""Choice of the headers of an output, if those are not simply all of them."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_kpipe.contract.dead_letters.dialects import (
    SOURCE_OFFSET_HEADER,
    SOURCE_PARTITION_HEADER,
    SOURCE_TOPIC_HEADER,
)
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination
from airflow_provider_kpipe.record import Header, SourceMessage, coordinates


class HeaderRules:
    """Rules that drop headers by name, and add the source of a record, for readers who remove duplicates."""

    def __init__(self, declared: KafkaDestination) -> None:
        self._copies = declared.copy_headers
        self._dropped = frozenset(declared.drop_headers)
        self._stamps = declared.stamp_source

    def apply(self, headers: Sequence[Header] | None, message: SourceMessage) -> list[Header]:
        kept = [header for header in headers or () if header[0] not in self._dropped] if self._copies else []
        if self._stamps:
            topic, partition, offset = coordinates(message)
            kept += (
                (SOURCE_TOPIC_HEADER, topic.encode()),
                (SOURCE_PARTITION_HEADER, str(partition).encode()),
                (SOURCE_OFFSET_HEADER, str(offset).encode()),
            )
        return kept


def choose_header_rules(declared: KafkaDestination) -> HeaderRules | None:
    """Return the rules, or None if every header is kept as it is, which costs nothing."""
    if declared.copy_headers and not declared.drop_headers and not declared.stamp_source:
        return None
    return HeaderRules(declared)
