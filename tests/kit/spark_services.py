"""A Spark master and a worker of this machine, started by the commands and the properties of the compose file."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
import yaml

from airflow_provider_kpipe import die_with_parent
from airflow_provider_kpipe.sandbox.ports import free_ports
from tests.kit.processes import outlasting

DOCKER = Path(__file__).parents[2] / "docker"
START_SECONDS = 60.0


@dataclass(frozen=True)
class SparkServices:
    """One worker behind a master."""

    master: str
    page: str
    """Of the master, for programs."""

    work: Path
    """Where the worker gives each executor a folder."""

    variables: Mapping[str, str]
    """What a driver needs to know besides: the secret, and where the properties are."""

    def state(self) -> str:
        with urllib.request.urlopen(self.page, timeout=5) as answer:
            return str(answer.read().decode())


@contextlib.contextmanager
def spark_services(environment: Mapping[str, str], folder: Path) -> Iterator[SparkServices]:
    """Both are up in the block, and whatever they started is gone after it. `environment` finds `spark-class`."""
    port, master_page, worker_page = map(str, free_ports(3))
    here = {"spark-master": "127.0.0.1", "7077": port, "8090": master_page, "8091": worker_page}
    own = {
        "_SPARK_AUTH_SECRET": os.urandom(16).hex(),
        "SPARK_CONF_DIR": str(DOCKER),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    work, log = folder / "work", folder / "log"
    services = SparkServices(f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{master_page}/json/", work, own)
    commands = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]
    with contextlib.ExitStack() as running:
        for name, said in (("spark-master", '"aliveworkers" : 0'), ("spark-worker", '"aliveworkers" : 1')):
            command = re.sub("|".join(here), lambda found: here[found[0]], commands[name]["command"])
            running.enter_context(_process(command, {**environment, **own, "SPARK_WORKER_DIR": str(work)}, log))
            _wait_for(services, said, log)
        yield services


@contextlib.contextmanager
def _process(command: str, variables: Mapping[str, str], log: Path) -> Iterator[None]:
    launcher = [sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid())]
    with log.open("ab") as said:
        process = psutil.Popen(
            [*launcher, *shlex.split(command)], env=dict(variables), stdout=said, stderr=subprocess.STDOUT
        )
    try:
        yield
    finally:
        # A worker that is killed cannot end its executors.
        family = [*process.children(recursive=True), process]
        for each in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        process.wait()
        outlasting(family, 10)


def _wait_for(services: SparkServices, text: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if text in services.state():
                return
        time.sleep(0.2)
    raise AssertionError(f"{services.page} did not say {text}:\n{log.read_text()}")
