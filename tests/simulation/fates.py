"""How often something goes wrong, and what did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

Fate: TypeAlias = Literal["crash", "lost", "reply lost", "freeze", "passing", "refused", "late"]


class Fault(NamedTuple):
    """Something that went wrong."""

    number: int
    fate: Fate
    task: str
    about: str


@dataclass(frozen=True, slots=True)
class Fates:
    """Chances for each request. All zero: a quiet cluster."""

    crash: float = 0.0
    """The process dies, before a request or after it."""
    lost: float = 0.0
    """A request never arrives, or its answer never comes back."""
    freeze: float = 0.0
    """The process stands still for a while."""
    passing: float = 0.0
    """The broker answers with an error that passes, as while a leader or a coordinator moves."""
    refused: float = 0.0
    """A batch is refused, by each batch."""
    late: float = 0.0
    """A request that is lost arrives all the same, later, by each one that is lost."""
    total: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.crash + self.lost + self.freeze + self.passing)

    def strike(self, drawn: float) -> Fate | None:
        """What befalls a request, by a number below one."""
        if drawn >= self.total:
            return None
        if drawn < self.crash:
            return "crash"
        drawn -= self.crash
        if drawn < self.lost:
            return "lost" if drawn < self.lost / 2 else "reply lost"
        return "freeze" if drawn - self.lost < self.freeze else "passing"

    def chance_of(self, fate: Fate) -> float:
        return {"refused": self.refused, "late": self.late}[fate]
