"""The house stays one in which newcomers find their room: few rooms, few modules in each, and none of them long."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
ENGINE = CHECKOUT / "spark_jobs" / "kpipe_engine"
PACKAGE = CHECKOUT / "airflow_provider_kpipe"
MOST_MODULES, MOST_ROOMS, MOST_LINES = 12, 8, 300
MOST_BESIDE_ROOMS = 10
# It is to leave the package.
OVERFULL = {PACKAGE / "sandbox"}


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
    assert len(modules(room)) <= MOST_MODULES or room in OVERFULL
    assert ast.get_docstring(ast.parse((room / "__init__.py").read_text()))


def test_no_module_is_long() -> None:
    files = [file for root in (PACKAGE, ENGINE.parent) for file in root.rglob("*.py")]
    assert len(files) > 150
    assert [file for file in files if len(file.read_text().splitlines()) > MOST_LINES] == []
