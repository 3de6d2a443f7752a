from __future__ import annotations

import importlib
import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import airflow_provider_kpipe
from airflow_provider_kpipe.provider_info import get_provider_info

SETTLED = ["KafkaDeadLetter", "KafkaDestination", "KafkaPipeline", "KafkaSource"]
# What is imported beyond the names that were there before, by the first part of each.
CHILD = """
import sys
before = set(sys.modules)
import airflow_provider_kpipe
{more}
print(*sorted({{name.partition(".")[0] for name in set(sys.modules) - before}} - sys.stdlib_module_names))
"""


def imported_by(more: str) -> str:
    child = [sys.executable, "-c", CHILD.format(more=more)]
    return subprocess.run(child, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


@pytest.mark.parametrize(
    "more",
    [
        "",
        "[getattr(airflow_provider_kpipe, name) for name in airflow_provider_kpipe.__all__]",
        "import airflow_provider_kpipe.contract.job, airflow_provider_kpipe.forms.backfill",
    ],
    ids=["the package", "every public name", "the contract"],
)
def test_importing_takes_nothing_but_the_standard_library(more: str) -> None:
    assert imported_by(more) == "airflow_provider_kpipe"


@pytest.mark.parametrize("name", airflow_provider_kpipe.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert hasattr(airflow_provider_kpipe, name)
    assert name in dir(airflow_provider_kpipe)


@pytest.mark.parametrize("name", SETTLED)
def test_the_settled_names_are_public_and_known_by_themselves(name: str) -> None:
    assert name in airflow_provider_kpipe.__all__
    assert getattr(airflow_provider_kpipe, name).__name__ == name


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'airflow_provider_kpipe' has no attribute 'KafkaSink'"):
        _ = airflow_provider_kpipe.KafkaSink


def schema() -> dict[str, Any]:
    airflow = importlib.import_module("airflow")
    found: dict[str, Any] = json.loads((Path(airflow.__path__[0]) / "provider_info.schema.json").read_text())
    return found


def test_airflow_accepts_what_the_provider_says_of_itself() -> None:
    jsonschema.validate(get_provider_info(), schema())


def test_the_provider_says_its_version() -> None:
    assert get_provider_info()["versions"][0] == airflow_provider_kpipe.__version__


def modules_named() -> list[str]:
    info = get_provider_info()
    return [
        module
        for kind in ("operators", "sensors", "hooks", "triggers")
        for group in info[kind]
        for module in group["python-modules"]
    ]


@pytest.mark.parametrize("module", modules_named())
def test_every_module_that_the_provider_names_is_there(module: str) -> None:
    assert importlib.import_module(module).__name__ == module


# What operators share.
NO_OPERATORS = {f"airflow_provider_kpipe.operators.{name}" for name in ("spark_job", "wishes")}


@pytest.mark.parametrize("kind", ["operators", "sensors", "hooks", "triggers"])
def test_no_module_is_forgotten(kind: str) -> None:
    package = importlib.import_module(f"airflow_provider_kpipe.{kind}")
    files = (f"{package.__name__}.{file.stem}" for file in Path(package.__path__[0]).glob("[a-z]*.py"))
    assert {name for name in files if has_a_class(name) and name not in NO_OPERATORS} == {
        name for name in modules_named() if f".{kind}." in name
    }


def has_a_class(module: str) -> bool:
    there = vars(importlib.import_module(module)).values()
    return any(isinstance(each, type) and each.__module__ == module for each in there)


def test_airflow_finds_the_provider() -> None:
    (found,) = [
        each
        for each in entry_points(group="apache_airflow_provider")
        if each.module.startswith("airflow_provider_kpipe")
    ]
    assert found.load() is get_provider_info
