from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from airflow_provider_kpipe.sandbox import jars
from airflow_provider_kpipe.sandbox.errors import SandboxError
from airflow_provider_kpipe.sandbox.ivy import Dependency
from airflow_provider_kpipe.sandbox.jars import Jar, cache_folder, read_lock, verify

CONTENTS = {"one-1.0.jar": b"first", "two-2.0.jar": b"second"}
LOCKED = tuple(
    Jar(f"group:{name[:3]}:{name[4:7]}", name, hashlib.sha256(content).hexdigest(), len(content))
    for name, content in CONTENTS.items()
)


def write_jars(folder: Path, contents: dict[str, bytes] = CONTENTS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)


class Registry:
    """Stands in for Ivy: gives the contents it was told to, and counts how often it was asked."""

    def __init__(self, contents: dict[str, bytes] = CONTENTS) -> None:
        self.contents = contents
        self.asked: list[list[str]] = []

    def retrieve(self, dependencies: Iterable[Dependency], pattern: str, work: Path) -> None:
        self.asked.append([item.coordinates for item in dependencies])
        work.mkdir(parents=True)
        write_jars(Path(pattern).parent, self.contents)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    stand_in = Registry()
    monkeypatch.setattr(jars, "retrieve", stand_in.retrieve)
    return stand_in


def test_the_committed_lock_pins_the_broker_and_its_tools() -> None:
    locked = read_lock()
    coordinates = [jar.coordinates for jar in locked]
    assert {root.coordinates for root in jars.ROOTS} <= set(coordinates)
    assert len(set(coordinates)) == len({jar.file for jar in locked}) == len(locked)
    for jar in locked:
        _, module, version = jar.coordinates.split(":")
        assert jar.file == f"{module}-{version}.jar"
        assert len(bytes.fromhex(jar.sha256)) == 32
        assert jar.size > 0


def test_the_lock_names_no_registry() -> None:
    assert "//" not in jars.LOCK_FILE.read_text()


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"KPIPE_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, Path("/a")),
        ({"XDG_CACHE_HOME": "/b"}, Path("/b/kpipe")),
        ({}, Path.home() / ".cache" / "kpipe"),
    ],
)
def test_the_cache_is_the_users(environ: dict[str, str], folder: Path) -> None:
    assert cache_folder(environ) == folder


def test_whole_jars_pass(tmp_path: Path) -> None:
    write_jars(tmp_path)
    verify(tmp_path, LOCKED)


def test_a_missing_jar_is_named(tmp_path: Path) -> None:
    write_jars(tmp_path, {"one-1.0.jar": b"first"})
    with pytest.raises(SandboxError, match=r"two-2\.0\.jar is missing.*Remove that folder"):
        verify(tmp_path, LOCKED)


def test_an_extra_jar_is_named(tmp_path: Path) -> None:
    write_jars(tmp_path, {**CONTENTS, "three-3.0.jar": b"third"})
    with pytest.raises(SandboxError, match=r"three-3\.0\.jar is not in the lock"):
        verify(tmp_path, LOCKED)


def test_a_jar_of_another_size_is_named(tmp_path: Path) -> None:
    write_jars(tmp_path, {**CONTENTS, "two-2.0.jar": b"sec"})
    with pytest.raises(SandboxError, match=r"two-2\.0\.jar has 3 bytes instead of 6"):
        verify(tmp_path, LOCKED)


def test_an_altered_jar_of_the_same_size_is_named(tmp_path: Path) -> None:
    write_jars(tmp_path, {**CONTENTS, "two-2.0.jar": b"sEcond"})
    with pytest.raises(SandboxError, match=r"two-2\.0\.jar has sha256 \w+ instead of"):
        verify(tmp_path, LOCKED)


def test_a_fetch_asks_for_pinned_versions_and_leaves_only_the_jars(tmp_path: Path, registry: Registry) -> None:
    folder = tmp_path / "cache" / "kafka-1"
    jars._fetch(LOCKED, folder)
    assert registry.asked == [["group:one:1.0", "group:two:2.0"]]
    verify(folder, LOCKED)
    assert {path.name for path in folder.parent.iterdir()} == {"kafka-1", "kafka-1.lock"}


def test_a_download_that_differs_from_the_lock_is_never_put_in_place(tmp_path: Path, registry: Registry) -> None:
    registry.contents = {**CONTENTS, "two-2.0.jar": b"sEcond"}
    with pytest.raises(SandboxError, match=r"two-2\.0\.jar"):
        jars._fetch(LOCKED, tmp_path / "kafka-1")
    assert not (tmp_path / "kafka-1").exists()


def test_a_fetch_starts_over_after_one_that_was_killed(tmp_path: Path, registry: Registry) -> None:
    write_jars(tmp_path / "kafka-1.partial" / "jars", {"half-1.0.jar": b"ha"})
    jars._fetch(LOCKED, tmp_path / "kafka-1")
    verify(tmp_path / "kafka-1", LOCKED)


def test_two_fetches_at_once_download_once(tmp_path: Path, registry: Registry) -> None:
    threads = [threading.Thread(target=jars._fetch, args=(LOCKED, tmp_path / "kafka-1")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(registry.asked) == 1
    verify(tmp_path / "kafka-1", LOCKED)
