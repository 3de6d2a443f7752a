"""The jars of Kafka: pinned and checksummed in a lock file, downloaded once per user.

`python -m airflow_provider_kpipe.sandbox.jars` fetches them ahead of time; `--write-lock` resolves them again.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from airflow_provider_kpipe.sandbox.errors import SandboxError
from airflow_provider_kpipe.sandbox.ivy import Dependency, retrieve

LOCK_FILE = Path(__file__).with_name("kafka-jars.lock.json")

# The tools need only the broker's jars, except for Connect, which is not used here. Kafka logs through SLF4J 1.7:
# without a binding, a broker that fails to start would not log the reason.
ROOTS = (
    Dependency("org.apache.kafka:kafka_2.13:4.2.0", transitive=True),
    Dependency("org.apache.kafka:kafka-tools:4.2.0"),
    Dependency("org.slf4j:slf4j-simple:1.7.36"),
)


@dataclass(frozen=True)
class Jar:
    """One entry of the lock: the coordinates to ask for, and the file that must arrive."""

    coordinates: str
    file: str
    sha256: str
    size: int


def kafka_jars() -> list[Path]:
    """Return the jars of the broker and its tools."""
    return locked_jars("kafka", LOCK_FILE)


def locked_jars(name: str, lock: Path) -> list[Path]:
    """Return the jars of a lock, verified against it; download them first if this user has none yet."""
    folder = cache_folder(os.environ) / f"{name}-{_sha256(lock)[:16]}"
    jars = read_lock(lock)
    if not folder.is_dir():
        _fetch(jars, folder)
    verify(folder, jars)
    return [folder / jar.file for jar in jars]


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder for this user's downloads."""
    if own := environ.get("KPIPE_CACHE"):
        return Path(own).absolute()
    if xdg := environ.get("XDG_CACHE_HOME"):
        return Path(xdg).absolute() / "kpipe"
    return Path.home() / ".cache" / "kpipe"


def read_lock(path: Path = LOCK_FILE) -> tuple[Jar, ...]:
    """Read the jars of a lock file, in its order."""
    return tuple(Jar(**entry) for entry in json.loads(path.read_text())["jars"])


def verify(folder: Path, jars: Iterable[Jar]) -> None:
    """Raise unless `folder` holds exactly the locked jars, unaltered."""
    expected = {jar.file: jar for jar in jars}
    present = {path.name for path in folder.iterdir()}
    problems = [f"{name} is missing" for name in sorted(expected.keys() - present)]
    problems += [f"{name} is not in the lock" for name in sorted(present - expected.keys())]
    for name in sorted(expected.keys() & present):
        jar, path = expected[name], folder / name
        if path.stat().st_size != jar.size:
            problems.append(f"{name} has {path.stat().st_size} bytes instead of {jar.size}")
        elif (digest := _sha256(path)) != jar.sha256:
            problems.append(f"{name} has sha256 {digest} instead of {jar.sha256}")
    if problems:
        raise SandboxError(
            f"the jars in {folder} are not those of their lock: {'; '.join(problems)}."
            " Remove that folder to download them again"
        )


def write_lock(path: Path = LOCK_FILE, roots: Sequence[Dependency] = ROOTS) -> tuple[Jar, ...]:
    """Resolve `roots` with their dependencies, and write the jars that arrived as the new lock."""
    with tempfile.TemporaryDirectory(prefix="kpipe-lock-") as work:
        tree = Path(work, "jars")
        pattern = f"{tree}/[organisation]/[module]/[revision]/[artifact]-[revision].[ext]"
        retrieve(roots, pattern, Path(work, "ivy"))
        jars = tuple(
            Jar(
                coordinates=":".join(jar.relative_to(tree).parent.parts),
                file=jar.name,
                sha256=_sha256(jar),
                size=jar.stat().st_size,
            )
            for jar in sorted(tree.rglob("*.jar"))
        )
    path.write_text(json.dumps({"schema_version": 1, "jars": [asdict(jar) for jar in jars]}, indent=2) + "\n")
    return jars


def _fetch(jars: tuple[Jar, ...], folder: Path) -> None:
    """Download into a staging folder, verify, and rename: `folder` is either whole or absent."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = folder.with_name(f"{folder.name}.partial")
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the system releases it if the holder is killed
        if folder.is_dir():  # another process fetched them while this one waited
            return
        if staging.exists():  # left by a process that was killed
            shutil.rmtree(staging)
        retrieve(
            [Dependency(jar.coordinates) for jar in jars],
            f"{staging}/jars/[artifact]-[revision].[ext]",
            staging / "ivy",
        )
        verify(staging / "jars", jars)
        (staging / "jars").rename(folder)
        shutil.rmtree(staging)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch the jars, or write the lock again."""
    parser = argparse.ArgumentParser(prog="python -m airflow_provider_kpipe.sandbox.jars", description=__doc__)
    parser.add_argument("--write-lock", action="store_true", help=f"resolve the versions again into {LOCK_FILE.name}")
    if parser.parse_args(arguments).write_lock:
        sys.stdout.write(f"{len(write_lock())} jars locked in {LOCK_FILE}\n")
    else:
        jars = kafka_jars()
        sys.stdout.write(f"{len(jars)} jars verified in {jars[0].parent}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
