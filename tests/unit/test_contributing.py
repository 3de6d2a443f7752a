"""The page for contributors leads to rooms that are there."""

from __future__ import annotations

import ast

import pytest
from docs_kit import ROOT, rows

PAGE = ROOT / "docs" / "contributing" / "index.md"
CHANGES = [(change, place.strip("`")) for change, place in rows(PAGE.read_text()) if "`" in place]
ROOMS = [(change, place) for change, place in CHANGES if place != "docs/"]
FEWEST_CHANGES = 17


def test_it_has_the_changes_that_people_make() -> None:
    assert len(ROOMS) >= FEWEST_CHANGES
    assert [place for _, place in CHANGES if not (ROOT / place).exists()] == []


@pytest.mark.parametrize(("change", "place"), ROOMS, ids=[place for _, place in ROOMS])
def test_a_change_has_a_room_that_says_what_lives_there(change: str, place: str) -> None:
    found = ROOT / place
    module = found / "__init__.py" if found.is_dir() else found
    assert ast.get_docstring(ast.parse(module.read_text())), change
