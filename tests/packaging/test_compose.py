"""The compose file, read without Docker: what it names has to be there."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from cryptography.fernet import Fernet

from airflow_provider_kpipe.sandbox import SandboxBroker

CHECKOUT = Path(__file__).parents[2]
DOCKER = CHECKOUT / "docker"
COMPOSE_FILE = DOCKER / "compose.yaml"

Service = dict[str, Any]
SERVICES: dict[str, Service] = yaml.safe_load(COMPOSE_FILE.read_text())["services"]
each_service = pytest.mark.parametrize("service", [pytest.param(each, id=name) for name, each in SERVICES.items()])


def environment_of_all() -> Iterator[tuple[str, str]]:
    for service in SERVICES.values():
        yield from ((name, str(value)) for name, value in service.get("environment", {}).items())


@pytest.fixture
def env_file(tmp_path: Path) -> Path:
    """What docker/make_env.sh writes."""
    subprocess.run(["sh", DOCKER / "make_env.sh", tmp_path / ".env"], check=True)
    return tmp_path / ".env"


@each_service
def test_image_is_pinned_by_a_tag(service: Service) -> None:
    _, _, tag = service["image"].partition(":")
    assert tag not in ("", "latest")


@each_service
def test_build_target_is_a_stage(service: Service) -> None:
    stages = re.findall(r"^FROM .* AS (\S+)$", (DOCKER / "Dockerfile").read_text(), re.MULTILINE)
    for build in [service["build"]] if "build" in service else []:
        assert (DOCKER / build["context"] / build["dockerfile"]).samefile(DOCKER / "Dockerfile")
        assert build["target"] in stages


@each_service
def test_ports_are_published_to_this_machine_only(service: Service) -> None:
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in service.get("ports", []))


@each_service
def test_waits_for_what_it_needs(service: Service) -> None:
    for name, wait in service.get("depends_on", {}).items():
        needed = SERVICES[name]
        healthy_or_done = "service_healthy" if "healthcheck" in needed else "service_completed_successfully"
        assert wait["condition"] == healthy_or_done
        # A service that is not started could never become healthy: the wait for it has to be one that may be skipped.
        assert needed.get("profiles") in (None, service.get("profiles")) or wait.get("required") is False


def test_every_service_that_ends_by_itself_is_waited_for_by_another() -> None:
    """Compose knows by this alone that it is meant to end: else `up --wait` fails (docker/compose issue 10596)."""
    ends = {name for name, service in SERVICES.items() if service.get("restart", "no") == "no"}
    waited_for = {
        name
        for service in SERVICES.values()
        for name, wait in service.get("depends_on", {}).items()
        if wait["condition"] == "service_completed_successfully"
    }
    assert ends == waited_for == {"airflow-init", "topics"}


@each_service
def test_mounts_are_there(service: Service) -> None:
    volumes = yaml.safe_load(COMPOSE_FILE.read_text())["volumes"]
    for mount in service.get("volumes", []):
        source = mount.split(":")[0]
        assert (DOCKER / source).is_dir() if source.startswith(".") else source in volumes


def test_airflow_knows_every_setting(tmp_path: Path) -> None:
    code = (
        "import json; from airflow.configuration import conf; "
        "print(json.dumps({name: list(of['options']) for name, of in conf.configuration_description.items()}))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "AIRFLOW_HOME": str(tmp_path)},
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    known = {(section, option) for section, options in json.loads(printed).items() for option in options}
    used = {tuple(name.lower().split("__")[1:]) for name, _ in environment_of_all() if name.startswith("AIRFLOW__")}
    assert used
    assert used - known == set()


def test_kafka_knows_every_setting(broker: SandboxBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    (node,) = admin.describe_cluster().result().nodes
    (answer,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, str(node.id))]).values()
    names = [name for name in SERVICES["kafka"]["environment"] if name.startswith("KAFKA_")]
    used = {name.removeprefix("KAFKA_").lower().replace("_", ".") for name in names}
    assert used - answer.result().keys() == set()


def test_every_variable_is_in_the_env_file_and_used(env_file: Path) -> None:
    asked = set(re.findall(r"(?<!\$)\$\{(\w+):\?", COMPOSE_FILE.read_text()))
    assert set(re.findall(r"(?<!\$)\$\{(\w+)", COMPOSE_FILE.read_text())) == asked
    assert read_env(env_file).keys() == asked | {"COMPOSE_PROFILES"}
    assert {each for service in SERVICES.values() for each in service.get("profiles", [])} == {
        read_env(env_file)["COMPOSE_PROFILES"]
    }


def test_env_file_holds_fresh_secrets_for_this_user_only(env_file: Path, tmp_path: Path) -> None:
    subprocess.run(["sh", DOCKER / "make_env.sh", tmp_path / "second"], check=True)
    first, second = read_env(env_file), read_env(tmp_path / "second")
    secrets = [name for name, value in read_env(DOCKER / ".env.example").items() if value == ""]
    assert len({variables[name] for variables in (first, second) for name in secrets}) == 2 * len(secrets)
    Fernet(first["AIRFLOW_FERNET_KEY"])
    assert stat.S_IMODE(env_file.stat().st_mode) == 0o600


def test_env_file_is_never_written_over(env_file: Path) -> None:
    before = env_file.read_text()
    again = subprocess.run(["sh", DOCKER / "make_env.sh", env_file], capture_output=True, check=False)
    assert again.returncode != 0
    assert env_file.read_text() == before


def test_connections_in_the_env_file_are_the_services(env_file: Path) -> None:
    variables = read_env(env_file)
    assert json.loads(variables["KAFKA_CONNECTION"])["extra"]["bootstrap.servers"] == "kafka:9092"
    assert "PLAINTEXT://kafka:9092" in SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
    host, _, port = variables["SPARK_CONNECTION"].removeprefix("spark://").partition(":")
    assert f"--host {host} --port {port}" in SERVICES[host]["command"]
    assert SERVICES["spark-worker"]["command"].endswith(variables["SPARK_CONNECTION"])


def read_env(file: Path) -> dict[str, str]:
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return {name: value.strip("'") for name, _, value in (line.partition("=") for line in lines)}


def has_compose_client() -> bool:
    """Whether there is a client: it reads the file itself, and needs no engine for that."""
    docker = shutil.which("docker")
    return docker is not None and (
        subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode == 0
    )


if has_compose_client():

    def test_compose_itself_reads_it(env_file: Path) -> None:
        files: list[str | Path] = ["--file", COMPOSE_FILE, "--env-file", env_file]
        command = ["docker", "compose", *files, "config", "--format", "json"]
        read = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        assert json.loads(read)["services"].keys() == SERVICES.keys()
