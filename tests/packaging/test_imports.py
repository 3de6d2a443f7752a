"""Which room of the house may import which: decided by reading the source, so that no import hides in a function."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[2]
PACKAGE = CHECKOUT / "airflow_provider_kpipe"
ENGINE = CHECKOUT / "spark_jobs"
OURS = "airflow_provider_kpipe"

# What each room may import of ours and of others, in the order in which a run meets the rooms. Every room may import
# itself and the standard library.
ROOMS: dict[str, set[str]] = {
    "contract": set(),
    "kafka": {"contract", "exceptions", "confluent_kafka"},
    "transactions": {"contract", "exceptions", "kafka", "confluent_kafka"},
    "planning": {"contract", "exceptions", "kafka", "transactions", "confluent_kafka"},
    "checkpointing": {"contract", "exceptions", "kafka", "planning", "transactions", "confluent_kafka"},
    "redriving": {"contract", "exceptions", "kafka", "planning", "transactions", "confluent_kafka"},
    # httpx2 is what confluent-kafka asks a schema registry with.
    "formats": {"record", "segments", "confluent_kafka", "httpx2"},
    "hooks": {"exceptions", "kafka", "airflow.sdk"},
    "triggers": {"checkpointing", "contract", "exceptions", "hooks", "airflow.triggers"},
    "spark": {"contract", "exceptions", "airflow.sdk", "airflow.providers"},
    "running": {
        "contract",
        "exceptions",
        "kafka",
        "planning",
        "spark",
        "transactions",
        "airflow.sdk",
        "confluent_kafka",
    },
    "forms": {"contract", "airflow.sdk"},
    "task_runtime": {"contract", "exceptions", "forms", "planning", "airflow.sdk"},
    "operators": {
        *("checkpointing", "contract", "exceptions", "forms", "hooks", "kafka", "planning", "redriving", "running"),
        *("spark", "task_runtime", "airflow.sdk"),
    },
    "sensors": {"checkpointing", "contract", "exceptions", "hooks", "task_runtime", "triggers", "airflow.sdk"},
}
# Those that work without Airflow, in a shell too.
WITHOUT_AIRFLOW = ("contract", "kafka", "transactions", "planning", "checkpointing", "redriving", "formats")
CONTRACT_ORDER = (
    "clean_text",
    "documents",
    "permissions",
    "client_log",
    "connecting",
    "kafka_names",
    "offsets",
    "pipeline",
    "plan",
    "faults",
    "dead_letters",
    "progress",
    "redrive",
    "job",
    "job_file",
)
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
    "chunk_filler",
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


def is_foreign(name: str) -> bool:
    return name.partition(".")[0] in ("airflow", "confluent_kafka", "httpx2")


def named(files: list[Path]) -> list[Any]:
    return [pytest.param(file, id=str(file.relative_to(CHECKOUT))) for file in files]


@pytest.mark.parametrize(("file"), named([PACKAGE / "__init__.py", PACKAGE / "exceptions.py"]))
def test_modules_that_all_import_need_nothing(file: Path) -> None:
    assert strangers(file, {OURS}) == []


@pytest.mark.parametrize("room", ROOMS)
def test_room_imports_only_what_is_below_it(room: str) -> None:
    allowed = {name if is_foreign(name) else f"{OURS}.{name}" for name in (*ROOMS[room], room)}
    found = {str(file): strangers(file, allowed) for file in modules(PACKAGE / room)}
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


ORDERS = {ENGINE / "kpipe_engine": ENGINE_ORDER, PACKAGE / "contract": CONTRACT_ORDER}


@pytest.mark.parametrize("folder", ORDERS, ids=lambda folder: folder.name)
def test_every_part_has_its_place_in_the_order(folder: Path) -> None:
    assert {file.stem for file in folder.iterdir() if not file.name.startswith("__")} == {*ORDERS[folder]}


@pytest.mark.parametrize(
    ("folder", "part"), [(folder, part) for folder, order in ORDERS.items() for part in order], ids=str
)
def test_a_part_imports_only_what_comes_before_it(folder: Path, part: str) -> None:
    path, order = folder / part, ORDERS[folder]
    package = "kpipe_engine" if folder.name == "kpipe_engine" else f"{OURS}.contract"
    after = [f"{package}.{each}" for each in order[order.index(part) + 1 :]]
    found = {
        (file.name, name)
        for file in (modules(path) if path.is_dir() else [path.with_suffix(".py")])
        for name in imports(file)
        if any(name == each or name.startswith(f"{each}.") for each in after)
    }
    assert found == set()


@pytest.mark.parametrize("file", named([PACKAGE / "record.py", PACKAGE / "segments.py"]))
def test_modules_of_segments_need_the_contract_only(file: Path) -> None:
    assert strangers(file, {f"{OURS}.contract"}) == []


def test_nothing_shipped_or_shared_imports_airflow() -> None:
    shared = [
        PACKAGE / "__init__.py",
        PACKAGE / "record.py",
        PACKAGE / "segments.py",
        PACKAGE / "testing.py",
        *(file for room in WITHOUT_AIRFLOW for file in modules(PACKAGE / room)),
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
    assert files == ({"spark_job", "run", "redrive"} if room == "operators" else set())


def test_only_the_sandbox_imports_the_sandbox() -> None:
    others = [file for file in (*modules(PACKAGE), *modules(ENGINE)) if PACKAGE / "sandbox" not in file.parents]
    assert [file for file in others for name in imports(file) if name.startswith(f"{OURS}.sandbox")] == []
