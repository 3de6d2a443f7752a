"""The house stays one in which newcomers find their room: few rooms, few modules in each, and none of them long."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
ENGINE = CHECKOUT / "spark_jobs" / "kpipe_engine"
PACKAGE = CHECKOUT / "airflow_provider_kpipe"
MOST_MODULES, MOST_ROOMS, MOST_LINES = 12, 8, 300
MOST_BESIDE_ROOMS = 10


def modules(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.glob("*.py")) if file.name != "__init__.py"]


def rooms() -> list[Path]:
    return sorted({file.parent for root in (PACKAGE, ENGINE) for file in root.rglob("__init__.py")} - {PACKAGE, ENGINE})


def test_the_engine_has_few_rooms_and_little_beside_them() -> None:
    found = [folder for folder in ENGINE.iterdir() if (folder / "__init__.py").is_file()]
    assert len(found) <= MOST_ROOMS
    assert len([*ENGINE.glob("*.py")]) <= MOST_BESIDE_ROOMS


@pytest.mark.parametrize("room", rooms(), ids=lambda room: str(room.relative_to(CHECKOUT)))
def test_a_room_has_few_modules_and_says_what_lives_there(room: Path) -> None:
    assert len(modules(room)) <= MOST_MODULES
    assert ast.get_docstring(ast.parse((room / "__init__.py").read_text()))


def test_no_module_is_long() -> None:
    files = [file for root in (PACKAGE, ENGINE.parent) for file in root.rglob("*.py")]
    assert len(files) > 150
    assert [file for file in files if len(file.read_text().splitlines()) > MOST_LINES] == []


WRITTEN = [CHECKOUT / name for name in ("airflow_provider_kpipe", "spark_jobs", "dags", "bench")]
_QUESTION = re.compile(r"(What|Where|Whether|Which|Who|Whose|How far|That|When)\b")


def docstrings(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from filter(None, [ast.get_docstring(node)])


def test_a_docstring_begins_with_a_verb_or_a_noun() -> None:
    found = [text for root in WRITTEN for file in sorted(root.rglob("*.py")) for text in docstrings(file)]
    assert len(found) > 1_000
    assert [text.splitlines()[0] for text in found if _QUESTION.match(text)] == []


TEXTS = (".py", ".md", ".yml", ".yaml")
PROSE = [*WRITTEN, *(CHECKOUT / name for name in ("docs", "docker", "demo", ".github")), *CHECKOUT.glob("*.md")]
GONE = re.compile(r"\b(made anew|(comes?|came) to nothing|no UTF-8|mend(s|ed|ing)?)\b", re.IGNORECASE)
PAGES = [*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md"), *(CHECKOUT / ".github").rglob("*.*")]
GONE_FROM_PAGES = re.compile(r"\b(for good|anew|says so|whoever)\b", re.IGNORECASE)
_QUOTED = re.compile(r"`[^`\n]+`")


def found_in(pattern: re.Pattern[str], texts: Mapping[Path, str]) -> dict[str, str]:
    """Return the first match in each text."""
    return {str(file): found[0] for file, text in texts.items() if (found := pattern.search(text))}


def test_words_that_nobody_else_uses_stay_away() -> None:
    files = [file for root in PROSE for file in ([root] if root.is_file() else root.rglob("*")) if file.is_file()]
    texts = {file: file.read_text() for file in files if file.suffix in TEXTS}
    assert len(texts) > 200
    assert found_in(GONE, texts) == {}


def test_pages_do_without_old_phrases() -> None:
    texts = {page: page.read_text() for page in PAGES if page.suffix in TEXTS}
    assert len(texts) > 45
    # A page may quote a message or the name of a test.
    assert found_in(GONE_FROM_PAGES, {page: _QUOTED.sub("", text) for page, text in texts.items()}) == {}


def texts(file: Path) -> Iterator[str]:
    """All texts of a module but its docstrings, which nobody sees at run time."""
    tree = ast.parse(file.read_text())
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value


def test_no_message_names_a_page_that_is_in_the_checkout_only() -> None:
    files = [file for root in (PACKAGE, ENGINE.parent) for file in sorted(root.rglob("*.py"))]
    found = {(file.name, text) for file in files for text in texts(file) if re.search(r"\bdocs/|\.md\b", text)}
    assert found == set()
