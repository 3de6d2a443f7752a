"""Airflow's Kafka provider: its consume operator, then its produce operator, with a file in between.

The operators run in a running process, which calls their `execute()`: Airflow's own overhead for two tasks, some
seconds, is not counted. Their connections are real ones, in variables. The records reach the produce operator in a
file, as they would between two tasks of a DAG. They lose their headers and timestamps, as that operator takes none.
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
    # Without it, the operator warns, and the client commits offsets by itself.
    "enable.auto.commit": False,
}
TUNED_CONNECTION: Mapping[str, Any] = {
    **CONNECTION,
    # The settings of the plain process, as far as the operators accept them.
    "fetch.wait.max.ms": 5,
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 20_000,
    "linger.ms": 100,
    "batch.size": 256_000,
    "enable.idempotence": True,
}
# The default is 1,000.
TUNED_BATCH = 10_000


class AirflowKafka:
    """The operators as they come, or tuned: batches of 10,000, without a wait for each record's acknowledgement."""

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
        # The operator would wait in vain for a batch larger than the topic.
        batch = {"max_batch_size": min(TUNED_BATCH, count)} if self._tuned else {}
        return float(
            self._session.ask(
                {
                    "connection": connection,
                    "source": job.work.records.topic,
                    "output": job.output,
                    # With the number of records, the operator does not wait 60 seconds for more at the end.
                    "consume": {"max_messages": count, **batch},
                    # By default, the operator flushes after every record.
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
