"""What tasks tell goes into Airflow's database: PostgreSQL takes less than SQLite does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_kpipe.contract.dead_letters.dialects import DIALECTS
from airflow_provider_kpipe.contract.dead_letters.messages import write_raw
from airflow_provider_kpipe.sandbox import SandboxBroker
from airflow_provider_kpipe.task_runtime.plan_xcom import push
from tests.kit.letters import LETTER
from tests.kit.pipelines import Bench
from tests.kit.postgresql import Cluster, DatabaseError, postgresql
from tests.kit.redrives import dry_run
from tests.kit.topics import Sent, fill

STRANGE = "\x00\x1b[31m\u202e"


@pytest.fixture(scope="module")
def database() -> Iterator[Cluster]:
    with postgresql() as cluster:
        cluster.ask("create table xcom (value jsonb)")
        yield cluster


def stored(database: Cluster, document: Any) -> Any:
    """As Airflow's XCom keeps it."""
    text = json.dumps(document)
    return json.loads(database.ask(f"insert into xcom values ($kpipe${text}$kpipe$) returning value").splitlines()[0])


def pushed(document: dict[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    context: Any = {"ti": SimpleNamespace(xcom_push=lambda key, value: given.update({key: value}))}
    assert push(context, "key", document) == given["key"]
    return dict(given["key"])


def test_a_dry_run_with_binary_keys_fits_the_database(broker: SandboxBroker, database: Cluster) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fault = replace(LETTER.fault, exception_class=STRANGE, message=STRANGE, occurred_at=STRANGE)
    letter = replace(LETTER, key=b"\x00\xff\x1b", pipeline=bench.topic, fault=fault)
    _, value, headers = write_raw(letter, DIALECTS["kpipe"])
    fill(bench.bootstrap, bench.dead, [Sent(value, letter.key, headers=list(headers))])

    document = pushed(dry_run(bench).to_json())

    assert document["samples"][0]["key"] == "\\x00\ufffd\\x1b"
    assert stored(database, document) == document


def test_a_checkpoint_with_a_stopped_partition_fits_the_database(broker: SandboxBroker, database: Cluster) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["faulty_kit:raises_its_key"], on_fault="stop_partition")
    fill(bench.bootstrap, bench.topic, [Sent(b"v", STRANGE.encode())])
    plan = bench.plan()
    bench.work(plan)

    document = pushed(bench.checkpoint(plan).to_json())

    assert "\\x00\\x1b[31m\\u202e" in document["partitions"][0]["reason"]
    assert stored(database, document) == document


@pytest.mark.parametrize("text", ["\x00", "\ud800"])
def test_a_text_as_it_came_is_refused(database: Cluster, text: str) -> None:
    """That this is the database where it matters."""
    with pytest.raises(DatabaseError, match="ERROR"):
        stored(database, {"key": text})
    assert stored(database, pushed({"key": text, text: [text]}))
