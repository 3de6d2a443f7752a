"""The checker finds each kind of anomaly by its name, and says nothing of a torture that went well."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.torture.checker.anomalies import KINDS, by_kind
from tests.torture.checker.events import EVENTS, read_history
from tests.torture.checker.verdict import check
from tests.torture.history import History
from tests.torture.proof.kept import Kept
from tests.torture.proof.places import Plant, again, drop
from tests.torture.proof.planted import PLANTED
from tests.torture.proof.staged import stage

CHECKER = Path(__file__).parent / "checker"
# A checker that knows how the product thinks overlooks what the product does.
ALLOWED = ("confluent_kafka", "tests.torture.checker")


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("well")
    stage(folder)
    return folder


def test_it_says_nothing_of_a_torture_that_went_well(well: Path) -> None:
    assert check(well).anomalies == ()


def test_a_folder_that_is_put_elsewhere_says_the_same(well: Path, tmp_path: Path) -> None:
    Kept.read(well).write(tmp_path)
    assert check(tmp_path) == check(well)


@pytest.mark.parametrize(("plant", "kind"), PLANTED.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_it_finds_what_is_planted(well: Path, tmp_path: Path, plant: Plant, kind: str) -> None:
    kept = Kept.read(well)
    plant(kept)
    kept.write(tmp_path)
    found = check(tmp_path)
    assert kind in by_kind(found.anomalies), found.anomalies


@pytest.mark.parametrize("change", [drop, again])
def test_it_misses_no_record_that_is_gone_or_there_twice(
    well: Path, tmp_path: Path, change: Callable[[Kept, str, int], None]
) -> None:
    """A prime number of steps comes to every kind of run and record."""
    kept = Kept.read(well)
    once = kept.of("declared", delivery="exactly_once")
    places = [
        (topic, at)
        for declared in once
        for topic in (declared["destination"], declared["dead_letter"])
        for at in range(0, len(kept.rows[topic]), 23)
    ]
    unnoticed = []
    for number, (topic, at) in enumerate(places):
        changed = replace(kept, rows={name: list(rows) for name, rows in kept.rows.items()})
        change(changed, topic, at)
        changed.write(tmp_path / str(number))
        if not check(tmp_path / str(number)).anomalies:
            unnoticed.append((topic, at))
    assert len(places) > 10
    assert unnoticed == []


def test_each_kind_of_anomaly_is_planted() -> None:
    assert set(PLANTED.values()) == set(KINDS)


def test_it_shares_nothing_with_the_product() -> None:
    strangers = [
        (file.name, name)
        for file in sorted(CHECKER.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        for name in imported(node)
        if name.partition(".")[0] not in sys.stdlib_module_names
        and not any(name == each or name.startswith(f"{each}.") for each in ALLOWED)
    ]
    assert strangers == []


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or "."]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("__import__", "importlib.import_module"):
        return [ast.unparse(node)]
    return []


@pytest.mark.parametrize("name", EVENTS)
def test_it_knows_every_event_that_is_written(name: str) -> None:
    written = set(inspect.signature(getattr(History, name)).parameters) - {"self"}
    assert written == set(inspect.signature(EVENTS[name]).parameters) - {"index", "at"}


def test_no_event_is_written_that_it_does_not_know(tmp_path: Path) -> None:
    methods = {name for name, _ in inspect.getmembers(History, inspect.isfunction) if not name.startswith("_")}
    assert methods - {"close"} == EVENTS.keys()
    history = History(tmp_path / "history.jsonl")
    history.group_reset(group="g", topic="t", offsets={0: None, 1: 5}, began=1.0, how="by hand")
    history.close()
    (event,) = read_history(tmp_path / "history.jsonl")
    assert getattr(event, "offsets", None) == {0: None, 1: 5}
