"""What happens in a schedule: drawn from its seed, and all of it can be left out again, one thing at a time."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tests.simulation.workload.fates import Aim, Rates

Handler = Literal["copy", "records", "threads", "async"]

HANDLERS: Mapping[Handler, tuple[tuple[str, ...], int]] = {
    "copy": ((), 1),
    "records": (("interleaving_kit:sort_out",), 1),
    "threads": (("interleaving_kit:sort_out",), 3),
    "async": (("interleaving_kit:sort_out_async",), 3),
}


@dataclass(frozen=True, slots=True)
class Setup:
    """Which pipeline it is, over which topics."""

    handler: Handler
    exactly_once: bool
    relaxed: bool
    drains: bool
    partitions: int
    letters: int
    """Partitions of the dead-letter topic."""
    chunk_records: int
    most_writers: int
    """Partitions whose numbers differ by a multiple of it share a worker."""
    shortest_piece: int
    most_pieces: int
    listens: bool
    """Whether workers ask Kafka if somebody wants them to stop."""
    tells: bool
    """Whether it is told what happens to each partition."""
    ends_open: bool
    """Whether attempts and checkpoints end transactions that are open."""
    records: int
    """In the beginning."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that somebody does; the choices within it are drawn from its own number."""

    number: int
    kind: str
    waits: bool
    """Whether the next one comes when it is over."""
    pause: float
    """Otherwise, how long after it."""


@dataclass(frozen=True, slots=True)
class Mood:
    """What a schedule is mostly about."""

    steps: Mapping[str, int]
    most: int = 7
    waits: float = 0.6
    relaxed: float = 0.6
    rates: tuple[float, ...] = (0.0, 0.3, 1.0, 2.0)
    late: float = 0.1
    aims: tuple[tuple[str, str], ...] = ()
    faulty: bool = False
    """Whether records become dead letters in any case."""


RARE = {"backfill": 2, "published": 2, "reset": 3, "delete": 1, "clear": 4, "grow": 1, "retain": 1, "expire": 1}
CHECKPOINT_LOOKS = (("checkpoint", "send_offsets"), ("checkpoint", "commit_transaction"), ("checkpoint", "committed"))
STORES = (("work", "commit_transaction"), ("work", "send_offsets"), ("claim", "commit_transaction"), ("claim", "init"))

MOODS: Mapping[str, Mood] = {
    "everything": Mood({"live": 10, **RARE, "redrive": 1, "recreate": 1, "elect": 1}, aims=CHECKPOINT_LOOKS + STORES),
    "overlap": Mood({"live": 20, "clear": 3}, waits=0.1, relaxed=1.0, aims=STORES),
    "chain": Mood({"live": 10, "clear": 1}, most=10, waits=0.3, aims=STORES + CHECKPOINT_LOOKS),
    "checkpoints": Mood({"live": 10, "clear": 4}, waits=0.3, rates=(0.0, 0.3), aims=CHECKPOINT_LOOKS * 2),
    "late": Mood({"live": 10, "clear": 2}, rates=(0.3, 1.0), late=0.9, aims=STORES),
    "resets": Mood({"live": 8, "reset": 8, "delete": 2, "published": 2, "clear": 4, "expire": 1}, waits=0.5),
    "letters": Mood({"live": 8, "redrive": 6, "clear": 2, "backfill": 1}, faulty=True, aims=STORES),
}
LONG = 0.3
"""How many schedules are long: most faults show in three steps, and a short one leaves time for others."""
MOOD_WEIGHTS = {"everything": 4, "overlap": 3, "chain": 2, "checkpoints": 3, "late": 2, "resets": 3, "letters": 2}


@dataclass(frozen=True, slots=True)
class Script:
    """All that a seed decides before anything runs."""

    seed: int
    mood: str
    setup: Setup
    steps: tuple[Step, ...]
    rates: Rates
    aims: tuple[Aim, ...]
    schedule: int = 0
    """Another one has the same calls come in another order."""

    def random(self, *names: object) -> random.Random:
        """Chance of its own for each who asks: what is left out elsewhere changes nothing of it."""
        return random.Random(" ".join(map(str, (self.seed, *names))))


def draw(seed: int) -> Script:
    rnd = random.Random(f"script {seed}")
    name = rnd.choices(list(MOOD_WEIGHTS), list(MOOD_WEIGHTS.values()))[0]
    mood = MOODS[name]
    many = rnd.randint(2, mood.most) if rnd.random() < LONG else rnd.randint(1, 3)
    steps = tuple(_step(rnd, number, mood) for number in range(many))
    rate = rnd.choice(mood.rates)
    rates = Rates(crash=0.005, lost=0.008, freeze=0.006, passing=0.004, refused=0.02, late=mood.late).times(rate)
    aims = tuple(_aim(rnd, *rnd.choice(mood.aims)) for _ in range(rnd.choice((0, 1, 2, 4)))) if mood.aims else ()
    return Script(seed, name, _setup(rnd, mood), steps, rates, aims)


def _step(rnd: random.Random, number: int, mood: Mood) -> Step:
    kind = rnd.choices(list(mood.steps), list(mood.steps.values()))[0]
    return Step(number, kind, rnd.random() < mood.waits, rnd.choice((0.02, 0.1, 1.0, 5.0)))


def _aim(rnd: random.Random, kind: str, call: str) -> Aim:
    fate = rnd.choice(("freeze", "freeze", "freeze", "crash", "crash after", "lost", "reply lost"))
    return Aim(
        kind, call, rnd.choice((0, 0, 1, 2, 3)), rnd.randrange(4), fate, rnd.choice((0.5, 2.0, 20.0, 70.0, 200.0))
    )


def _setup(rnd: random.Random, mood: Mood) -> Setup:
    handler: Handler = (
        rnd.choice(("records", "records", "threads"))
        if mood.faulty
        else rnd.choice(("copy", "copy", "records", "records", "threads", "async"))
    )
    relaxed = HANDLERS[handler][1] > 1 or rnd.random() < mood.relaxed
    return Setup(
        handler=handler,
        exactly_once=rnd.random() < 0.85,
        relaxed=relaxed,
        drains=rnd.random() < 0.5,
        partitions=rnd.choice((1, 1, 1, 1, 2, 2, 3)),
        letters=rnd.choice((1, 1, 2)),
        chunk_records=rnd.choice((3, 5, 50)),
        most_writers=rnd.choice((64, 64, 1)),
        shortest_piece=rnd.choice((6, 9)),
        most_pieces=rnd.choice((3, 5)),
        listens=rnd.random() < 0.08,
        tells=rnd.random() < 0.15,
        ends_open=rnd.random() < 0.6,
        records=rnd.randint(4, 24),
    )
