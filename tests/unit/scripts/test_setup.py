"""What `scripts/setup.sh` says where it cannot go on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[3] / "scripts" / "setup.sh"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A PATH of which a test fills in what its machine has; the user is not root."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "cat", "dirname", "head", "sed", "touch", "env"):
        (programs / name).symlink_to(f"/usr/bin/{name}" if Path(f"/usr/bin/{name}").exists() else f"/bin/{name}")
    program(programs, "id", "echo 1000")
    return programs


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)


def be_root(machine: Path, installs: str | None) -> None:
    """On a machine without Java, whose apt-get installs a java of this version, or fails."""
    says = machine / "java-says"
    program(machine, "id", "echo 0")
    program(machine, "java", f"cat {says} >&2")
    program(machine, "apt-get", f"echo 'openjdk version \"{installs}\"' >{says}" if installs else "exit 100")


def set_up(machine: Path, venv: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return subprocess.run(
        ["bash", str(SETUP), str(venv)],
        env={**environment, **variables, "PATH": str(machine)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


@pytest.mark.parametrize("version", [None, 'openjdk version "11.0.2" 2019-01-15', 'java version "1.8.0_392"'])
def test_one_line_names_the_package_if_java_is_missing_or_old(
    machine: Path, tmp_path: Path, version: str | None
) -> None:
    if version:
        program(machine, "java", f"echo '{version}' >&2")
    ended = set_up(machine, tmp_path / "venv")
    assert ended.returncode == 1
    said = [line for line in ended.stderr.splitlines() if line.startswith("setup:")]
    assert said == ["setup: install default-jre-headless first (on Debian: sudo apt-get install default-jre-headless)"]
    assert not (tmp_path / "venv").exists()


@pytest.mark.parametrize("installs", [None, "11.0.2"])
def test_one_line_has_the_remedy_if_java_cannot_be_installed(
    machine: Path, tmp_path: Path, installs: str | None
) -> None:
    be_root(machine, installs)
    ended = set_up(machine, tmp_path / "venv")
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == "setup: install Java 17 or later, then run make again"
    assert not (tmp_path / "venv").exists()


def test_a_java_home_that_stays_too_old_is_named(machine: Path, tmp_path: Path) -> None:
    be_root(machine, "21.0.7")
    home = tmp_path / "old"
    (home / "bin").mkdir(parents=True)
    program(home / "bin", "java", "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2")
    ended = set_up(machine, tmp_path / "venv", JAVA_HOME=str(home))
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        f"setup: install Java 17 or later, and point JAVA_HOME at it instead of {home}, then run make again"
    )


def test_root_installs_the_default_java_if_it_is_missing(machine: Path, tmp_path: Path) -> None:
    be_root(machine, "21.0.7")
    ended = set_up(machine, tmp_path / "venv")
    said = [line for line in ended.stderr.splitlines() if line.startswith("setup: install")]
    assert said == ["setup: installing default-jre-headless", "setup: installing python3 python3-venv"]


def test_an_old_python_is_refused_with_a_message(machine: Path, tmp_path: Path) -> None:
    program(machine, "java", "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2")
    for name in ("python3", "python3.11", "python3.12"):
        program(machine, name, "exit 1")
    ended = set_up(machine, tmp_path / "venv")
    assert ended.returncode == 1
    assert "setup: install python3 python3-venv first" in ended.stderr
