"""What happens in a schedule: drawn from its seed, and all of it can be left out again, one thing at a time."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from airflow_provider_kpipe.contract.offsets.metadata import LEAST_METADATA_BYTES
from tests.simulation.processes import RIGHT, Clock
from tests.simulation.scheduler import BEGINNING
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
    metadata_bytes: int
    """How much the broker takes beside an offset."""
    records: int
    """In the beginning."""
    clocks_disagree: bool
    """Whether each process has a clock of its own, which is wrong, and set now and then."""


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
    fates: tuple[str, ...] = ()
    """Those that are aimed; by default, any."""
    records: tuple[int, int] = (4, 24)
    begins: tuple[str, ...] = ()
    """With which steps, half of the time; apart by blanks, one of these."""
    faulty: bool = False
    """Whether records become dead letters in any case."""


RARE = {"backfill": 2, "published": 2, "reset": 3, "delete": 1, "clear": 4, "grow": 1, "retain": 1, "expire": 1}
LOOKS = tuple(("checkpoint", call) for call in ("send_offsets", "send_offsets, to the group", "commit", "committed"))
STORES = tuple(("work", call) for call in ("commit", "commit", "send_offsets, to the group", "send_offsets", "init"))
CLAIMS = (("claim", "commit"), ("claim", "init"), ("claim", "init"), ("claim", "send_offsets, to the group"))

MOODS: Mapping[str, Mood] = {
    "everything": Mood({"live": 10, **RARE, "redrive": 1, "recreate": 1, "elect": 1}, aims=LOOKS + STORES + CLAIMS),
    "overlap": Mood(
        {"live": 20, "clear": 4}, waits=0.1, relaxed=1.0, aims=STORES, records=(16, 30), begins=("live live",)
    ),
    "chain": Mood({"live": 9, "torn": 2, "clear": 1}, most=9, waits=0.3, aims=STORES + LOOKS),
    "claims": Mood(
        {"live": 10, "clear": 4},
        waits=0.15,
        relaxed=1.0,
        rates=(0.0, 0.0, 0.5),
        aims=CLAIMS * 2 + STORES,
        records=(16, 30),
        begins=("live live", "live live live", "torn live live"),
    ),
    "checkpoints": Mood({"live": 10, "clear": 4}, waits=0.3, rates=(0.0, 0.3), aims=LOOKS),
    "late": Mood(
        {"live": 10, "clear": 2}, rates=(0.0, 1.0), late=0.9, aims=STORES[:-1], fates=("late",), records=(12, 24)
    ),
    "resets": Mood(
        {"live": 10, "reset": 9, "delete": 2, "published": 1, "clear": 5, "idle": 1, "unseen": 1},
        waits=0.8,
        rates=(0.0, 0.3, 1.0),
        begins=("live reset live reset", "live reset idle unseen reset live", "live reset live clear"),
    ),
    "weeks": Mood(
        {"live": 8, "expire": 8, "clear": 9, "backfill": 1},
        waits=0.95,
        relaxed=0.8,
        rates=(0.0, 0.3),
        aims=STORES,
        records=(12, 30),
        begins=("live expire clear", "live reset live expire clear", "torn torn idle expire live"),
    ),
    "topics": Mood(
        {"live": 10, "grow": 2, "retain": 3, "elect": 2, "recreate": 3, "clear": 3},
        waits=0.8,
        rates=(0.0, 0.3, 1.0),
        begins=("live recreate live clear", "live grow live", "live retain live clear", "live recreate clear live"),
    ),
    "windows": Mood(
        {"live": 8, "backfill": 4, "published": 6, "clear": 5, "reset": 2},
        waits=0.5,
        relaxed=0.8,
        rates=(0.0, 0.3, 1.0),
        aims=LOOKS + STORES,
        records=(12, 30),
        begins=("published live", "live published clear", "torn backfill live", "torn published live"),
    ),
    "letters": Mood(
        {"live": 8, "redrive": 6, "clear": 2, "backfill": 1},
        waits=0.3,
        faulty=True,
        aims=STORES,
        records=(12, 30),
        begins=("live redrive redrive redrive",),
    ),
}
MOOD_WEIGHTS = {
    "everything": 5,
    "overlap": 4,
    "chain": 3,
    "claims": 4,
    "checkpoints": 3,
    "late": 2,
    "resets": 5,
    "weeks": 2,
    "topics": 2,
    "windows": 2,
    "letters": 2,
}
AIMED = ("freeze", "freeze", "freeze", "crash", "crash after", "lost", "late", "reply lost")

DISAGREE = 0.15
"""In how many schedules no two hosts have the same time."""
AHEAD_SECONDS = (0.0, 0.5, -0.5, 20.0, -20.0, 3_600.0, -3_600.0)
LONGEST_BEFORE_SET = 120.0

LONG = 0.2
"""How many schedules are long: most faults show in three steps, and a short one leaves time for others."""


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

    def clock_of(self, process: str) -> Clock:
        """Return the clock of the host that a process is on."""
        if not self.setup.clocks_disagree:
            return RIGHT
        rnd = self.random("clock", process)
        ahead, then_ahead = rnd.choice(AHEAD_SECONDS), rnd.choice(AHEAD_SECONDS)
        return Clock(ahead, rnd.uniform(0, LONGEST_BEFORE_SET) + BEGINNING, then_ahead)


def draw(seed: int) -> Script:
    """Decide all that happens in the schedule of a seed."""
    rnd = random.Random(f"script {seed}")
    name = rnd.choices(list(MOOD_WEIGHTS), list(MOOD_WEIGHTS.values()))[0]
    mood = MOODS[name]
    many = rnd.randint(2, mood.most) if rnd.random() < LONG else rnd.randint(1, 3)
    begins = rnd.choice(mood.begins).split() if mood.begins and rnd.random() < 0.5 else []
    kinds = begins or rnd.choices(list(mood.steps), list(mood.steps.values()), k=many)
    steps = tuple(_step(rnd, number, kind, mood) for number, kind in enumerate(kinds))
    rate = rnd.choice(mood.rates)
    rates = Rates(crash=0.005, lost=0.008, freeze=0.006, passing=0.004, refused=0.02, late=mood.late).times(rate)
    aims = tuple(_aim(rnd, mood) for _ in range(rnd.choice((0, 1, 2, 4)))) if mood.aims else ()
    disagree = random.Random(f"clocks of {seed}").random() < DISAGREE
    return Script(seed, name, _setup(rnd, mood, disagree), steps, rates, aims)


def _step(rnd: random.Random, number: int, kind: str, mood: Mood) -> Step:
    return Step(number, kind, rnd.random() < mood.waits, rnd.choice((0.02, 0.1, 1.0, 5.0)))


def _aim(rnd: random.Random, mood: Mood) -> Aim:
    kind, call = rnd.choice(mood.aims)
    seconds = rnd.choice((0.5, 2.0, 20.0, 70.0, 200.0))
    return Aim(kind, call, rnd.choice((0, 0, 1, 1, 2, 3)), rnd.randrange(4), rnd.choice(mood.fates or AIMED), seconds)


def _setup(rnd: random.Random, mood: Mood, clocks_disagree: bool) -> Setup:
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
        metadata_bytes=rnd.choice((4096, 4096, 4096, LEAST_METADATA_BYTES)),
        records=rnd.randint(*mood.records),
        clocks_disagree=clocks_disagree,
    )
