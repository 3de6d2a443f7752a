"""Airflow's Kafka provider: its consume operator, then its produce operator, with a file in between.

The operators run in a process that is up, driven by their `execute()`: what Airflow adds to two tasks, some
seconds, is not counted. Their connections are real ones, in variables. What the one has consumed reaches the other
in a file, as it would between two tasks of a DAG; headers and timestamps cannot go along, as the producing one
takes none.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.data import check_output
from bench.processes import DRIVERS, Session, driver_environment
from bench.work import Job

AIRFLOW_KAFKA, AIRFLOW_KAFKA_TUNED = "Airflow Kafka operators", "Airflow Kafka operators, tuned"

CONNECTION: Mapping[str, Any] = {
    "auto.offset.reset": "earliest",
    # Without it the operator warns, and offsets are committed behind its back.
    "enable.auto.commit": False,
}
TUNED_CONNECTION: Mapping[str, Any] = {
    **CONNECTION,
    # Those of the plain process, where the operators let them through.
    "fetch.wait.max.ms": 5,
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 20_000,
    "linger.ms": 100,
    "batch.size": 256_000,
    "enable.idempotence": True,
}
# 1,000 by default.
TUNED_BATCH = 10_000


class AirflowKafka:
    """As the operators come, or tuned: batches of 10,000, and no wait for each record's acknowledgement."""

    def __init__(self, python: Path, folder: Path, *, tuned: bool) -> None:
        self.name = AIRFLOW_KAFKA_TUNED if tuned else AIRFLOW_KAFKA
        self._python = python
        self._tuned = tuned
        self._folder = folder / ("operators-tuned" if tuned else "operators")
        self._folder.mkdir()
        self._session: Session | None = None

    def start(self) -> None:
        environment = {
            name: value
            for name, value in driver_environment(self._python).items()
            if not name.lstrip("_").startswith("AIRFLOW")
        }
        environment |= {"AIRFLOW_HOME": str(self._folder), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
        command = [str(self._python), str(DRIVERS / "airflow_kafka_rounds.py")]
        self._session = Session(command, environment, self._folder / "operators.log")

    def run(self, job: Job) -> float:
        assert self._session is not None
        connection = {
            **(TUNED_CONNECTION if self._tuned else CONNECTION),
            "bootstrap.servers": job.bootstrap_servers,
            "group.id": job.output,
        }
        count = job.work.records.count
        # A batch that is larger than all there is would be waited for in vain.
        batch = {"max_batch_size": min(TUNED_BATCH, count)} if self._tuned else {}
        return float(
            self._session.ask(
                {
                    "connection": connection,
                    "source": job.work.records.topic,
                    "output": job.output,
                    # Told how many there are, the operator does not wait 60 seconds at the end for more.
                    "consume": {"max_messages": count, **batch},
                    # By default every record is flushed by itself.
                    "produce": {"synchronous": False} if self._tuned else {},
                    "between": str(self._folder / f"{job.output}.records"),
                }
            )["seconds"]
        )

    def check(self, job: Job) -> None:
        check_output(job, unique=False, headers=False)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
