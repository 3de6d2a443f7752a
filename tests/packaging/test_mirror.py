"""Every module has a test module that a newcomer finds by its name, or by the table below."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.test_imports import CHECKOUT, PACKAGE, imports

ENGINE = CHECKOUT / "spark_jobs" / "kpipe_engine"
TESTS = CHECKOUT / "tests"
UNIT = TESTS / "unit"
MOST_ENTRIES = 25
# Modules without a test module of their name, and the tests that cover them. At least one of these imports the module.
COVERED_BY: dict[str, tuple[str, ...]] = {
    "airflow_provider_kpipe/contract/offsets/origin.py": ("tests/unit/contract/progress/test_standing.py",),
    "airflow_provider_kpipe/exceptions.py": ("tests/unit/task_runtime/test_errors.py",),
    "airflow_provider_kpipe/kafka/bounded_reader.py": (
        "tests/broker/test_redrive_ledger.py",
        "tests/broker/test_cluster_gone.py",
    ),
    "airflow_provider_kpipe/planning/truncation.py": (
        "tests/broker/test_open_transactions.py",
        "tests/broker/test_standing.py",
    ),
    "airflow_provider_kpipe/redriving/ledger_topic.py": ("tests/broker/test_redrive_ledger.py",),
    "airflow_provider_kpipe/redriving/planning.py": (
        "tests/broker/test_needed_topics.py",
        "tests/broker/test_redrive.py",
    ),
    "airflow_provider_kpipe/redriving/preview.py": ("tests/broker/test_redrive.py",),
    "airflow_provider_kpipe/redriving/retention.py": ("tests/broker/test_redrive_retention.py",),
    "airflow_provider_kpipe/redriving/selection.py": ("tests/broker/test_redrive_selection.py",),
    "airflow_provider_kpipe/sandbox/broker.py": ("tests/broker/test_sandbox.py",),
    "airflow_provider_kpipe/sandbox/topics.py": ("tests/broker/test_sandbox.py",),
    "airflow_provider_kpipe/transactions/left_open.py": ("tests/broker/test_transactions.py",),
    "airflow_provider_kpipe/transactions/offset_transaction.py": (
        "tests/broker/test_committer.py",
        "tests/broker/test_standing.py",
    ),
    "spark_jobs/kpipe_engine/assignment/claiming.py": (
        "tests/broker/test_ownership.py",
        "tests/broker/test_pieces.py",
    ),
    "spark_jobs/kpipe_engine/chunk_filler.py": ("tests/broker/test_slow_records.py",),
    "spark_jobs/kpipe_engine/processing/copying.py": ("tests/unit/engine/processing/test_sequential.py",),
    "spark_jobs/kpipe_engine/processing/processor.py": ("tests/unit/engine/processing/test_sequential.py",),
    "spark_jobs/kpipe_engine/reading/shared_consumer.py": (
        "tests/unit/engine/reading/test_range_reader.py",
        "tests/broker/test_broker_failures.py",
    ),
    "spark_jobs/kpipe_engine/redrive/ledger.py": ("tests/broker/test_redrive.py",),
    "spark_jobs/kpipe_engine/supervision/spark_task.py": (
        "tests/broker/test_pieces.py",
        "tests/broker/test_broker_failures.py",
    ),
    "spark_jobs/kpipe_engine/supervision/worker_process.py": ("tests/unit/engine/supervision/test_supervisor.py",),
}


def path_of(source: Path) -> str:
    return str(source.relative_to(CHECKOUT))


def name_of(source: Path) -> str:
    """Return the name by which a module is imported."""
    root = PACKAGE if source.is_relative_to(PACKAGE) else ENGINE
    return ".".join((root.name, *source.relative_to(root).with_suffix("").parts))


def file_name_of(source: Path) -> str:
    return f"test_{source.stem.strip('_')}.py"


def unit_test_of(source: Path) -> Path:
    """Return the path of a module's unit test, in the same room."""
    if source.is_relative_to(PACKAGE):
        return UNIT / source.relative_to(PACKAGE).with_name(file_name_of(source))
    return UNIT / "engine" / source.relative_to(ENGINE).with_name(file_name_of(source))


SOURCES = [
    file
    for root in (PACKAGE, ENGINE)
    for file in sorted(root.rglob("*.py"))
    if file.name not in ("__init__.py", "provider_info.py")
]
WITH_UNIT_TEST = [file for file in SOURCES if unit_test_of(file).is_file()]
WITHOUT_UNIT_TEST = [file for file in SOURCES if file not in WITH_UNIT_TEST]


def does_import(test: Path, source: Path) -> bool:
    name = name_of(source)
    return any(each == name or each.startswith(f"{name}.") for each in imports(test))


def has_test_of_its_name(source: Path) -> bool:
    """Tell whether a unit test of this name is in the same room, or another test of this name is in any other folder.

    Where several modules without a unit test have this name, the other test counts for the one that it imports.
    """
    if source in WITH_UNIT_TEST:
        return True
    others = [file for file in TESTS.rglob(file_name_of(source)) if UNIT not in file.parents]
    is_alone = [each.stem for each in WITHOUT_UNIT_TEST].count(source.stem) == 1
    return any(is_alone or does_import(file, source) for file in others)


@pytest.mark.parametrize("source", SOURCES, ids=path_of)
def test_a_module_has_a_test_of_its_name_or_stands_in_the_table(source: Path) -> None:
    assert has_test_of_its_name(source) != (path_of(source) in COVERED_BY)


@pytest.mark.parametrize("source", WITH_UNIT_TEST, ids=path_of)
def test_a_unit_test_imports_the_module_of_its_name(source: Path) -> None:
    assert does_import(unit_test_of(source), source)


@pytest.mark.parametrize("path", COVERED_BY)
def test_the_tests_in_the_table_are_there_and_import_the_module(path: str) -> None:
    source, tests = CHECKOUT / path, [CHECKOUT / each for each in COVERED_BY[path]]
    assert source in SOURCES
    assert [each for each in tests if not each.is_file()] == []
    assert any(does_import(each, source) for each in tests)


def test_the_table_stays_short() -> None:
    assert len(SOURCES) > 150
    assert len(COVERED_BY) <= MOST_ENTRIES
