"""The secrets of a job show nowhere while it runs, and nothing of them is left, however it ends."""

from __future__ import annotations

import contextlib
import json
import signal
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from airflow_provider_kpipe import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.contract.job import Job, pack
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.redrive.redrive import Redrive
from airflow_provider_kpipe.running.stop_requests import request_stop
from airflow_provider_kpipe.sandbox import SandboxBroker
from airflow_provider_kpipe.sandbox.ports import free_ports
from tests.kit.jobs import descendants, python_workers, running_job, wait_for
from tests.kit.leaks import files_that_reveal, reveals
from tests.kit.pipelines import Bench
from tests.kit.plans import plan_of
from tests.kit.topics import fill, numbered

HUSH = "hush-hush"

PAGES = ("environment/", "jobs/", "stages/", "stages/stage/?id=0&attempt=0", "executors/", "storage/")
ANSWERS = ("environment", "jobs", "stages", "allexecutors")


@dataclass(frozen=True)
class WithSecret(Bench):
    """A password that a plaintext listener never asks for."""

    secret: str = ""

    @property
    def settings(self) -> dict[str, str]:
        return {"bootstrap.servers": self.bootstrap, "sasl.password": self.secret}


class Nowhere(WithSecret):
    """A cluster that is not there: nobody asks it for the number of an attempt."""

    def attempt(self, plan: Plan, redrive: Redrive | None = None, **options: Any) -> Job:
        return Job(self.pipeline, plan, redrive=redrive, **options)


@pytest.fixture
def temp(tmp_path: Path) -> Path:
    """The temp folder of the task that submits."""
    folder = tmp_path / "temp"
    folder.mkdir()
    return folder


def test_a_secret_is_found_however_it_is_shown() -> None:
    bench = WithSecret("nowhere", _pipeline(), secret=HUSH)
    word = pack(bench.kafka)
    assert reveals(f"sasl.password={HUSH}", HUSH)
    assert reveals(f"spark.x={word}", HUSH)
    assert reveals(f"cut: {word[: len(word) * 3 // 4]}", "bootstrap")
    assert not reveals(f"H4sInothing {pack(WithSecret('nowhere', _pipeline()).kafka)}", HUSH)


def test_secrets_show_nowhere_though_spark_redacts_nothing(broker: SandboxBroker, tmp_path: Path, temp: Path) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["orders_kit:slowly"])
    fill(bench.bootstrap, bench.topic, numbered(50_000))
    secret, seen = uuid.uuid4().hex, uuid.uuid4().hex
    bench = WithSecret(bench.bootstrap, bench.pipeline, secret=secret)
    plan = bench.plan()
    page, events = f"http://127.0.0.1:{free_ports(1)[0]}", tmp_path / "events"
    events.mkdir()
    spark_conf = {
        "spark.redaction.regex": "nothing-at-all",
        "spark.log.level": "DEBUG",
        "spark.local.dir": str(tmp_path / "local"),
        "spark.ui.enabled": "true",
        "spark.ui.port": page.rpartition(":")[2],
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        # By the old rule it would be redacted: where it shows, a secret would show too.
        "spark.secret.of.a.user": seen,
    }
    own: dict[str, Any] = {"AIRFLOW_CONN_KAFKA_TEST": f"kafka://:{secret}@nowhere", "TMPDIR": str(temp)}

    with running_job(bench, plan, spark_conf=spark_conf, **own) as job:
        wait_for(lambda: bool(python_workers(job.pid)), "a worker")
        processes = list(_command_lines(job.pid))
        pages = dict(_pages(page))
        private = [each.name for folder in temp.glob("kpipe-run-*") for each in folder.iterdir() if each.is_file()]
        on_disk = files_that_reveal(tmp_path, secret)
        request_stop(bench.settings, plan, job.attempt, "all has been seen")
        output = job.output()
        assert job.wait() == 0, output

    assert any("kpipe.job" in each for each in processes)
    assert [each for each in processes if reveals(each, secret)] == []
    assert reveals(pages["environment"], seen)
    assert [name for name, text in pages.items() if reveals(text, secret)] == []
    assert "DEBUG" in output
    assert not reveals(output, secret)
    assert files_that_reveal(events, seen) != []
    # The driver is up: nobody has to be there any more to remove what it was given.
    assert sorted(private) == ["kpipe_engine.zip", "lock"]
    assert on_disk == files_that_reveal(tmp_path, secret) == []
    assert list(temp.iterdir()) == []


def test_nothing_is_left_of_a_submission_that_fails(temp: Path) -> None:
    bench = Nowhere("nowhere:9092", _pipeline())
    conf = {"spark.driver.memory": "much"}
    with running_job(bench, plan_of(PartitionRange(0, 0, 9, 0)), spark_conf=conf, TMPDIR=str(temp)) as job:
        output = job.output()
        assert job.wait() != 0
    assert "much" in output
    assert list(temp.iterdir()) == []


def test_nothing_is_left_of_a_submission_whose_spark_is_killed(temp: Path) -> None:
    with _hanging_submission(temp) as task:
        (submit,) = task.children()
        submit.kill()
        assert task.wait() != 0
        assert list(temp.iterdir()) == []


def test_the_next_submission_removes_what_a_killed_one_has_left(temp: Path) -> None:
    with _hanging_submission(temp) as task:
        # Before the driver is up, nobody else knows of the file.
        task.send_signal(signal.SIGKILL)
    assert [each.name for each in temp.rglob("kpipe.job")] == ["kpipe.job"]
    with _hanging_submission(temp) as task:
        assert len(list(temp.rglob("kpipe.job"))) == 1
        task.children()[0].kill()
        task.wait()
    assert list(temp.iterdir()) == []


@contextlib.contextmanager
def _hanging_submission(temp: Path) -> Iterator[psutil.Process]:
    """The process of a task, of which spark-submit has begun, and never comes as far as a driver."""
    spark = temp.with_name("spark")
    (spark / "bin").mkdir(parents=True, exist_ok=True)
    hanging = spark / "bin" / "spark-class"
    hanging.write_text("#!/bin/sh\nexec sleep 600\n")
    hanging.chmod(0o700)
    bench = Nowhere("nowhere:9092", _pipeline())
    own: dict[str, Any] = {"TMPDIR": str(temp), "SPARK_HOME": str(spark)}
    with running_job(bench, plan_of(PartitionRange(0, 0, 9, 0)), **own) as job:
        wait_for(lambda: "sleep" in _command_lines(job.pid), "spark-submit")
        yield psutil.Process(job.pid)


def _pipeline() -> KafkaPipeline:
    return KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out"))


def _command_lines(pid: int) -> Iterator[str]:
    """Arguments and environments of all that a task has started, as `ps` shows them."""
    for process in descendants(pid):
        with contextlib.suppress(psutil.NoSuchProcess):  # one that has just ended shows nothing any more
            yield from process.cmdline()
            yield from (f"{name}={value}" for name, value in process.environ().items())


def _pages(page: str) -> Iterator[tuple[str, str]]:
    """Spark's own pages, for people and for programs."""
    (application,) = json.loads(_read(f"{page}/api/v1/applications"))
    for name in PAGES:
        yield name, _read(f"{page}/{name}")
    for name in ANSWERS:
        yield name, _read(f"{page}/api/v1/applications/{application['id']}/{name}")


def _read(address: str) -> str:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return str(answer.read().decode())
