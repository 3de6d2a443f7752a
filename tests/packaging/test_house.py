"""The house stays one in which newcomers find their room: few rooms, few modules in each, and none of them long."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import UnionType

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


FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.Module | ast.ClassDef | FUNCTIONS


def docstrings(file: Path, kinds: UnionType | type = Documented) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, Documented) and isinstance(node, kinds):
            yield from filter(None, [ast.get_docstring(node)])


def files_in(folder: Path, pattern: str) -> list[Path]:
    """Find files of a folder, but for those in hidden folders, such as the environments of the benchmark."""
    found = (file for file in folder.rglob(pattern) if file.is_file())
    return sorted(
        each for each in found if not any(part.startswith(".") for part in each.relative_to(folder).parts[:-1])
    )


def test_a_docstring_begins_with_a_verb_or_a_noun() -> None:
    found = [text for root in WRITTEN for file in files_in(root, "*.py") for text in docstrings(file)]
    assert len(found) > 1_000
    assert [text.splitlines()[0] for text in found if _QUESTION.match(text)] == []


CODE = [file for root in (*WRITTEN, CHECKOUT / "demo", CHECKOUT / "scripts") for file in files_in(root, "*.py")]
# Verbs with which no docstring of a function begins, but with which one of a class or a module may.
OTHER_VERBS = re.findall(
    r"\w+",
    """
    admits claims collects converts counts distinguishes does fits handles hands has interrupts knows maps
    owns pauses plans profiles publishes redoes redrives retries seeds tracks tries watches
    """,
)


def third_person(verb: str) -> str:
    if re.search(r"(s|x|z|ch|sh|o)$", verb):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if re.search(r"[^aeiou]y$", verb) else f"{verb}s"


def begins_with_a_verb(text: str, verbs: Collection[str]) -> bool:
    """Tell whether the first word is a verb; "Limits:" and "Counts of" are nouns."""
    first = re.match(r"(\w+)(:| of\b)?", text)
    return first is not None and first[2] is None and first[1].lower() in verbs


def test_a_docstring_of_a_class_or_a_module_begins_with_a_noun() -> None:
    verbs = {third_person(text.split()[0].lower()) for file in CODE for text in docstrings(file, FUNCTIONS)}
    assert {"reads", "looks", "puts"} <= verbs
    verbs |= {*OTHER_VERBS}
    found = [(file, text) for file in CODE for text in docstrings(file, ast.Module | ast.ClassDef)]
    assert len(found) > 500
    assert [(file.name, text.splitlines()[0]) for file, text in found if begins_with_a_verb(text, verbs)] == []


@pytest.mark.parametrize(
    ("text", "is_verb"),
    [("Reads a range.", True), ("Limits the time.", True), ("Limits: words.", False), ("Limits of a chunk.", False)],
)
def test_a_word_that_is_a_noun_and_a_verb_is_told_by_what_follows(text: str, is_verb: bool) -> None:
    assert begins_with_a_verb(text, {"reads", "limits"}) == is_verb


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
    files = [file for root in PROSE for file in ([root] if root.is_file() else files_in(root, "*"))]
    texts = {file: file.read_text() for file in files if file.suffix in TEXTS}
    assert len(texts) > 200
    assert found_in(GONE, texts) == {}


def test_pages_do_without_old_phrases() -> None:
    texts = {page: page.read_text() for page in PAGES if page.suffix in TEXTS}
    assert len(texts) > 45
    # A page may quote a message or the name of a test.
    assert found_in(GONE_FROM_PAGES, {page: _QUOTED.sub("", text) for page, text in texts.items()}) == {}


GONE_FROM_CODE = re.compile(
    r"\b(for good|anew|says so|somebody|nobody|whoever|(goes|went) on|(hangs?|hung) up on|comes? to nothing)\b",
    re.IGNORECASE,
)
# "There is no topic" names a lack; "x is no topic" names a mistake in words of our own.
IS_NO = re.compile(r"(?<!there )\bis no (?!longer\b)", re.IGNORECASE)


def test_code_names_the_actor() -> None:
    found = [(file.name, match[0]) for file in CODE for match in GONE_FROM_CODE.finditer(file.read_text())]
    assert found == []


def test_an_error_says_what_a_value_is_not() -> None:
    assert [(file.name, text) for file in CODE for text in texts(file) if IS_NO.search(text)] == []


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
