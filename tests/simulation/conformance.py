"""The same random calls to the model and to a real broker: what do they answer?

The model's classes are called by their names here: nothing is injected, and the real ones stay what they are.
"""

from __future__ import annotations

import argparse
import random
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from tests.simulation.conformance_calls import LARGEST, Names, Side
from tests.simulation.conformance_sides import Model, Real
from tests.simulation.scheduler import Simulation

Step = tuple[Any, ...]

# What only looks: a broker may need a moment until it says so, too.
LOOKS = ("held", "held_now", "ends", "read", "moment", "described", "watermarks", "so_far")
LOOK_AGAIN_SECONDS, MOST_LOOKS = 0.1, 10
MOST_PRODUCERS = 3
STEPS = 25


@dataclass(frozen=True, slots=True)
class Answer:
    """What both sides said to one call."""

    step: Step
    model: Any
    real: Any

    @property
    def is_same(self) -> bool:
        return bool(self.model == self.real)

    @property
    def reason(self) -> str | None:
        """Why they may differ, where that is known."""
        return next((reason for reason, explains in KNOWN.items() if explains(self)), None)


# The one place for what differs, with its reason. After such an answer, a sequence ends.
KNOWN: dict[str, Callable[[Answer], bool]] = {
    "a producer that is fatal raises only once in librdkafka, from whichever of its calls comes first": lambda each: (
        each.step[0] == "flush" and each.model[0] == "_FENCED" and each.real[0] == "left"
    ),
}


class Choices:
    """Draws the next call."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(f"conformance {seed}")
        self._alive: list[int] = []
        self._made = 0
        self._partitions = 2

    def next(self, number: int) -> Step:
        draw = self._random
        if not self._alive or draw.random() < 0.1:
            self._made += 1
            self._alive = [*self._alive, self._made][-MOST_PRODUCERS:]
            return ("new", self._made, draw.choice("ab"))
        kind = draw.choices(("transaction", "look", "change"), (10, 4, 1))[0]
        return getattr(self, f"_{kind}")(number)  # type: ignore[no-any-return]

    def _transaction(self, number: int) -> Step:
        draw, producer = self._random, self._random.choice(self._alive)
        partition = draw.randrange(self._partitions)
        steps: Sequence[tuple[Step, int]] = (
            (("begin", producer), 6),
            (("produce", producer, partition, b"%d" % number, number), 6),
            (("produce_keyed", producer, b"key %d" % draw.randrange(50), b"%d" % number), 2),
            (("produce", producer, partition, b"x" * LARGEST, number), 1),
            (("produce_nowhere", producer), 1),
            (("produce_elsewhere", producer), 1),
            (("flush", producer), 6),
            (("offsets", producer, partition, number, f"m{number}"), 3),
            (("offsets", producer, partition, number, ""), 1),
            (("offsets", producer, partition, number, "m" * 5_000), 1),
            (("commit", producer), 6),
            (("abort", producer), 3),
            (("end", producer), 1),
        )
        step = draw.choices([each for each, _ in steps], [weight for _, weight in steps])[0]
        if step[0] == "end":
            self._alive.remove(producer)
        return step

    def _look(self, number: int) -> Step:
        draw = self._random
        partition = draw.randrange(self._partitions)
        return draw.choice(
            (
                ("held",),
                ("held_now",),
                ("so_far",),
                ("ends",),
                ("described",),
                ("watermarks", partition),
                ("moment", draw.randrange(number + 2)),
                ("read", partition, draw.randrange(6), draw.choice(("read_committed", "read_uncommitted"))),
                ("read", partition, draw.randrange(3), "read_committed"),
            )
        )

    def _change(self, number: int) -> Step:
        draw = self._random
        partition = draw.randrange(self._partitions)
        what = draw.choice(("outside", "outside", "outside_large", "outside_nowhere", "delete", "grow", "recreate"))
        if what in ("grow", "recreate"):
            # What a client remembers of a topic that has changed is not the model's concern.
            self._alive.clear()
            self._partitions = 3 if what == "grow" else 2
            return (what,)
        return (what, partition, number if what != "delete" else draw.randrange(5))


def run(seed: int, bootstrap: str, steps: int = STEPS) -> list[Answer]:
    """Make calls until an answer differs."""
    unique = uuid.uuid4().hex[:8]
    names = Names(f"d{unique}", f"g{unique}", f"t{unique}-")
    create_topics(bootstrap, names.topic, partitions=2, config={"max.message.bytes": str(LARGEST)})
    real, model = Real(bootstrap, names), Model(names, Simulation(seed))
    choices, answers = Choices(seed), []
    try:
        for number in range(1, steps + 1):
            step = choices.next(number)
            answers.append(_compare(step, model, real))
            if not answers[-1].is_same:
                break
    finally:
        real.close()
    return answers


def _compare(step: Step, model: Side, real: Side) -> Answer:
    answer = Answer(step, model.do(*step), real.do(*step))
    for _ in range(MOST_LOOKS):
        if answer.is_same or step[0] not in LOOKS:
            break
        time.sleep(LOOK_AGAIN_SECONDS)
        answer = Answer(step, answer.model, real.do(*step))
    return answer


def told(answers: Sequence[Answer]) -> str:
    """Name the answer that differs, and those before it."""
    last = answers[-1]
    before = "\n".join(f"    {_short(each.step)}: {_short(each.model)}" for each in answers[:-1])
    return f"{_short(last.step)}\n  model: {last.model}\n  real:  {last.real}\n  after:\n{before}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 160 else f"{text[:120]} ... {text[-30:]}"


def main() -> None:
    """Compare for a while, and say what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--bootstrap", help="that of a broker that is there; otherwise one is started")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    began, calls, same, known = time.monotonic(), 0, 0, Counter[str]()
    with ExitStack() as stack:
        address = asked.bootstrap or stack.enter_context(SandboxBroker()).bootstrap_servers
        for seed in range(asked.first, asked.first + asked.count):
            answers = run(seed, address)
            calls += len(answers)
            if answers[-1].is_same:
                same += 1
            elif reason := answers[-1].reason:
                known[reason] += 1
            else:
                print(f"seed {seed}: {told(answers)}", flush=True)  # noqa: T201
            if time.monotonic() - began > asked.seconds:
                break
    print(f"{seed - asked.first + 1} sequences, {same} the same, {calls} calls, known: {dict(known)}")  # noqa: T201


if __name__ == "__main__":
    main()
