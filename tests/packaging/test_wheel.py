"""What users install: the wheel alone, without the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from packaging.requirements import Requirement

from airflow_provider_kpipe.sandbox import SandboxBroker

MakeTopic = Callable[..., str]

PACKAGE = "airflow_provider_kpipe"


@pytest.fixture(scope="module")
def wheel_files(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture
def outside(tmp_path: Path, clean_environment: Path) -> dict[str, str]:
    """An environment of variables that knows the clean environment, Java and a folder, and nothing else."""
    java = {"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}
    return {
        **java,
        "PATH": f"{clean_environment / 'bin'}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path),
    }


def run_python(clean_environment: Path, arguments: list[str], variables: dict[str, str]) -> str:
    done = subprocess.run(
        [clean_environment / "bin" / "python", *arguments],
        cwd=variables["HOME"],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize(
    "name",
    [
        f"{PACKAGE}/py.typed",
        f"{PACKAGE}/contract/pipeline/declaration.py",
        f"{PACKAGE}/sandbox/kafka-jars.lock.json",
        f"{PACKAGE}/spark_jobs/kpipe_run.py",
        f"{PACKAGE}/spark_jobs/kpipe_engine/partition_worker.py",
    ],
)
def test_holds(wheel_files: list[str], name: str) -> None:
    assert name in wheel_files


def test_holds_every_module_and_no_other_package(wheel_files: list[str], checkout: Path) -> None:
    package = {f"{path.relative_to(checkout)}" for path in (checkout / PACKAGE).rglob("*.py")}
    engine = {f"{PACKAGE}/{path.relative_to(checkout)}" for path in (checkout / "spark_jobs").rglob("*.py")}
    assert {name for name in wheel_files if name.endswith(".py")} == package | engine
    tops = {name.partition("/")[0] for name in wheel_files}
    assert {top for top in tops if not top.endswith(".dist-info")} == {PACKAGE}


def test_says_who_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {Path(name).name: name for name in archive.namelist() if ".dist-info/" in name}
        entry_points = archive.read(names["entry_points.txt"]).decode()
        assert archive.read(names["LICENSE"]).lstrip().startswith(b"Apache License")
    assert "[apache_airflow_provider]" in entry_points
    assert f"provider_info = {PACKAGE}.provider_info:get_provider_info" in entry_points


@pytest.fixture
def unpacked(distributions: Path, tmp_path: Path) -> Path:
    """The source distribution."""
    (source,) = distributions.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    return folder


def test_source_distribution_builds_the_same_wheel(unpacked: Path, wheel: Path, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=unpacked,
        check=True,
        capture_output=True,
    )
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_source_distribution_has_the_files_that_its_tests_read(unpacked: Path) -> None:
    readers = [
        "tests/unit/test_docs.py",
        "tests/unit/test_readme.py",
        "tests/unit/test_reference.py",
        "tests/unit/bench",
    ]
    readers += ["tests/unit/formats/test_guide.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *readers], cwd=unpacked, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("pins", ["dev", "runtime"])
def test_pins_satisfy_what_the_wheel_requires(wheel: Path, checkout: Path, pins: str) -> None:
    pinned = read_pins(checkout / "requirements" / f"{pins}.txt")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(name).decode())
    required = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    if pins == "runtime":
        # The image for Airflow has no extras: they are for executors.
        required = [each for each in required if each.marker is None or each.marker.evaluate({"extra": ""})]
    assert required
    for requirement in required:
        assert requirement.specifier.contains(pinned[requirement.name]), requirement


@pytest.mark.parametrize("name", ["build", "runtime", "spark-worker"])
def test_images_have_the_versions_that_are_tested(checkout: Path, name: str) -> None:
    pinned = read_pins(checkout / "requirements" / f"{name}.txt")
    tested = read_pins(checkout / "requirements" / "dev.txt")
    shared = pinned.keys() & tested.keys()
    assert shared
    assert {each: pinned[each] for each in shared} == {each: tested[each] for each in shared}


def read_pins(file: Path) -> dict[str, str]:
    """Versions by name. Where a version differs by platform or Python, the markers decide."""
    lines = [line.rstrip(" \\") for line in file.read_text().splitlines() if "==" in line and line[0] not in " #"]
    requirements = [Requirement(line) for line in lines]
    return {
        each.name: str(each.specifier).removeprefix("==")
        for each in requirements
        if each.marker is None or each.marker.evaluate()
    }


def test_clean_environment_is_consistent(clean_environment: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    done = subprocess.run(
        [uv, "pip", "check", "--python", clean_environment], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_import_takes_the_standard_library_only(clean_environment: Path, outside: dict[str, str]) -> None:
    # What is loaded before, by the environment's own .pth files, is not ours.
    code = (
        "import json, sys; before = set(sys.modules); import airflow_provider_kpipe; "
        "print(json.dumps(sorted({name.partition('.')[0] for name in set(sys.modules) - before})))"
    )
    loaded = set(json.loads(run_python(clean_environment, ["-c", code], outside)))
    assert loaded - sys.stdlib_module_names == {PACKAGE}


def test_airflow_knows_the_provider(clean_environment: Path, outside: dict[str, str]) -> None:
    code = (
        "import json; from airflow.providers_manager import ProvidersManager; "
        "print(json.dumps(ProvidersManager().providers['airflow-provider-kpipe'].data))"
    )
    info = json.loads(run_python(clean_environment, ["-c", code], outside).splitlines()[-1])
    assert info["package-name"] == "airflow-provider-kpipe"
    assert f"{PACKAGE}.operators.run" in info["operators"][0]["python-modules"]


def test_runs_a_pipeline(
    clean_environment: Path,
    outside: dict[str, str],
    checkout: Path,
    tmp_path: Path,
    broker: SandboxBroker,
    make_topic: MakeTopic,
) -> None:
    source, output = make_topic("wheel", partitions=2), make_topic("wheel-output", partitions=2)
    sent = {partition: [f"record {partition} {number}" for number in range(50)] for partition in range(2)}
    send(broker, source, sent)

    for file in (Path(__file__).parent / "outside").glob("*.py"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    kafka = {"conn_type": "kafka", "extra": {"bootstrap.servers": broker.bootstrap_servers}}
    spark = {"conn_type": "spark", "host": "local[2]"}
    connections = {"AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(kafka), "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark)}
    printed = run_python(clean_environment, ["run_pipeline.py", source, output], {**outside, **connections})

    report = json.loads(printed.splitlines()[-1])
    assert report["state"] == "success", printed
    assert report["tasks"] == {f"pipeline.{step}": "success" for step in ("plan", "run", "checkpoint")}
    assert [path for path in report["path"] + report["modules"] if path.startswith(str(checkout))] == []
    assert read_values(broker, output, sent) == {
        partition: [value.upper() for value in values] for partition, values in sent.items()
    }
    assert committed_offsets(broker, group=source, topic=source) == {0: 50, 1: 50}


def send(broker: SandboxBroker, topic: str, values: dict[int, list[str]]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for partition, sent in values.items():
        for value in sent:
            producer.produce(topic, value.encode(), partition=partition)
    assert producer.flush(60) == 0


def read_values(broker: SandboxBroker, topic: str, like: dict[int, list[str]]) -> dict[int, list[str]]:
    """Everything in the topic, by partition, up to the end of each."""
    values: dict[int, list[str]] = {partition: [] for partition in like}
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in like])
    unread = set(like)
    while unread:
        message: Any = consumer.poll(60)
        assert message is not None, f"{unread} did not come to an end"
        if message.error() is None:
            values[message.partition()].append(message.value().decode())
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            unread.discard(message.partition())
    consumer.close()
    return values


def committed_offsets(broker: SandboxBroker, *, group: str, topic: str) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    found = consumer.committed([TopicPartition(topic, partition) for partition in range(2)], timeout=60)
    consumer.close()
    return {each.partition: each.offset for each in found}
