"""The details of a run that are meant for people and do not fit beside the stored offset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

from airflow_provider_kpipe.contract.documents import Document, DocumentError
from airflow_provider_kpipe.contract.faults.causes import MOST_CAUSES, Causes, merged
from airflow_provider_kpipe.contract.offsets.metadata import METADATA_BYTES, as_text, cut
from airflow_provider_kpipe.contract.progress.progress import OWN_COUNTERS, Counts, StoredProgress

REASON_BYTES = 1_000
OTHER_COUNTERS = "others"
# The most kinds of faults, and counters beside kpipe's own, to keep: from the wanted numbers to those that always fit.
_STEPS = ((MOST_CAUSES, None), (5, None), (2, None), (1, 20), (1, 10), (1, 5), (0, 0))


@dataclass(frozen=True, slots=True)
class Told:
    """The part of `Counts` that may be long."""

    named: Mapping[str, int] = field(default_factory=dict)
    causes: Causes = ()

    @classmethod
    def of(cls, counts: Counts, causes: int = MOST_CAUSES, counters: int | None = None) -> Told:
        return cls(_fewer(counts.named, counters), merged(counts.causes, causes))


@dataclass(frozen=True, slots=True)
class Details(Document):
    """The metadata of an offset in the details group, stored together with the progress that it belongs to.

    A run does not need it to resume.
    """

    SCHEMA_VERSION: ClassVar[int] = 1

    run_key: str
    number: int
    """The number of the run's plan."""
    reason: str | None = None
    own: Told = field(default_factory=Told)
    inherited: Told = field(default_factory=Told)


class Fitted(NamedTuple):
    """The metadata to store."""

    progress: str
    details: str | None
    """None if the progress holds all of it."""


def fit(progress: StoredProgress, most: int = METADATA_BYTES) -> Fitted:
    """Make metadata of at most `most` bytes; the parts that do not fit become the details."""
    told = replace(progress, reason=cut(progress.reason, REASON_BYTES)) if progress.reason else progress
    whole = _text(told)
    if _size(whole) <= most:
        return Fitted(whole, None)
    bare = replace(
        progress,
        counts=_bare(progress.counts),
        inherited=_bare(progress.inherited),
        reason=progress.reason and "?",
        is_detailed=True,
    )
    room = most - _size(_text(bare))
    if room < 0:
        raise DocumentError(
            f"the progress of run {progress.run_key[:80]!r} takes {most - room} bytes beside its offset, and the "
            f"broker takes {most}: raise its offset.metadata.max.bytes"
        )
    if progress.reason:
        bare = replace(bare, reason=cut(progress.reason, room + 1) or "?")
    return Fitted(_text(bare), _fitting(progress, most))


def with_details(progress: StoredProgress, details: Details | None) -> StoredProgress:
    """Return the progress with its details, which were stored apart from it."""
    if details is None or (details.run_key, details.number) != (progress.run_key, progress.number):
        return progress
    return replace(
        progress,
        counts=_filled(progress.counts, details.own),
        inherited=_filled(progress.inherited, details.inherited),
        reason=progress.reason and (details.reason or progress.reason),
        is_detailed=False,
    )


def _fitting(progress: StoredProgress, most: int) -> str:
    return next(text for text in map(_text, _shorter_and_shorter(progress)) if _size(text) <= most)


def _shorter_and_shorter(progress: StoredProgress) -> Iterator[Details]:
    reason = progress.reason and cut(progress.reason, REASON_BYTES)
    for causes, counters in _STEPS:
        own, inherited = (Told.of(each, causes, counters) for each in (progress.counts, progress.inherited))
        yield Details(progress.run_key, progress.number, reason, own, inherited)
    yield Details(progress.run_key, progress.number)


def _fewer(named: Mapping[str, int], most: int | None) -> Mapping[str, int]:
    """Keep the engine's own counters and the `most` largest others; add the rest up in one counter."""
    others = {name: count for name, count in named.items() if not name.startswith(OWN_COUNTERS)}
    if most is None or len(others) <= most:
        return named
    ranked = sorted(others, key=lambda name: (name == OTHER_COUNTERS, -others[name], name))
    kept = {name: named[name] for name in named if name not in ranked[most:]}
    return {**kept, OTHER_COUNTERS: sum(named[name] for name in ranked[most:])}


def _bare(counts: Counts) -> Counts:
    return replace(counts, named={}, causes=())


def _filled(counts: Counts, told: Told) -> Counts:
    return replace(counts, named=dict(told.named), causes=told.causes)


def _text(document: Document) -> str:
    return as_text(document.to_json())


def _size(text: str) -> int:
    return len(text.encode())
