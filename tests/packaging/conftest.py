"""The wheel, and an environment that has nothing else of the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")

RunInstaller = Callable[..., None]


def run_installer(command: list[str], environment: Mapping[str, str] = os.environ) -> None:
    """Run uv, or a command that runs it: from its cache if that has everything, however old, else from a registry."""
    for offline in ({"UV_OFFLINE": "1"}, {}):
        done = subprocess.run(
            command, cwd=CHECKOUT, env={**environment, **offline}, capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            return
    raise AssertionError(f"{command} failed:\n{done.stdout}{done.stderr}")


@pytest.fixture(scope="session")
def checkout() -> Path:
    return CHECKOUT


@pytest.fixture(scope="session")
def install() -> RunInstaller:
    return run_installer


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("distributions")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", folder],
        cwd=CHECKOUT,
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture(scope="session")
def wheel(distributions: Path) -> Path:
    (found,) = distributions.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def clean_environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and the pinned versions. Its files are links into uv's cache."""
    folder = tmp_path_factory.mktemp("clean") / "environment"
    run_installer([str(UV), "venv", "--quiet", "--python", sys.executable, str(folder)])
    run_installer(
        [
            *(str(UV), "pip", "sync", "--quiet", "--python", str(folder)),
            *("--require-hashes", "--build-constraints", "requirements/build.txt", "requirements/runtime.txt"),
        ]
    )
    run_installer([str(UV), "pip", "install", "--quiet", "--python", str(folder), "--no-deps", str(wheel)])
    return folder
