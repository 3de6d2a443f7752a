"""The environments of the peers: a Spark of their own with Spark's Kafka connector, and an Airflow with its provider.

`python -m bench.peers` prepares them ahead of time; `--write-lock` pins the connector's jars again.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_kpipe.sandbox.ivy import Dependency
from airflow_provider_kpipe.sandbox.jars import locked_jars, write_lock
from bench.work import BenchError

HERE = Path(__file__).parent
ENVIRONMENTS = HERE / ".peers"
REQUIREMENTS = HERE.parent / "requirements"
LOCK_FILE = HERE / "spark-kafka-jars.lock.json"

# PySpark bundles all other dependencies of the connector.
ROOTS = (
    Dependency("org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"),
    Dependency("org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0"),
    Dependency("org.apache.kafka:kafka-clients:3.9.0"),
    Dependency("org.apache.commons:commons-pool2:2.12.0"),
)


@dataclass(frozen=True, slots=True)
class SparkEnvironment:
    """A Python with a PySpark, and jars for the class path of its sessions."""

    python: Path
    jars: tuple[Path, ...] = ()


def prepare_spark() -> SparkEnvironment:
    """Install and download the environment once; after that, only check it."""
    return SparkEnvironment(_environment("spark"), tuple(locked_jars("spark-kafka", LOCK_FILE)))


def prepare_airflow_kafka() -> Path:
    """Prepare the environment with Airflow's Kafka provider, and return its Python."""
    return _environment("airflow-kafka")


def _environment(name: str) -> Path:
    folder, requirements = ENVIRONMENTS / name, REQUIREMENTS / f"bench-{name}.txt"
    python, stamp = folder / "bin" / "python", folder / ".requirements"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != wanted:
        _uv("venv", "--clear", "--python", sys.executable, str(folder))
        pinned = ("--require-hashes", "--build-constraints", str(REQUIREMENTS / "build.txt"))
        _uv("pip", "sync", *pinned, "--compile-bytecode", "--python", str(python), str(requirements))
        stamp.write_text(wanted)
    return python


def _uv(*arguments: str) -> None:
    uv = Path(sys.executable).with_name("uv")
    answer = subprocess.run([uv, "--quiet", *arguments], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise BenchError(f"uv {' '.join(arguments)} failed:\n{answer.stderr}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--write-lock", action="store_true", help=f"download the jars again into {LOCK_FILE.name}")
    if parser.parse_args(arguments).write_lock:
        sys.stdout.write(f"{len(write_lock(LOCK_FILE, ROOTS))} jars locked in {LOCK_FILE.name}\n")
    else:
        sys.stdout.write(f"ready: {prepare_spark().python}, {prepare_airflow_kafka()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
