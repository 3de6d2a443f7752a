"""Writes the newest figures of torture, simulation and soak into the page about guarantees.

`python -m tests.results.render`, once a tool has left its file beside this one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent
PAGE = RESULTS.parents[1] / "docs" / "guarantees.md"
BEGIN, END = "<!-- by tests.results.render -->\n", "<!-- end of the generated table -->\n"
TOOLS = ("torture", "simulation", "soak")
NONE_YET = "There are none yet: nobody has kept any."
# A figure of figures of figures is for readers of the file.
DEEPEST = 2
MOST_SHOWN = 20
MOST_IN_A_CELL = 4
# A seed is copied into a command.
SEEDS = ("seed", "seeds", "first_seed")


def table(folder: Path = RESULTS) -> str:
    """A row for each figure of each tool that has left some, and a column for each of its runs."""
    lines: list[str] = []
    for tool in TOOLS:
        runs = [dict(_figures(json.loads(each.read_text()))) for each in sorted(folder.glob(f"{tool}*.json"))]
        lines += ["", f"### make {'simulate' if tool == 'simulation' else tool}", ""]
        if not runs:
            lines.append(NONE_YET)
            continue
        lines += ["| figure |" + " |" * len(runs), "|---|" + "---|" * len(runs)]
        names = dict.fromkeys(name for each in runs for name in each)
        lines += [f"| {name} | {' | '.join(each.get(name, '') for each in runs)} |" for name in names]
    return "\n".join([*lines, "", ""])


def render(page: Path = PAGE, folder: Path = RESULTS) -> None:
    """Put the table between its marks."""
    page.write_text(rendered(page.read_text(), folder))


def rendered(text: str, folder: Path = RESULTS) -> str:
    before, mark, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (mark and end):
        raise ValueError(f"the page has no place for figures: put {BEGIN!r} and {END!r} where they belong")
    return f"{before}{BEGIN}{table(folder)}{END}{after}"


def _figures(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in document.items():
        if name in SEEDS:
            value = [str(each) for each in ([value] if isinstance(value, int) else value)]
        shown = _shown(value, DEEPEST)
        if shown is not None and isinstance(value, Mapping) and len(value) > MOST_IN_A_CELL:
            yield from ((f"{_words(name)}: {_words(part)}", str(_shown(each, 1))) for part, each in value.items())
        elif shown is not None:
            yield _words(name), shown


def _words(name: object) -> str:
    return str(name).replace("_", " ")


def _shown(value: Any, deep: int) -> str | None:
    """None for what is too much to be shown."""
    if isinstance(value, Mapping):
        parts = [(name, _shown(each, deep - 1)) for name, each in value.items()] if deep > 1 else []
        if not value:
            return "none"
        named = [f"{_words(name)} {each}" for name, each in parts if each is not None]
        return ", ".join(named) if named and len(named) == len(value) else None
    if isinstance(value, list):
        told = [_shown(each, deep - 1) for each in value[:MOST_SHOWN]] if deep > 1 else []
        more = f" and {len(value) - MOST_SHOWN} more" if len(value) > MOST_SHOWN else ""
        if not value:
            return "none"
        return ", ".join(each for each in told if each) + more if all(told) and told else None
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"{value:,}"
    return " ".join(str(value).split()).replace("|", "\\|")


if __name__ == "__main__":
    render()
