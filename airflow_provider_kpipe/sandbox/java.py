"""A Java that can run Kafka, and the commands for it."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_kpipe.sandbox.errors import SandboxError

MINIMUM_JAVA = 17


@dataclass(frozen=True)
class Jvm:
    """The heap size of a Java process, and its flags."""

    heap: str
    flags: tuple[str, ...] = ()


SMALL_JVM = Jvm("256m", ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"))
"""A JVM that starts quickly and stays small, for tests of pipelines and first steps."""

FAST_JVM = Jvm("1g")
"""A JVM with Java's own defaults and a large heap, for benchmarks."""


def java_command(
    java: Path, jvm: Jvm, classpath: Iterable[Path], folder: Path, main_class: str, arguments: Sequence[str]
) -> list[str]:
    """Build the command line of `main_class`, which leaves no file outside `folder`."""
    return [
        str(java),
        f"-Xmx{jvm.heap}",
        *jvm.flags,
        "-XX:-UsePerfData",  # would write /tmp/hsperfdata_<user>
        f"-XX:ErrorFile={folder}/java-crash-%p.log",
        f"-Djava.io.tmpdir={folder}",  # the compression codecs unpack native libraries there
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
        "-cp",
        os.pathsep.join(str(jar) for jar in classpath),
        main_class,
        *arguments,
    ]


def find_java(environ: Mapping[str, str] = os.environ) -> Path:
    """Find the first Java of version 17 or later: that of JAVA_HOME, else the one on PATH."""
    candidates: list[tuple[str, str | None]] = []
    if home := environ.get("JAVA_HOME"):
        candidates.append((f"JAVA_HOME={home}", shutil.which(f"{home}/bin/java")))
    candidates.append(("PATH", shutil.which("java", path=environ.get("PATH", os.defpath))))

    found = []
    for place, executable in candidates:
        if executable is None:
            found.append(f"{place} has no java")
            continue
        version = java_version(executable)
        if version is not None and version >= MINIMUM_JAVA:
            return Path(executable)
        found.append(f"{place} has {executable} of version {version or 'unknown'}")
    raise SandboxError(
        f"Java {MINIMUM_JAVA} or later is needed, but {', and '.join(found)}: install one"
        " (Debian: apt-get install default-jre-headless) or point JAVA_HOME at one"
    )


@functools.cache
def java_version(executable: str) -> int | None:
    """Return the major version of a Java, or None if it is unknown."""
    try:
        answer = subprocess.run(
            [executable, "-XX:-UsePerfData", "-version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stderr)


def parse_version(text: str) -> int | None:
    """Return the major version in the output of `java -version`: 17 for "17.0.15", 8 for "1.8.0_412"."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None
