"""The records of the soak: each has an id of its own, and the id says what has to become of it. Pure."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Literal, TypeAlias, get_args

Kind: TypeAlias = Literal["good", "unwanted", "poison", "mendable"]
KINDS: tuple[Kind, ...] = get_args(Kind)
PARTITIONS = 4


def kind_of(number: int) -> Kind:
    """Two of a hundred are filtered, one passes only when it is redriven, and one of four hundred never does.

    Each kind comes in every partition. Of what is redriven, most passes: a run in which most fails is no success.
    """
    if number % 51 == 3:
        return "unwanted"
    if number % 401 == 137:
        return "poison"
    return "mendable" if number % 101 == 11 else "good"


def value_of(number: int) -> bytes:
    return json.dumps({"id": number, "kind": kind_of(number), "padding": "x" * (40 + number % 97)}).encode()


def id_in(value: bytes | None) -> int:
    told: dict[str, Any] = json.loads(value or b"{}")
    return int(told["id"])


def produced_by_kind(count: int) -> Counter[Kind]:
    return Counter(kind_of(number) for number in range(count))
