"""Small runs inside Airflow, from the trigger to the end of the last task: kpipe's DAG and the peer's."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from airflow_provider_kpipe.sandbox import create_topics
from airflow_provider_kpipe.sandbox.errors import tail
from airflow_provider_kpipe.spark.properties import DRIVER_JVM
from bench.bars import KPIPE_DAG, PEER_DAG, SMALL
from bench.contestants.spark import DRIVER, Spark
from bench.contestants.spark_batch import spark_batch
from bench.data import check_output, delete_topics, send
from bench.peers import SparkEnvironment
from bench.report import WARM_UP, Step, Timing
from bench.work import BenchError, Job, Records, Work
from demo.airflow_api import DagRun
from demo.airflow_server import SandboxAirflow
from demo.airflow_settings import LOCAL_SPARK, kafka_connection

log = logging.getLogger("bench")

DAGS = Path(__file__).with_name("dags")
DAG_IDS: Mapping[str, str] = {KPIPE_DAG: "small_kpipe", PEER_DAG: "small_peer"}
OUTPUTS: Mapping[str, str] = {KPIPE_DAG: "small-kpipe", PEER_DAG: "small-peer"}
SPARK_VARIABLES = ("PATH", "PYSPARK_PYTHON", "SPARK_HOME", "SPARK_LOCAL_IP")
RECORDS_PER_RUN = 1_000
RUN_SECONDS = 300.0


def measure_small_run(
    bootstrap_servers: str, spark: SparkEnvironment, folder: Path, rounds: int, shuffle_seed: int
) -> tuple[list[Timing], list[Step]]:
    """Measure the DAGs: each round adds records to one source topic, and each DAG has a run over them."""
    records = Records(RECORDS_PER_RUN * (rounds + 1))
    topics = (records.topic, *OUTPUTS.values())
    create_topics(bootstrap_servers, *topics, partitions=records.partitions)
    peer, random = spark_batch(spark, folder), Random(shuffle_seed)
    timings: list[Timing] = []
    steps: list[Step] = []
    dags = _dags(folder / "dags", records, peer)
    connections = {"spark_default": LOCAL_SPARK, "kafka_default": kafka_connection(bootstrap_servers)}
    log.info("starting Airflow")
    with SandboxAirflow(
        dags, connections=connections, wait_for=tuple(DAG_IDS.values()), home=folder / "airflow"
    ) as airflow:
        for number in range(WARM_UP, rounds + 1):
            new = range(RECORDS_PER_RUN * number, RECORDS_PER_RUN * (number + 1))
            send(bootstrap_servers, records, new)
            for contestant in random.sample(list(DAG_IDS), len(DAG_IDS)):
                job = _job(bootstrap_servers, records, new, OUTPUTS[contestant])
                conf = {} if contestant == KPIPE_DAG else {"request": json.dumps(_request(peer, job, new))}
                run = _run(airflow, DAG_IDS[contestant], conf, f"round-{number}")
                seconds = run.seconds()
                check_output(job, unique=contestant == KPIPE_DAG)
                log.info("%s, round %d: %-26s %6.2f s", SMALL, number, contestant, seconds)
                timings.append(Timing(SMALL, contestant, "dag", number, len(new), round(seconds, 4)))
                steps += [Step(contestant, number, task, *moments) for task, moments in run.task_times().items()]
    delete_topics(bootstrap_servers, topics)
    return timings, steps


def _job(bootstrap_servers: str, records: Records, new: range, output: str) -> Job:
    """Make a job whose expected output is all records so far."""
    work = Work(SMALL, "1,000 records inside Airflow", records, warm=(), passes=lambda record_id: record_id < new.stop)
    return Job(work, bootstrap_servers, output)


def _request(peer: Spark, job: Job, new: range) -> dict[str, Any]:
    """Return the peer's request, with the offsets that kpipe plans by itself."""
    records, request = job.work.records, peer.request(job)
    read = {name: value for name, value in request["read"].items() if name != "subscribe"}
    offsets = {
        option: {records.topic: {str(number): _offset(records, number, at) for number in range(records.partitions)}}
        for option, at in (("startingOffsets", new.start), ("endingOffsets", new.stop))
    }
    read |= {option: json.dumps(by_topic) for option, by_topic in offsets.items()}
    return {**request, "read": {**read, "assign": json.dumps({records.topic: list(range(records.partitions))})}}


def _offset(records: Records, partition: int, record_id: int) -> int:
    return sum(1 for each in range(record_id) if records.partition_of(each) == partition)


def _run(airflow: SandboxAirflow, dag_id: str, conf: Mapping[str, Any], run_id: str) -> DagRun:
    run = airflow.api.trigger(dag_id, conf, run_id=run_id)
    state = run.wait(RUN_SECONDS)
    if state != "success":
        logs = [tail(run.log(task_id)) for task_id, ended in run.task_states().items() if ended == "failed"]
        raise BenchError(f"{dag_id} has ended: {state}. " + "\n".join(logs))
    return run


def _dags(folder: Path, records: Records, peer: Spark) -> Path:
    shutil.copytree(DAGS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    settings = {
        "source": records.topic,
        "kpipe_output": OUTPUTS[KPIPE_DAG],
        "application": str(DRIVER),
        "properties": str(_quick_start(peer, folder / "peer.properties")),
        "environment": {name: peer.environment[name] for name in SPARK_VARIABLES},
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    return folder


def _quick_start(peer: Spark, target: Path) -> Path:
    """Give the peer the JVM flags of kpipe's driver: with a thousand records, it gains nothing by compiling well."""
    target.write_text(f"{peer.properties.read_text()}spark.driver.extraJavaOptions={DRIVER_JVM}\n")
    return target
