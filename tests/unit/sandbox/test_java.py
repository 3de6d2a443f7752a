from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_kpipe.sandbox.errors import SandboxError
from airflow_provider_kpipe.sandbox.java import FAST_JVM, SMALL_JVM, find_java, java_command, parse_version


def fake_java(folder: Path, version: str) -> Path:
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_412"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "24-ea" 2025-03-18', 24),
        ('Picked up JAVA_TOOL_OPTIONS: -Da=b\nopenjdk version "17.0.1" 2021-10-19', 17),
        ("command not understood", None),
    ],
)
def test_the_major_version_is_read(text: str, major: int | None) -> None:
    assert parse_version(text) == major


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    home, path = fake_java(tmp_path / "home", "21.0.1"), fake_java(tmp_path / "path", "17.0.1")
    assert find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)}) == home


def test_path_is_taken_when_java_home_is_too_old(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", "1.8.0_412")
    path = fake_java(tmp_path / "path", "17.0.1")
    assert find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)}) == path


def test_without_a_java_the_error_says_what_was_found_and_what_to_install(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "path", "11.0.2")
    with pytest.raises(SandboxError) as raised:
        find_java({"JAVA_HOME": str(tmp_path / "none"), "PATH": str(old.parent)})
    assert str(raised.value) == (
        f"Java 17 or later is needed, but JAVA_HOME={tmp_path}/none has no java,"
        f" and PATH has {old} of version 11:"
        " install one (Debian: apt-get install default-jre-headless) or point JAVA_HOME at one"
    )


def test_only_the_small_jvm_trades_speed_for_a_quick_start() -> None:
    small, fast = (
        java_command(Path("java"), jvm, [Path("a.jar"), Path("b.jar")], Path("/folder"), "Main", ["x"])
        for jvm in (SMALL_JVM, FAST_JVM)
    )
    assert set(small) - set(fast) == {"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
    assert set(fast) - set(small) == {"-Xmx1g"}
    assert small[-4:] == ["-cp", "a.jar:b.jar", "Main", "x"]
