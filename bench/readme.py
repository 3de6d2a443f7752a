"""The table of the project's README, from the newest whole run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.bars import KPIPE_DAG
from bench.contestants.java_tools import JAVA_CONSUMER, JAVA_PRODUCER
from bench.contestants.kpipe import EXACTLY_ONCE
from bench.works import WORKS

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- by make bench -->\n", "<!-- end of the generated table -->\n"
OURS = (EXACTLY_ONCE, KPIPE_DAG)
# These do not do the work: each shows the limit in one direction.
LIMITS = (JAVA_PRODUCER, JAVA_CONSUMER)


def update(document: Mapping[str, Any], readme: Path = README) -> None:
    """Put the table between its marks."""
    before, _, rest = readme.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    readme.write_text(f"{before}{BEGIN}{table(document)}{END}{after}")


def table(document: Mapping[str, Any]) -> str:
    """Format a row for each work and peer: records a second, and kpipe's speed as a multiple of the peer's."""
    rows = ["| work | kpipe, exactly once | peer | its speed | factor |", "| --- | --- | --- | --- | --- |"]
    summaries, order = document["summaries"], list(WORKS)
    works = dict.fromkeys((each["work"], each["mode"]) for each in summaries)
    # Works outside the heats come last.
    for work, mode in sorted(works, key=lambda each: order.index(each[0]) if each[0] in order else len(order)):
        done = {each["contestant"]: each for each in summaries if (each["work"], each["mode"]) == (work, mode)}
        others = [each for name, each in done.items() if not name.startswith("kpipe") and name not in LIMITS]
        # If the others give up the order within a partition, so does kpipe.
        named = f"{work}, relaxed" if (f"{work}, relaxed", mode) in works else work
        own = {each["contestant"]: each for each in summaries if (each["work"], each["mode"]) == (named, mode)}
        ours = next((own[name] for name in OURS if name in own), None)
        if ours:
            rows += [f"| {named}, {mode} | {_rate(ours)} | {_compared(each, ours)} |" for each in others]
    return "".join(f"{row}\n" for row in rows)


def _compared(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    factor = theirs["median_seconds"] / ours["median_seconds"]
    return f"{theirs['contestant']} | {_rate(theirs)} | {factor:.2f} x"


def _rate(summary: Mapping[str, Any]) -> str:
    """Format the rate; for a run inside Airflow, the time, as only that is meaningful."""
    if summary["mode"] == "dag":
        return f"{summary['median_seconds']:.1f} s"
    return f"{summary['records_per_second']:,.0f}/s"
