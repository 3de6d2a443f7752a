from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_kpipe.sandbox import ivy as module
from airflow_provider_kpipe.sandbox import process
from airflow_provider_kpipe.sandbox.errors import SandboxError
from airflow_provider_kpipe.sandbox.ivy import Dependency, retrieve

PINNED = Dependency("org.apache.kafka:kafka-clients:4.2.0")


class FakeIvy:
    """Takes a command in place of a Java, and ends with this exit code."""

    def __init__(self) -> None:
        self.code, self.command = 0, list[str]()

    def run(self, command: list[str], *, folder: Path, timeout: float) -> tuple[int, str]:
        self.command = command
        return self.code, "no route to host"

    def argument(self, name: str) -> str:
        return self.command[self.command.index(name) + 1]


@pytest.fixture
def ivy(monkeypatch: pytest.MonkeyPatch) -> FakeIvy:
    fake = FakeIvy()
    monkeypatch.setattr(process, "run", fake.run)
    monkeypatch.setattr(module, "find_java", lambda: Path("java"))
    monkeypatch.delenv("KPIPE_IVY_SETTINGS", raising=False)
    return fake


@pytest.mark.parametrize("transitive", [True, False])
def test_a_dependency_is_written_with_its_version(transitive: bool) -> None:
    assert Dependency("group:module:1.0", transitive).to_xml() == (
        '<dependency org="group" name="module" rev="1.0" conf="default->default" '
        f'transitive="{"true" if transitive else "false"}"/>'
    )


def test_ivy_is_asked_for_each_dependency_and_stays_in_its_folder(ivy: FakeIvy, tmp_path: Path) -> None:
    retrieve([PINNED], "/jars/[artifact].jar", tmp_path / "work")
    asked = Path(ivy.argument("-ivy")).read_text()
    assert PINNED.to_xml() in asked
    assert ivy.argument("-retrieve") == "/jars/[artifact].jar"
    assert ivy.argument("-cache") == str(tmp_path / "work" / "cache")
    assert f"-Divy.default.ivy.user.dir={tmp_path / 'work' / 'user'}" in ivy.command


@pytest.mark.parametrize(("transitive", "checksums", "poms"), [(False, "", "false"), (True, "sha1", "true")])
def test_only_what_is_not_pinned_is_looked_up_in_the_registry(
    ivy: FakeIvy, tmp_path: Path, transitive: bool, checksums: str, poms: str
) -> None:
    retrieve([PINNED, Dependency("group:module:1.0", transitive)], "pattern", tmp_path)
    settings = Path(ivy.argument("-settings")).read_text()
    assert f'name="ivy.checksums" value="{checksums}"' in settings
    assert f'usepoms="{poms}"' in settings


def test_a_mirror_has_settings_of_its_own(ivy: FakeIvy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPIPE_IVY_SETTINGS", str(tmp_path / "mirror.xml"))
    retrieve([PINNED], "pattern", tmp_path / "work")
    assert ivy.argument("-settings") == str(tmp_path / "mirror.xml")


def test_a_download_that_fails_says_why_and_what_helps(ivy: FakeIvy, tmp_path: Path) -> None:
    ivy.code = 1
    with pytest.raises(SandboxError, match=r"(?s)exit code 1.*KPIPE_IVY_SETTINGS.*no route to host"):
        retrieve([PINNED], "pattern", tmp_path)
