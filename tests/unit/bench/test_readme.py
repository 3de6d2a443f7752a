from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.bars import KPIPE_DAG, PEER_DAG
from bench.contestants.kpipe import AT_LEAST_ONCE, EXACTLY_ONCE
from bench.readme import BEGIN, END, README, table, update
from bench.run import LATEST, RESULTS


def summary(work: str, contestant: str, seconds: float, mode: str = "warm") -> dict[str, Any]:
    rate = 1_000_000 / seconds
    return {
        "work": work,
        "contestant": contestant,
        "mode": mode,
        "median_seconds": seconds,
        "records_per_second": rate,
    }


DOCUMENT = {
    "summaries": [
        summary("copy", EXACTLY_ONCE, 2.0),
        summary("copy", AT_LEAST_ONCE, 1.9),
        summary("copy", "Spark", 3.0),
        summary("copy", "plain", 4.0),
        summary("copy", EXACTLY_ONCE, 5.0, "cold"),
        summary("skew", EXACTLY_ONCE, 8.0),
        summary("skew", "Spark", 5.0),
        summary("skew, relaxed", EXACTLY_ONCE, 4.0),
        summary("small run", KPIPE_DAG, 4.0, "dag"),
        summary("small run", PEER_DAG, 6.0, "dag"),
    ]
}
ROWS = f"""\
| work | kpipe, exactly once | peer | its speed | factor |
| --- | --- | --- | --- | --- |
| copy, warm | 500,000/s | Spark | 333,333/s | 1.50 x |
| copy, warm | 500,000/s | plain | 250,000/s | 2.00 x |
| skew, relaxed, warm | 250,000/s | Spark | 200,000/s | 1.25 x |
| small run, dag | 4.0 s | {PEER_DAG} | 6.0 s | 1.50 x |
"""


def test_the_table_has_a_row_for_each_work_and_peer() -> None:
    assert table(DOCUMENT) == ROWS


def test_the_table_stands_between_its_marks(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}old\n{END}after\n")
    update(DOCUMENT, readme)
    assert readme.read_text() == f"before\n{BEGIN}{ROWS}{END}after\n"


def test_the_readme_has_the_table_of_the_newest_whole_run() -> None:
    newest = json.loads((RESULTS / f"{LATEST}.json").read_text())
    assert f"{BEGIN}{table(newest)}{END}" in README.read_text()
