"""Where something can be planted, and how a record is changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.torture.checker.dump import Row
from tests.torture.proof.kept import Kept

Plant = Callable[[Kept], None]
EXACTLY = {"delivery": "exactly_once", "tells_run": True, "ordered": True}


def first_live_output(kept: Kept, **like: Any) -> tuple[str, int]:
    """Topic and index of an output in the midst of the topic, of a record that has only this one."""
    declared = kept.pipeline(**(like or EXACTLY))
    topic = declared["destination"]
    live = {each["run"] for each in kept.of("planned", pipeline=declared["pipeline"], kind="live")}
    keys = [row.key for row in kept.rows[topic]]
    return topic, kept.index(
        topic, lambda row: keys.count(row.key) == 1 and (not declared["tells_run"] or run_of(row) in live)
    )


def run_of(row: Row) -> str | None:
    return row.header("torture-run")


def letter(kept: Kept) -> tuple[str, int]:
    declared = kept.pipeline(**EXACTLY)
    return declared["dead_letter"], kept.index(declared["dead_letter"], lambda row: True)


def drop(kept: Kept, topic: str, at: int) -> None:
    del kept.rows[topic][at]


def again(kept: Kept, topic: str, at: int, **changed: Any) -> None:
    """At the end of its partition."""
    row = kept.rows[topic][at]
    end = kept.cluster.ends[topic][row.partition].high
    last = max(index for index, each in enumerate(kept.rows[topic]) if each.partition == row.partition)
    kept.rows[topic].insert(last + 1, row._replace(offset=end, **changed))


def change(kept: Kept, topic: str, at: int, **changed: Any) -> None:
    kept.rows[topic][at] = kept.rows[topic][at]._replace(**changed)


def with_header(row: Row, name: str, value: str | None) -> list[tuple[str, str | None]]:
    return [(each, value if each == name else old) for each, old in row.headers]
