"""The file that carries a job and its secrets to the driver: readable by one user, and read once."""

from __future__ import annotations

import os
from pathlib import Path

from airflow_provider_kpipe.contract.job import Job, KafkaSettings, pack


def write_private(target: Path, text: str) -> Path:
    """Write a new file that only this user may read, from the first byte on."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
    return target


def write_job(target: Path, job: Job, kafka: KafkaSettings) -> Path:
    return write_private(target, f"{pack(job)}\n{pack(kafka)}\n")


def take_job(file: Path) -> tuple[str, str]:
    """Return the packed job and the packed settings, and remove the file, so that no other process finds it."""
    try:
        opened = file.open(encoding="ascii")
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"the file with the job, {file}, is not there: it is read once, by a driver on the machine of the task "
            "that submits it. Run the task again"
        ) from error
    with opened:
        file.unlink()
        packed, settings = opened.read().split()
    return packed, settings
