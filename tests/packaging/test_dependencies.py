"""What is declared is what is imported, and is enough."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from airflow_provider_kpipe.spark.application import write_engine_archive

CHECKOUT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]

# What is installed by another name than it is imported by; the longest that fits counts.
DISTRIBUTIONS = {
    "airflow": "apache-airflow",
    "airflow.providers.apache.spark": "apache-airflow-providers-apache-spark",
    "confluent_kafka": "confluent-kafka",
}
# Asked for by those who have such a master: without it, an error says what to install.
ASKED_FOR = "airflow.providers.cncf.kubernetes"
OURS = {"airflow_provider_kpipe", "kpipe_engine"}

OPEN_EVERY_FORMAT = """
from types import SimpleNamespace
import kpipe_engine.batches.arrow_segment
from airflow_provider_kpipe.formats import avro, json_schema, protobuf
from google.protobuf.struct_pb2 import Struct

class ReadStruct(protobuf.Read):
    message_type = Struct

class WriteStruct(protobuf.Write):
    message_type = Struct

registry = {"url": "mock://nowhere"}
context = SimpleNamespace(
    topic="in", destination_topic="out", source_registry=registry, destination_registry=registry
)
for kind in (avro.Read, avro.Write, json_schema.Read, json_schema.Write, ReadStruct, WriteStruct):
    segment = kind()
    segment.open(context)
    segment.close()
"""


def third_party_imports() -> Iterator[str]:
    """Full names of all that the modules of the wheel import, in functions and for type checking too."""
    for folder in ("airflow_provider_kpipe", "spark_jobs"):
        for file in (CHECKOUT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Import):
                    yield from (alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    yield f"{node.module}"


def distribution_of(module: str) -> str:
    known = [name for name in DISTRIBUTIONS if f"{module}.".startswith(f"{name}.")]
    return DISTRIBUTIONS[max(known, key=len)] if known else module.partition(".")[0]


def test_every_import_is_declared() -> None:
    declared = {Requirement(line).name for lines in (PROJECT["dependencies"], *EXTRAS.values()) for line in lines}
    imported = {
        distribution_of(name)
        for name in third_party_imports()
        if name.partition(".")[0] not in sys.stdlib_module_names | OURS and not name.startswith(ASKED_FOR)
    }
    assert imported - declared == set()


def test_the_extras_are_all_that_segments_need_on_an_executor(install: Callable[..., None], tmp_path: Path) -> None:
    """Beside what is sent along with a job."""
    uv, environment = str(Path(sys.executable).with_name("uv")), tmp_path / "environment"
    install([uv, "venv", "--quiet", "--python", sys.executable, str(environment)])
    required = [line for lines in EXTRAS.values() for line in lines]
    install([uv, "pip", "install", "--quiet", "--python", str(environment), *required])
    done = subprocess.run(
        [environment / "bin" / "python", "-c", OPEN_EVERY_FORMAT],
        env={"PATH": os.defpath, "PYTHONPATH": str(write_engine_archive(tmp_path / "engine.zip"))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_all_name_the_same_versions_of_python(version: str) -> None:
    setup = (CHECKOUT / "scripts" / "setup.sh").read_text()
    found = re.search(r"\((3, \d+)\) <= sys.version_info\[:2\] <= \((3, \d+)\)", setup)
    assert found
    first, last = found.groups()
    supported = SpecifierSet(PROJECT["requires-python"]).contains(version)
    assert (f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]) is supported
    assert (as_pair(first) <= as_pair(version) <= as_pair(last)) is supported


def as_pair(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def test_the_image_has_a_supported_python() -> None:
    (image,) = re.findall(r"^ARG PYTHON_IMAGE=python:([\d.]+)", (CHECKOUT / "docker" / "Dockerfile").read_text(), re.M)
    assert SpecifierSet(PROJECT["requires-python"]).contains(image)


def test_every_requirement_is_locked_and_no_lock_names_a_registry() -> None:
    (locked,) = re.findall(r"for name in ([a-z \-]+); do", (CHECKOUT / "Makefile").read_text())
    folder = CHECKOUT / "requirements"
    assert sorted(locked.split()) == sorted(file.stem for file in folder.glob("*.in"))
    assert {file.stem for file in folder.glob("*.txt")} == set(locked.split())
    assert [file.name for file in folder.glob("*.txt") if "://" in file.read_text()] == []
