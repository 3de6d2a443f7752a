"""The location of the Spark application, and the archive that executors import from."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import airflow_provider_kpipe

_PACKAGE = Path(airflow_provider_kpipe.__file__).parent


def spark_jobs_folder() -> Path:
    """Find the application: inside the package in an installed wheel, beside it in a checkout."""
    for folder in (_PACKAGE / "spark_jobs", _PACKAGE.parent / "spark_jobs"):
        if (folder / "kpipe_run.py").is_file():
            return folder
    raise FileNotFoundError(f"spark_jobs/kpipe_run.py is neither in {_PACKAGE} nor beside it: reinstall the package")


def application_file() -> Path:
    return spark_jobs_folder() / "kpipe_run.py"


def write_engine_archive(target: Path) -> Path:
    """Write the modules that the driver and the executors import.

    They are the engine, the contract that it shares with Airflow, the interface of segments, and the ready-made ones.
    """
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for module in ("__init__.py", "record.py", "segments.py"):
            archive.write(_PACKAGE / module, f"airflow_provider_kpipe/{module}")
        for root, name in (
            (_PACKAGE / "contract", "airflow_provider_kpipe/contract"),
            (_PACKAGE / "formats", "airflow_provider_kpipe/formats"),
            (spark_jobs_folder() / "kpipe_engine", "kpipe_engine"),
        ):
            for file in _modules(root):
                archive.write(file, f"{name}/{file.relative_to(root)}")
    return target


def ship(py_files: Sequence[str], folder: Path) -> list[str]:
    """Return the user's modules for `--py-files`: pack a package folder, and pass everything else as it is."""
    shipped = []
    for entry in py_files:
        path = Path(entry)
        if path.is_dir():
            shipped.append(str(_pack_package(path, folder)))
        elif "://" in entry or path.is_file():
            shipped.append(entry)
        else:
            raise ValueError(
                f"py_files names {entry!r}, which is not there, seen from {Path.cwd()}: name a .py file, a .zip or a "
                "package, best by a path that begins with the DAG file's, Path(__file__).parent"
            )
    return shipped


def _pack_package(package: Path, folder: Path) -> Path:
    target = folder / f"{package.name}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in _modules(package):
            archive.write(file, f"{package.name}/{file.relative_to(package)}")
    return target


def _modules(root: Path) -> Iterator[Path]:
    return (file for file in sorted(root.rglob("*.py")) if "__pycache__" not in file.parts)
