"""The common part of the three ways to use Spark's own Kafka connector: its session, and its tuned settings."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.data import check_output
from bench.peers import SparkEnvironment
from bench.processes import DRIVERS, TASKS, Session, spark_environment, whole_run
from bench.work import Job

MASTER = "local[2]"
DRIVER = DRIVERS / "spark_rounds.py"
PY_FILES = tuple(str(TASKS / name) for name in ("spark_tasks.py", "per_record.py", "arrow_kernels.py"))

SESSION: Mapping[str, str] = {
    # As in kpipe's driver: no web page, no progress bar, little logging, no lookup of this machine's name.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

SOURCE: Mapping[str, str] = {
    "includeHeaders": "true",
    "startingOffsets": "earliest",
    # minPartitions stays unset: one task for each partition, as kpipe has it.
    # By default, the client returns 500 records at a time, and fetches 1 MB of a partition. More of both is quicker.
    "kafka.max.poll.records": "5000",
    "kafka.max.partition.fetch.bytes": str(8 * 1024 * 1024),
    # By default, the broker holds a fetch at the end of a partition for half a second, and with it the requests behind
    # it: with many small partitions that is most of the time.
    "kafka.fetch.max.wait.ms": "50",
}

SINK: Mapping[str, str] = {
    # The default of the client, and of kpipe: both wait for the same acknowledgement.
    "kafka.acks": "all",
    # By default, a batch has 16 kB, and is sent without waiting to fill up; these values gain a fifth and more.
    "kafka.batch.size": str(256 * 1024),
    "kafka.linger.ms": "20",
    # Idempotence stays at the client's default, which is on: turning it off gains nothing.
}


class Spark:
    """One way, a function in the driver. It delivers at least once: the sink can do no better."""

    def __init__(self, name: str, way: str, environment: SparkEnvironment, folder: Path) -> None:
        self.name = name
        self._way = way
        self._folder = folder
        self._python = environment.python
        self.environment = spark_environment(environment.python)
        # The jars are on the class path from the start: --packages would resolve them, and --jars would copy them.
        class_path = os.pathsep.join(str(jar) for jar in environment.jars)
        conf = {**SESSION, "spark.driver.extraClassPath": class_path}
        self.properties = folder / f"spark-{way}.properties"
        self.properties.write_text("".join(f"{name}={value}\n" for name, value in conf.items()))
        self._log = folder / f"spark-{way}.log"
        self._session: Session | None = None

    def submit(self, job: Job) -> float:
        command = [
            str(self._python.with_name("spark-submit")),
            *("--master", MASTER),
            *("--properties-file", str(self.properties)),
            *(("--py-files", ",".join(PY_FILES)) if job.work.task != "copy" else ()),
            str(DRIVER),
            json.dumps(self.request(job)),
        ]
        return whole_run(command, self.environment, self._log)

    def start(self) -> None:
        submit = f"--master {MASTER} --properties-file {self.properties} --py-files {','.join(PY_FILES)} pyspark-shell"
        environment = {**self.environment, "PYSPARK_SUBMIT_ARGS": submit}
        self._session = Session([str(self._python), str(DRIVER)], environment, self._log)

    def run(self, job: Job) -> float:
        assert self._session is not None
        return float(self._session.ask(self.request(job))["seconds"])

    def check(self, job: Job) -> None:
        check_output(job, unique=False)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def request(self, job: Job) -> dict[str, Any]:
        servers = {"kafka.bootstrap.servers": job.bootstrap_servers}
        return {
            "way": self._way,
            "task": job.work.task,
            "read": {**servers, **SOURCE, **job.work.spark_source, "subscribe": job.work.records.topic},
            "write": {**servers, **SINK},
            "output": job.output,
            "dead_letters": job.dead_letters if job.work.records.poison_percent else None,
            "checkpoint": str(self._folder / f"checkpoint-{job.output}"),
        }
