from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_kpipe.contract.job import Job, KafkaSettings, unpack
from airflow_provider_kpipe.contract.job_file import take_job, write_job, write_private
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination, KafkaPipeline, KafkaSource
from tests.kit.plans import plan_of

JOB = Job(KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out")), plan_of(PartitionRange(0, 0, 9, 0)))
KAFKA = KafkaSettings({"sasl.password": "hush"}, {})


def test_a_job_and_its_settings_are_taken_as_they_were_written(tmp_path: Path) -> None:
    packed, settings = take_job(write_job(tmp_path / "job", JOB, KAFKA))
    assert Job.from_json(unpack(packed)) == JOB
    assert KafkaSettings.from_json(unpack(settings)) == KAFKA


def test_the_file_of_a_job_is_gone_when_it_has_been_taken(tmp_path: Path) -> None:
    file = write_job(tmp_path / "job", JOB, KAFKA)
    take_job(file)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError, match=f"{file}, is not there: it is read once.*Run the task again"):
        take_job(file)


@pytest.mark.parametrize("umask", [0, 0o077], ids=oct)
def test_a_file_is_private_whatever_the_process_allows(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        written = write_private(tmp_path / "mine", "hush")
    finally:
        os.umask(before)
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert written.read_text() == "hush"


def test_a_file_is_private_before_anything_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    opening = os.fdopen

    def looking(descriptor: int, *arguments: Any, **options: Any) -> Any:
        found = os.fstat(descriptor)
        seen.append((stat.S_IMODE(found.st_mode), found.st_size))
        return opening(descriptor, *arguments, **options)

    monkeypatch.setattr(os, "fdopen", looking)
    write_private(tmp_path / "mine", "hush")
    assert seen == [(0o600, 0)]


def test_a_file_that_is_there_already_is_not_written_to(tmp_path: Path) -> None:
    target = tmp_path / "mine"
    target.write_text("before")
    with pytest.raises(FileExistsError):
        write_private(target, "hush")
    assert target.read_text() == "before"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "mine").symlink_to(elsewhere)
    with pytest.raises(FileExistsError):
        write_private(tmp_path / "mine", "hush")
    assert not elsewhere.exists()
