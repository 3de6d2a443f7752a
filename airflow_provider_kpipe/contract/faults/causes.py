"""The causes of faults: their kinds, the number of each kind, and its first record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.offsets.metadata import cut

MOST_CAUSES = 10
NAME_BYTES = 80
OTHER_KINDS = "other kinds"


@dataclass(slots=True)
class Cause:
    """One kind of fault: the exception and the component that raised it. A worker counts in it."""

    exception_class: str
    component: str
    count: int
    partition: int
    offset: int
    """The offset of the first record, in the partition that it was read from."""

    @classmethod
    def of(cls, fault: Fault, partition: int, offset: int) -> Self:
        return cls(cut(fault.exception_class, NAME_BYTES), cut(fault.component, NAME_BYTES), 1, partition, offset)

    @property
    def kind(self) -> tuple[str, str]:
        return self.exception_class, self.component

    @property
    def first(self) -> tuple[int, int]:
        return self.partition, self.offset

    def plus(self, other: Cause) -> Cause:
        partition, offset = min(self.first, other.first)
        return replace(self, count=self.count + other.count, partition=partition, offset=offset)

    def shown(self, topic: str) -> str:
        raised = f"{self.exception_class} in {self.component}" if self.component else self.exception_class
        return f"{self.count:,} x {raised}, first {topic}-{self.partition} at offset {self.offset}"


Causes: TypeAlias = tuple[Cause, ...]


def merged(causes: Iterable[Cause], most: int = MOST_CAUSES) -> Causes:
    """Add up the causes of each kind, the most frequent first; the kinds beyond `most` become one.

    The given causes stay unchanged.
    """
    kinds: dict[tuple[str, str], Cause] = {}
    for each in causes:
        known = kinds.get(each.kind)
        kinds[each.kind] = known.plus(each) if known else replace(each)
    others = kinds.pop((OTHER_KINDS, ""), None)
    ranked = sorted(kinds.values(), key=lambda each: (-each.count, each.first, each.kind))
    rest = [*ranked[most:], *([others] if others else [])]
    if not rest:
        return tuple(ranked)
    first = min(rest, key=lambda each: each.first)
    return (*ranked[:most], replace(first, exception_class=OTHER_KINDS, component="", count=sum(e.count for e in rest)))
