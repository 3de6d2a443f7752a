from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

import airflow_provider_kpipe
from airflow_provider_kpipe.spark.application import application_file, ship, spark_jobs_folder, write_engine_archive

PACKAGE = Path(airflow_provider_kpipe.__file__).parent
ENGINE = spark_jobs_folder() / "kpipe_engine"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_engine_archive(tmp_path_factory.mktemp("archive") / "kpipe_engine.zip")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that has confluent-kafka and nothing else."""
    folder = tmp_path_factory.mktemp("libraries")
    installed = Path(confluent_kafka.__file__).parent
    for part in (installed, installed.with_name("confluent_kafka.libs")):
        if part.is_dir():
            (folder / part.name).symlink_to(part)
    return folder


def names(archive: Path) -> set[str]:
    with zipfile.ZipFile(archive) as opened:
        return set(opened.namelist())


def modules_of(root: Path, prefix: str) -> Iterator[str]:
    return (f"{prefix}/{file.relative_to(root).as_posix()}" for file in root.rglob("*.py"))


def test_the_application_is_found() -> None:
    assert application_file().name == "kpipe_run.py"
    assert application_file().is_file()


def test_the_archive_holds_what_executors_import_and_nothing_else(archive: Path) -> None:
    assert names(archive) == {
        "airflow_provider_kpipe/__init__.py",
        "airflow_provider_kpipe/record.py",
        "airflow_provider_kpipe/segments.py",
        *modules_of(PACKAGE / "contract", "airflow_provider_kpipe/contract"),
        *modules_of(PACKAGE / "formats", "airflow_provider_kpipe/formats"),
        *modules_of(ENGINE, "kpipe_engine"),
    }


# Pipelines with batch segments import these; all others run without Arrow.
NEED_ARROW = {"kpipe_engine/batches/arrow_batch.py", "kpipe_engine/batches/arrow_segment.py"}
CHILD = """
import importlib, pkgutil, sys
sys.path += sys.argv[1:]
for name in "record", "segments":
    print(importlib.import_module("airflow_provider_kpipe." + name).__file__)
packages = "airflow_provider_kpipe.contract", "airflow_provider_kpipe.formats", "kpipe_engine"
for package in map(importlib.import_module, packages):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if found.ispkg:
            continue
        try:
            print(importlib.import_module(found.name).__file__)
        except ModuleNotFoundError as error:
            assert error.name == "pyarrow", error
foreign = {name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names
print(*sorted(foreign - {"__main__", "__mp_main__", "airflow_provider_kpipe", "kpipe_engine", "confluent_kafka"}))
"""


def test_executors_import_the_archive_with_nothing_but_confluent_kafka(archive: Path, libraries: Path) -> None:
    child = [sys.executable, "-I", "-S", "-c", CHILD, str(archive), str(libraries)]
    ended = subprocess.run(child, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0, ended.stderr
    *files, foreign = ended.stdout.split("\n")[:-1]
    assert {Path(file).relative_to(archive).as_posix() for file in files} == {
        name for name in names(archive) - NEED_ARROW if not name.endswith("__init__.py")
    }
    assert foreign == ""


def test_modules_and_archives_are_shipped_as_they_are(tmp_path: Path) -> None:
    module, packed = tmp_path / "orders.py", tmp_path / "more.zip"
    module.touch()
    packed.touch()
    wanted = [str(module), str(packed), "s3a://bucket/segments.zip"]
    assert ship(wanted, tmp_path) == wanted
    assert ship([], tmp_path) == []


def test_a_package_folder_is_packed_under_its_name(tmp_path: Path) -> None:
    package, out = tmp_path / "orders", tmp_path / "out"
    for file in ("__init__.py", "sub/__init__.py", "sub/rules.py", "__pycache__/x.py", "data.json"):
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).write_text("")
    out.mkdir()
    (shipped,) = ship([str(package)], out)
    assert Path(shipped) == out / "orders.zip"
    assert {name for name in names(Path(shipped)) if name.endswith(".py")} == {
        "orders/__init__.py",
        "orders/sub/__init__.py",
        "orders/sub/rules.py",
    }


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"py_files names '.*missing\.py', which is not there"):
        ship([str(tmp_path / "missing.py")], tmp_path)
