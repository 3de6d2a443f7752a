"""The pages that users read, and what is in them: blocks of Python, links, tables."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from airflow_provider_kpipe.operators.plan import KpipePlanOperator
from airflow_provider_kpipe.task_group import kpipe_task_group

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
HOME = ROOT / "docs" / "index.md"
QUICKSTART = ROOT / "docs" / "quickstart.md"
GUIDE = ROOT / "docs" / "guide"
OPERATIONS = ROOT / "docs" / "operations"
REFERENCE = ROOT / "docs" / "reference.md"
_FOLDERS = (GUIDE, OPERATIONS)
_FOUND = (page for folder in _FOLDERS for page in sorted(folder.glob("*.md")))
PAGES = {str(page.relative_to(ROOT)): page for page in (README, HOME, QUICKSTART, *_FOUND, REFERENCE)}
_OURS = [folder for folder in ROOT.iterdir() if folder.is_dir() and not folder.name.startswith(".")]
_TEXTS = (*ROOT.glob("*.md"), *(page for folder in _OURS for page in folder.rglob("*.md")))
# Also those for whoever works on kpipe; what lies in a hidden folder is somebody else's.
MARKDOWN = {name: page for page in sorted(_TEXTS) if "/." not in (name := str(page.relative_to(ROOT)))}

_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_VARIOUS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def python_blocks(page: Path) -> list[str]:
    return [textwrap.dedent(text) for language, text in _BLOCK.findall(page.read_text()) if language == "python"]


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return _BLOCK.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """Where a link into the page may lead to."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """File and anchor of each link that stays in the house."""
    for link in re.findall(r"\]\(([^)]+)\)", prose(page)):
        if "://" not in link:
            path, _, anchor = link.partition("#")
            yield (page.parent / path if path else page), anchor


def sections(page: Path) -> dict[str, str]:
    """The text below each heading of the third order."""
    found = re.split(r"^### (.*)$", page.read_text(), flags=re.MULTILINE)
    return {
        name.strip("`"): re.split(r"^#+ ", text, flags=re.MULTILINE)[0]
        for name, text in zip(found[1::2], found[2::2], strict=True)
    }


def rows(text: str) -> list[list[str]]:
    """The cells of all tables in a text, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    heads = {at - 1 for at, line in enumerate(lines) if set(line) <= set("|- ")}
    tables = [line for at, line in enumerate(lines) if at not in heads and at - 1 not in heads]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in tables]


def own_arguments(called: Callable[..., Any]) -> dict[str, Any]:
    """What a function or a class of ours takes by name, with the defaults, but not what Airflow adds to it."""
    if not inspect.isclass(called):
        return _named(called)
    ours = [each for each in reversed(called.__mro__) if each.__module__.startswith("airflow_provider_kpipe.")]
    return {name: default for each in ours for name, default in _named(_constructor(each)).items()}


def all_arguments(called: Callable[..., Any]) -> set[str]:
    """What a function or a class takes by name: also what it hands on."""
    if called is kpipe_task_group:
        return {*_named(called), *all_arguments(KpipePlanOperator)}
    if inspect.isclass(called):
        return {name for each in called.__mro__ for name in _named(_constructor(each))}
    return {*_named(called)}


def _constructor(kind: Any) -> Callable[..., Any]:
    found: Callable[..., Any] = kind.__init__
    return found


def _named(called: Callable[..., Any]) -> dict[str, Any]:
    taken = inspect.signature(called).parameters.values()
    return {each.name: each.default for each in taken if each.kind not in _VARIOUS and each.name != "self"}
