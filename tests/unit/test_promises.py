"""The pages about guarantees and cases name tests that are there, and the newest figures as they are."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest
from docs_kit import OPERATIONS, README, ROOT, links, rows

from tests.promises.properties import PROPERTIES
from tests.results.render import BEGIN, END, NONE_YET, TOOLS, rendered, table

GUARANTEES, CASES, SECURITY = ROOT / "docs" / "guarantees.md", OPERATIONS / "cases.md", ROOT / "SECURITY.md"
PAGES = {page.name: page for page in (GUARANTEES, CASES, SECURITY)}
FEWEST_CASES = 50
_NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def named(text: str) -> list[tuple[str, str]]:
    """File and name of each test that a text names."""
    return _NAMED.findall(text)


@cache
def names_in(file: Path) -> frozenset[str]:
    found = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef))
    return frozenset(node.name for node in found if node.name.startswith("test_"))


def missing(text: str) -> list[str]:
    """Those that are not there."""
    return [
        f"{file}::{name}"
        for file, name in named(text)
        if not (ROOT / file).is_file() or (name and name not in names_in(ROOT / file))
    ]


@pytest.mark.parametrize("name", PAGES)
def test_every_test_that_a_page_names_is_there(name: str) -> None:
    assert missing(PAGES[name].read_text()) == []


def test_one_that_is_not_there_is_found() -> None:
    gone = "tests/unit/test_promises.py::test_that_nobody_wrote"
    assert missing(f"`{gone}`, `tests/unit/test_gone.py::test_it`") == [gone, "tests/unit/test_gone.py::test_it"]
    assert missing("`tests/unit/test_promises.py::test_one_that_is_not_there_is_found`") == []


def test_every_property_is_there_and_named_by_tests() -> None:
    sections = dict(re.findall(r"^### (I\d+ [^\n]+)\n(.*?)(?=^##)", GUARANTEES.read_text(), re.MULTILINE | re.DOTALL))
    assert list(sections) == [f"{each.name} {each.title}" for each in PROPERTIES]
    assert [title for title, text in sections.items() if len(named(text)) < 2] == []


def test_every_case_has_an_outcome_a_remedy_and_a_test() -> None:
    cases = rows(CASES.read_text())
    assert len(cases) >= FEWEST_CASES
    assert [cells for cells in cases if len(cells) != 4 or not all(cells)] == []
    assert [cells[0] for cells in cases if not named(cells[3])] == []


def test_the_pages_are_found() -> None:
    for page in (README, ROOT / "docs" / "architecture.md"):
        assert GUARANTEES.resolve() in {found.resolve() for found, _ in links(page)}, page


def test_the_figures_on_the_page_are_the_newest() -> None:
    text = GUARANTEES.read_text()
    assert text == rendered(text), "python -m tests.results.render"
    # Whoever types one in by hand types it there.
    without = text.split(BEGIN)[0] + text.split(END)[1]
    assert re.findall(r"\b[Ss]eeds? (?:was |is )?\d+", without) == []


def test_kept_figures_are_shown_and_missing_ones_are_reported(tmp_path: Path) -> None:
    kept = {
        "commit": "abc",
        "seeds": [7, 8],
        "faults": {"kill broker": 1_200, "none": 0},
        "anomalies": [],
        "per_role": {"jvm": {"slope": 1}},
        "schedules_per_second": 12.5,
    }
    (tmp_path / "torture.json").write_text(json.dumps(kept))
    shown = table(tmp_path)
    assert rows(shown) == [
        ["commit", "abc"],
        ["seeds", "7, 8"],
        ["faults", "kill broker 1,200, none 0"],
        ["anomalies", "none"],
        ["schedules per second", "12.5"],
    ]
    assert shown.count(NONE_YET) == len(TOOLS) - 1


def test_several_runs_of_a_tool_stand_side_by_side(tmp_path: Path) -> None:
    for seed, more in ((7, {"faults": 150}), (11, {"outages": 2})):
        (tmp_path / f"torture-{seed:02}.json").write_text(json.dumps({"seed": seed, **more}))
    assert rows(table(tmp_path)) == [["seed", "7", "11"], ["faults", "150", ""], ["outages", "", "2"]]
