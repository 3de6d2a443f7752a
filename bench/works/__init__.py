"""All works, in the order in which they are measured.

Works of one heat are measured side by side, in the same rounds: bars may compare across them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.work import Work
from bench.works.arrow import ARROW
from bench.works.copy import COPY
from bench.works.filter import FILTER
from bench.works.json import JSON
from bench.works.operators import OPERATORS, OPERATORS_AS_THEY_COME
from bench.works.partitions import FORTY_PARTITIONS, ONE_PARTITION, THOUSAND_PARTITIONS
from bench.works.poison import POISON
from bench.works.sizes import ONE_KILOBYTE, TEN_KILOBYTES
from bench.works.skew import SKEW, SKEW_RELAXED
from bench.works.unused import UNUSED
from bench.works.waiting import WAITING, WAITING_RELAXED


@dataclass(frozen=True, slots=True)
class Heat:
    """Group of works that take turns."""

    name: str
    works: Sequence[Work]
    warm_up: bool = True
    """True for a round that does not count. A heat of minutes in sessions that earlier heats have warmed needs none."""


HEATS = (
    # The copy comes first, its warm part before its cold one: after that, the broker's JVM has reached its speed.
    Heat("copy", (COPY,)),
    Heat("json", (JSON, ARROW, POISON, UNUSED, FILTER)),
    Heat("sizes", (ONE_KILOBYTE, TEN_KILOBYTES)),
    Heat("partitions", (ONE_PARTITION, FORTY_PARTITIONS)),
    Heat("skew", (SKEW, SKEW_RELAXED)),
    Heat("waiting", (WAITING, WAITING_RELAXED)),
    Heat("operators", (OPERATORS, OPERATORS_AS_THEY_COME)),
    # This comes last: a broker that has had thousands of partitions is slower.
    Heat("thousand", (THOUSAND_PARTITIONS,), warm_up=False),
)
WORKS = {work.name: work for heat in HEATS for work in heat.works}
