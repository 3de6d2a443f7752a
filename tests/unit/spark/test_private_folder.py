from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from airflow_provider_kpipe.spark.private_folder import BEING_MADE_SECONDS, PrivateFolder

# Holds a folder until it is killed. Its own child, which is handed every descriptor that a child may inherit, lives on.
HOLDER = """
import signal, subprocess
from airflow_provider_kpipe.spark.private_folder import PrivateFolder

with PrivateFolder() as folder:
    (folder / "kpipe.properties").touch()
    subprocess.Popen(["cat"], close_fds=False, stdout=subprocess.DEVNULL)
    print(folder, flush=True)
    signal.pause()
"""


def age(folder: Path) -> None:
    past = time.time() - BEING_MADE_SECONDS - 1
    os.utime(folder, (past, past))


def make(folder: Path, *files: str) -> Path:
    folder.mkdir()
    for name in files:
        (folder / name).touch()
    return folder


def test_it_is_for_this_user_only_and_gone_after_the_block() -> None:
    with PrivateFolder() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "kpipe.properties").touch()
    assert not folder.exists()


def test_the_next_process_removes_the_folder_of_a_dead_one_only(temp_folder: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        env={**os.environ, "TMPDIR": str(temp_folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    # Leaving the block closes the input of its child, which ends by that.
    with holder:
        try:
            assert holder.stdout is not None
            left = Path(holder.stdout.readline().strip())
            age(left)
            with PrivateFolder():
                assert (left / "kpipe.properties").exists()
        finally:
            holder.kill()
            holder.wait()
        assert (left / "kpipe.properties").exists()
        with PrivateFolder() as mine:
            assert list(temp_folder.iterdir()) == [mine]


def test_two_of_one_process_leave_each_other_alone() -> None:
    with PrivateFolder() as first, PrivateFolder() as second:
        assert first.is_dir()
        assert second.is_dir()


@pytest.mark.parametrize("files", [(), ("lock.new",)])
def test_one_that_is_being_made_is_left_alone_for_a_minute(temp_folder: Path, files: tuple[str, ...]) -> None:
    being_made = make(temp_folder / "kpipe-run-new", *files)
    with PrivateFolder():
        assert being_made.is_dir()
    age(being_made)
    with PrivateFolder():
        assert not being_made.exists()


def test_a_path_that_is_no_folder_of_this_user_is_left_alone(
    temp_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = make(temp_folder / "elsewhere", "lock")
    (temp_folder / "kpipe-run-link").symlink_to(elsewhere)
    (temp_folder / "kpipe-run-file").touch()
    before = set(temp_folder.rglob("*"))
    with PrivateFolder():
        pass
    assert set(temp_folder.rglob("*")) == before

    of_another = make(temp_folder / "kpipe-run-other", "lock")
    monkeypatch.setattr(os, "geteuid", lambda: of_another.stat().st_uid + 1)
    with PrivateFolder():
        assert of_another.is_dir()


def test_one_that_cannot_be_judged_keeps_nobody_from_working(temp_folder: Path) -> None:
    odd = make(temp_folder / "kpipe-run-odd")
    (odd / "lock").mkdir()
    dead = [make(temp_folder / f"kpipe-run-{name}", "lock") for name in "abcd"]
    with PrivateFolder():
        assert odd.is_dir()
        assert not any(folder.exists() for folder in dead)
