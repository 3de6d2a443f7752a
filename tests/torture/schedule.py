"""Pure: the faults of a torture, their times and their victims, all drawn from the seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tests.torture.proxy import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    FETCH,
    INIT_PRODUCER_ID,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    PRODUCE,
    TXN_OFFSET_COMMIT,
    Effect,
    Trouble,
)

Kind = Literal[
    "kill task", "stop task", "freeze task",
    "kill driver", "freeze driver",
    "kill worker", "freeze worker",
    "kill child", "freeze child",
    "kill broker", "freeze broker",
    "move leaders", "move coordinators",
    "trouble",
]  # fmt: skip

WEIGHTS: dict[Kind, int] = {
    "kill task": 4,
    "stop task": 3,
    "freeze task": 3,
    "kill driver": 3,
    "freeze driver": 3,
    "kill worker": 4,
    "freeze worker": 3,
    "kill child": 5,
    "freeze child": 5,
    "kill broker": 7,
    "freeze broker": 6,
    "move leaders": 7,
    "move coordinators": 7,
    "trouble": 26,
}
BROKER_AWAY: tuple[Kind, ...] = ("kill broker", "freeze broker")
OUTAGES: tuple[Kind, ...] = (*BROKER_AWAY, "move leaders", "move coordinators", "trouble")
TRANSACTIONAL = (END_TXN, TXN_OFFSET_COMMIT, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN)
KINDS = (*TRANSACTIONAL, *TRANSACTIONAL, PRODUCE, PRODUCE, FETCH, OFFSET_COMMIT, OFFSET_FETCH)
INSTEAD: tuple[Kind, ...] = tuple(kind for kind in WEIGHTS if kind not in OUTAGES)
EFFECTS: tuple[Effect, ...] = ("delay", "cut_request", "cut_reply", "cut_reply", "late_request", "late_request", "hole")
FIRST_SECONDS = 6.0
ROUND_SECONDS, CALM_SECONDS = 60.0, 24.0
"""In the last seconds of each round, the brokers and the way to them are left alone: whoever reads the outputs then is
held up by nothing but what failed runs have left open."""
BETWEEN_SECONDS = (2.0, 5.5)
RECOVERY_SECONDS = 15.0
"""After a broker was away, until the next one is."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: when it begins, for how long it lasts, and who is concerned, as a share of those there are then."""

    at: float
    kind: Kind
    seconds: float
    whom: float
    trouble: Trouble | None = None
    everywhere: bool = False
    """Whether all proxies make the trouble, or one."""

    @property
    def is_outage(self) -> bool:
        return self.kind in OUTAGES


def draw_faults(seed: int, seconds: float) -> Iterator[Fault]:
    """Draw until so many seconds have passed; at most one broker is away at a time."""
    rnd = random.Random(f"torture faults {seed}")
    at, whole_from = FIRST_SECONDS, 0.0
    while at < seconds:
        kind = rnd.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        lasts, whom = round(rnd.uniform(2.0, 8.0), 2), rnd.randrange(10_000) / 10_000
        trouble, everywhere = draw_trouble(rnd), rnd.random() < 0.4
        if kind in BROKER_AWAY and at < whole_from:
            kind = "trouble"
        if kind in OUTAGES and at % ROUND_SECONDS > ROUND_SECONDS - CALM_SECONDS - lasts:
            kind = INSTEAD[int(whom * len(INSTEAD))]
        if kind in BROKER_AWAY:
            whole_from = at + lasts + RECOVERY_SECONDS
        if kind == "trouble":
            yield Fault(at, kind, round(lasts / 2, 2), whom, trouble, everywhere)
        else:
            yield Fault(at, kind, lasts, whom)
        at = round(at + rnd.uniform(*BETWEEN_SECONDS), 2)


def draw_trouble(rnd: random.Random) -> Trouble:
    effect = rnd.choice(EFFECTS)
    kinds = frozenset(rnd.sample(KINDS, rnd.choice((1, 2, 3, 4))))
    return Trouble(effect, frozenset() if effect == "hole" else kinds, round(rnd.uniform(0.3, 4.0), 2))
