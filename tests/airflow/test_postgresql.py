"""A real Airflow whose database is a PostgreSQL, which refuses some of the texts that SQLite takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_kpipe.contract.dead_letters.dialects import DIALECTS
from airflow_provider_kpipe.contract.dead_letters.messages import write_envelope, write_raw
from airflow_provider_kpipe.sandbox import SandboxBroker
from demo.airflow_server import SandboxAirflow
from demo.airflow_settings import kafka_connection
from tests.kit.letters import LETTER
from tests.kit.pipelines import Bench
from tests.kit.postgresql import Cluster, postgresql
from tests.kit.topics import Sent, fill

RUN_SECONDS = 120
TEXT = "\x00\x1b[31m\u202e"
SHOWN = "\\x00\\x1b[31m\\u202e"
KEYS = (b"\x00\xff\x1b[2J", "\ud800".encode(errors="surrogatepass"), TEXT.encode())
SHOWN_KEYS = ["\\x00\ufffd\\x1b[2J", "\ufffd\ufffd\ufffd", SHOWN, "\\x00\ufffd\\x1b[2J"]
DAGS = """
from airflow.sdk import DAG, task
from airflow_provider_kpipe import KafkaDeadLetter, KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.operators.redrive import KpipeRedriveOperator, redrive_params

pipeline = KafkaPipeline(
    {name!r}, KafkaSource({topic!r}), KafkaDestination({output!r}), dead_letter=KafkaDeadLetter({dead!r})
)
with DAG("dry_run", schedule=None, params=redrive_params(fixed={{"dry_run": True}})):
    KpipeRedriveOperator(task_id="redrive", pipeline=pipeline)

with DAG("as_it_came", schedule=None):

    @task
    def tell():
        return {{"key": "\\x00"}}

    tell()
"""


@pytest.fixture(scope="module")
def database() -> Iterator[Cluster]:
    with postgresql() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def on_postgresql(
    broker: SandboxBroker, database: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SandboxAirflow]:
    dags = tmp_path_factory.mktemp("dags")
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.dead, [letter_of(bench, key) for key in KEYS])
    fill(bench.bootstrap, bench.dead, [enveloped_letter_of(bench, KEYS[0])])
    names = {"name": bench.topic, "topic": bench.topic, "output": bench.output, "dead": bench.dead}
    (dags / "dags.py").write_text(DAGS.format(**names))
    connections = {"kafka_default": kafka_connection(broker.bootstrap_servers)}
    with SandboxAirflow(
        dags, connections=connections, database=database.address, wait_for=("dry_run", "as_it_came")
    ) as running:
        yield running


def letter_of(bench: Bench, key: bytes) -> Sent:
    fault = replace(LETTER.fault, exception_class=TEXT, message=TEXT, occurred_at=TEXT)
    headers = ((TEXT, b"\x00\xff"), (TEXT, "\ud800".encode(errors="surrogatepass")))
    source = replace(LETTER.source, topic=bench.topic)
    letter = replace(LETTER, key=key, headers=headers, source=source, pipeline=bench.topic, fault=fault)
    _, value, written = write_raw(letter, DIALECTS["kpipe"])
    return Sent(value, key, headers=list(written))


def enveloped_letter_of(bench: Bench, key: bytes) -> Sent:
    """Put halves of a pair into a letter: they are no UTF-8, and come only as JSON spells them."""
    source = replace(LETTER.source, topic=bench.topic, offset=6)
    letter = replace(LETTER, key=key, source=source, pipeline=bench.topic)
    _, value, headers = write_envelope(letter, DIALECTS["kpipe"])
    document = json.loads(value)
    document["fault"] |= {"exception_class": "\ud800", "message": f"\udfff{TEXT}"}
    return Sent(json.dumps(document).encode(), key, headers=list(headers))


def xcom_in(database: Cluster, dag_id: str, key: str) -> Any:
    """As it lies in the database, without Airflow."""
    found = database.ask(f"select value from xcom where dag_id = '{dag_id}' and key = '{key}'").splitlines()
    return json.loads(found[0]) if found else None


def test_a_dry_run_over_binary_keys_is_green_and_its_xcom_comes_back(
    on_postgresql: SandboxAirflow, database: Cluster
) -> None:
    run = on_postgresql.api.trigger("dry_run", {"each_letter": True})
    assert run.wait(RUN_SECONDS) == "success", run.log("redrive")
    assert run.tries("redrive") == 1

    told = run.xcom("redrive")
    assert [each["key"] for each in told["samples"]] == SHOWN_KEYS
    assert [each["message"] for each in told["samples"]] == [SHOWN, SHOWN, SHOWN, f"\\udfff{SHOWN}"]
    assert told["exception_classes"] == {SHOWN: 3, "\\ud800": 1}
    assert told["outcomes"]["redriven"] == len(SHOWN_KEYS)
    assert run.xcom("redrive", "progress") == told
    assert xcom_in(database, "dry_run", "return_value") == told
    assert "\x1b" not in run.log("redrive")
    assert SHOWN in run.log("redrive")


def test_a_text_as_it_came_fails_its_task(on_postgresql: SandboxAirflow, database: Cluster) -> None:
    """That this is the database where it matters."""
    run = on_postgresql.api.trigger("as_it_came")
    assert run.wait(RUN_SECONDS) == "failed"
    assert "422" in run.log("tell"), run.log("tell")
    assert run.xcom("tell") is None
    assert xcom_in(database, "as_it_came", "return_value") is None
