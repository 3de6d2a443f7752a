"""What many schedules have come to, in numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.promises.properties import PROPERTIES


@dataclass
class Figures:
    """Sums over schedules; those of several processes add up."""

    schedules: int = 0
    seconds: float = 0.0
    """Of the processor."""
    calls: int = 0
    fates: Counter[str] = field(default_factory=Counter)
    steps: Counter[str] = field(default_factory=Counter)
    anomalies: Counter[str] = field(default_factory=Counter)
    """Schedules by the promise they break."""
    seeds: list[int] = field(default_factory=list)
    """Those that break one."""

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.schedules + other.schedules,
            self.seconds + other.seconds,
            self.calls + other.calls,
            self.fates + other.fates,
            self.steps + other.steps,
            self.anomalies + other.anomalies,
            sorted(self.seeds + other.seeds),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "schedules": self.schedules,
            "schedules_per_second_and_core": round(self.schedules / self.seconds, 1) if self.seconds else 0.0,
            "calls": self.calls,
            "crashes": self.fates["crash"] + self.fates["crash after"],
            "faults": dict(sorted(self.fates.items())),
            "steps": dict(sorted(self.steps.items())),
            "anomalies": {each.name: self.anomalies[each.name] for each in PROPERTIES},
            "seeds": self.seeds,
        }

    def told(self) -> str:
        shown = self.to_json()
        lines = [
            f"{shown['schedules']} schedules, {shown['schedules_per_second_and_core']} a second and core, "
            f"{shown['calls']} calls, {shown['crashes']} crashes",
            "faults: " + ", ".join(f"{kind} {number}" for kind, number in shown["faults"].items()),
            "steps: " + ", ".join(f"{kind.lower()} {number}" for kind, number in shown["steps"].items()),
            "anomalies: " + ", ".join(f"{each.name} {each.title} {self.anomalies[each.name]}" for each in PROPERTIES),
        ]
        if self.seeds:
            lines.append("replay with SEED=n make simulate: " + ", ".join(map(str, self.seeds[:20])))
        return "\n".join(lines)
