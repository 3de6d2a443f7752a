"""Which room of the house may import which: decided by reading the source, so that no import hides in a function."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PACKAGE = CHECKOUT / "airflow_provider_kpipe"
ENGINE = CHECKOUT / "spark_jobs"
OURS = "airflow_provider_kpipe"

# What each room may import of ours and of others; every room may import itself and the standard library.
ROOMS: dict[str, set[str]] = {
    "contract": set(),
    "kafka": {f"{OURS}.contract", f"{OURS}.exceptions", "confluent_kafka"},
    # httpx2 is what confluent-kafka asks a schema registry with.
    "formats": {f"{OURS}.record", f"{OURS}.segments", "confluent_kafka", "httpx2"},
    "hooks": {f"{OURS}.kafka", f"{OURS}.exceptions", "airflow.sdk"},
    "triggers": {
        *(f"{OURS}.{name}" for name in ("contract", "exceptions", "hooks", "kafka")),
        "airflow.triggers",
    },
    "spark": {
        *(f"{OURS}.{name}" for name in ("contract", "exceptions", "hooks", "kafka")),
        *("airflow.sdk", "airflow.providers", "confluent_kafka"),
    },
    "operators": {
        *(f"{OURS}.{name}" for name in ("contract", "exceptions", "hooks", "kafka", "rendered", "spark")),
        "airflow.sdk",
    },
    "sensors": {
        *(f"{OURS}.{name}" for name in ("contract", "exceptions", "hooks", "kafka", "rendered", "triggers")),
        # How a task fails, and how it gets the plan.
        *(f"{OURS}.operators.{name}" for name in ("failures", "handover")),
        "airflow.sdk",
    },
}

# The engine's rooms, and the modules beside them, in the order in which a record meets them: each may import those
# before it.
ENGINE_ORDER = (
    "errors",
    "bounded_calls",
    "client_settings",
    "memory_limit",
    "stop_signal",
    "reading",
    "assignment",
    "writing",
    "faults",
    "processing",
    "batches",
    "redrive",
    "chunk_retry",
    "partition_worker",
    "wiring",
    "supervision",
)


def modules(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*.py") if "__pycache__" not in file.parts)


def imports(file: Path) -> Iterator[str]:
    """Full names of all that a module imports anywhere, type checking left out: nothing of that is loaded."""
    tree = ast.parse(file.read_text())
    unseen = {id(each) for block in ast.walk(tree) if is_type_checking(block) for each in ast.walk(block)}
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def strangers(file: Path, allowed: set[str]) -> list[str]:
    """Imports that are neither allowed nor of the standard library."""
    return [
        name
        for name in imports(file)
        if name.partition(".")[0] not in sys.stdlib_module_names
        # The package itself needs nothing.
        and name != OURS
        and not any(name == each or name.startswith(f"{each}.") for each in allowed)
    ]


def named(files: list[Path]) -> list[pytest.param]:
    return [pytest.param(file, id=str(file.relative_to(CHECKOUT))) for file in files]


@pytest.mark.parametrize(("file"), named([PACKAGE / "__init__.py", PACKAGE / "exceptions.py"]))
def test_what_everyone_imports_needs_nothing(file: Path) -> None:
    assert strangers(file, {OURS}) == []


@pytest.mark.parametrize("room", ROOMS)
def test_room_imports_only_what_is_below_it(room: str) -> None:
    found = {str(file): strangers(file, ROOMS[room] | {f"{OURS}.{room}"}) for file in modules(PACKAGE / room)}
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize("file", named(modules(ENGINE)))
def test_engine_imports_contract_and_kafka_client(file: Path) -> None:
    own = {"kpipe_run.py": "pyspark", "arrow_batch.py": "pyarrow"}.get(file.name, "confluent_kafka")
    allowed = {
        *(f"{OURS}.{name}" for name in ("contract", "record", "segments")),
        "kpipe_engine",
        "confluent_kafka",
        own,
    }
    assert strangers(file, allowed) == []


def test_every_part_of_the_engine_has_its_place_in_the_order() -> None:
    assert {file.stem for file in (ENGINE / "kpipe_engine").iterdir() if not file.name.startswith("__")} == {
        *ENGINE_ORDER
    }


@pytest.mark.parametrize("part", ENGINE_ORDER)
def test_a_part_of_the_engine_imports_only_what_comes_before_it(part: str) -> None:
    path = ENGINE / "kpipe_engine" / part
    files = modules(path) if path.is_dir() else [path.with_suffix(".py")]
    after = ENGINE_ORDER[ENGINE_ORDER.index(part) + 1 :]
    found = {
        (str(file.relative_to(ENGINE)), name)
        for file in files
        for name in imports(file)
        for each in after
        if name.startswith(f"kpipe_engine.{each}.") or name == f"kpipe_engine.{each}"
    }
    assert found == set()


@pytest.mark.parametrize("file", named([PACKAGE / "record.py", PACKAGE / "segments.py"]))
def test_what_segments_take_needs_the_contract_only(file: Path) -> None:
    assert strangers(file, {f"{OURS}.contract"}) == []


def test_nothing_shipped_or_shared_imports_airflow() -> None:
    shared = [
        PACKAGE / "__init__.py",
        PACKAGE / "record.py",
        PACKAGE / "segments.py",
        PACKAGE / "testing.py",
        *modules(PACKAGE / "contract"),
        *modules(PACKAGE / "formats"),
        *modules(PACKAGE / "kafka"),
        *modules(ENGINE),
    ]
    assert [file for file in shared for name in imports(file) if name.partition(".")[0] == "airflow"] == []


def reached(file: Path) -> set[str]:
    """What a module imports, and what our modules that it imports do."""
    found: set[str] = set()
    left = [file]
    while left:
        for name in set(imports(left.pop())) - found:
            found.add(name)
            # What is imported is a module, or something in one.
            paths = [CHECKOUT / each.replace(".", "/") for each in (name, name.rpartition(".")[0])]
            left += [path.with_suffix(".py") for path in paths if path.with_suffix(".py").is_file()]
    return found


@pytest.mark.parametrize("room", ["operators", "sensors", "triggers"])
def test_only_what_submits_a_job_imports_spark(room: str) -> None:
    files = {file.stem for file in modules(PACKAGE / room) for name in reached(file) if ".apache.spark." in name}
    assert files == ({"run", "redrive"} if room == "operators" else set())


def test_only_the_sandbox_imports_the_sandbox() -> None:
    others = [file for file in (*modules(PACKAGE), *modules(ENGINE)) if PACKAGE / "sandbox" not in file.parents]
    assert [file for file in others for name in imports(file) if name.startswith(f"{OURS}.sandbox")] == []
