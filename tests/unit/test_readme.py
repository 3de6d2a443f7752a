"""Who does what the README or the quickstart says gets there."""

from __future__ import annotations

import json
import re
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pendulum
import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization
from confluent_kafka import Message
from docs_kit import QUICKSTART, README, ROOT, python_blocks

from airflow_provider_kpipe import KafkaPipeline
from airflow_provider_kpipe.record import Origin, Record
from airflow_provider_kpipe.sandbox.tools import TOOLS
from kpipe_engine.processing.segment_chain import find_segment


@pytest.fixture(params=[README, QUICKSTART], ids=lambda page: page.stem)
def page(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


@pytest.fixture
def text(page: Path) -> str:
    return page.read_text()


@pytest.fixture
def dag(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DAG:
    """The DAG that Airflow finds where the files of the page were put."""
    for block in python_blocks(page):
        (name,) = re.findall(r"\A# dags/(\w+\.py)$", block, re.MULTILINE)
        (tmp_path / name).write_text(block)
    monkeypatch.syspath_prepend(tmp_path)
    # There is another module of this name among the example DAGs: neither is to be taken for the other.
    monkeypatch.setitem(sys.modules, "orders_pipeline", None)
    del sys.modules["orders_pipeline"]
    found = DagBag(tmp_path)
    assert found.import_errors == {}
    (dag,) = found.dags.values()
    return dag


def the_run(dag: DAG) -> Any:
    return dag.get_task("orders.run")


@pytest.fixture
def orders(dag: DAG) -> KafkaPipeline:
    declared: KafkaPipeline = the_run(dag).pipeline
    return declared


def test_its_files_are_a_dag_and_its_segments(dag: DAG, tmp_path: Path) -> None:
    assert [each.task_id for each in dag.topological_sort()] == ["orders.plan", "orders.run", "orders.checkpoint"]
    assert the_run(dag).py_files == [str(tmp_path / "orders_pipeline.py")]


def test_its_segments_work(text: str, orders: KafkaPipeline) -> None:
    (order,) = re.findall(r"echo '(.*)' \|", text)
    message: Any = Message(topic="orders", partition=0, offset=0, value=order.encode())
    record = Record(message, Origin("run"))
    for path in orders.segments:
        record = find_segment(path)(record)
    assert json.loads(record.value) == {**json.loads(order), "total": 19.0}


def test_its_topics_are_those_of_the_pipeline(text: str, orders: KafkaPipeline) -> None:
    (made,) = re.findall(r"for topic in (.*); do", text)
    assert made.split() == [*orders.topic_roles.values()]


def test_its_connections_are_those_of_the_pipeline(text: str, dag: DAG, orders: KafkaPipeline) -> None:
    added = re.findall(r"airflow connections add (\w+)", text)
    assert added == [orders.source.conn_id, the_run(dag).conn_id]


def test_the_page_names_existing_tasks_groups_and_topics(text: str, dag: DAG, orders: KafkaPipeline) -> None:
    assert {"orders.run", "orders.checkpoint"} <= dag.task_dict.keys() & set(re.findall(r"`([\w.]+)`", text))
    assert f"airflow dags unpause {dag.dag_id}\n" in text
    assert f"--group {orders.group}\n" in text
    assert f"--topic {orders.destination.topic} " in text


def test_unpaused_it_runs_at_once_and_then_every_hour(text: str, dag: DAG) -> None:
    assert "unpause it: it runs at once, and then every hour" in " ".join(text.split())
    scheduled = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    first = scheduled.next_dagrun_info(last_automated_run_info=None)
    assert first is not None
    second = scheduled.next_dagrun_info(last_automated_run_info=first)
    assert second is not None
    assert first.run_after <= pendulum.now("UTC")
    assert second.run_after - first.run_after == timedelta(hours=1)


def test_the_commands_of_the_readme_are_targets() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`?make ([a-z]+)", README.read_text()))
    assert {"demo", "test", "bench", "lint"} <= named <= targets


def test_the_quickstart_has_the_files_of_the_readme() -> None:
    assert python_blocks(QUICKSTART) == python_blocks(README)


def test_the_quickstart_has_the_commands_of_the_readme() -> None:
    (section,) = re.findall(r"^## Use it\n(.*?)^## ", README.read_text(), re.MULTILINE | re.DOTALL)
    shown = [
        line.strip()
        for block in re.findall(r"^ *```\n(.*?)^ *```$", section, re.M | re.S)
        for line in block.split("\n")
    ]
    assert len(shown) >= 10
    assert set(shown) <= {line.strip() for line in QUICKSTART.read_text().splitlines()}


def test_the_quickstart_has_a_name_for_each_tool_that_it_calls() -> None:
    text = QUICKSTART.read_text()
    named = dict(re.findall(r"^(kafka-[a-z-]+\.sh)\(\) \{ tool ([a-z-]+) ", text, re.MULTILINE))
    assert {f"{tool}.sh" for tool in named.values()} == named.keys() == set(re.findall(r"kafka-[a-z-]+\.sh", text))
    assert set(named.values()) <= TOOLS.keys()
