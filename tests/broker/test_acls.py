"""What the user of a connection has to be allowed: the list in docker/README.md, and nothing beyond it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from guarded import guarded_broker
from pipelines import Bench
from redrives import dry_run, mended, redrive
from topics import fill, numbered

from airflow_provider_kpipe.contract.offsets import PartitionRange
from airflow_provider_kpipe.exceptions import CommitError, KpipeError
from airflow_provider_kpipe.kafka.bounded_reader import read_range
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.kafka.stop_requests import request_stop
from airflow_provider_kpipe.kafka.transactions import end_open_transactions
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics

EXACT, PREFIX = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
READ, WRITE, DESCRIBE, CREATE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE
GROUP, TOPIC, WRITER = ResourceType.GROUP, ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID
Grant = tuple[ResourceType, str, ResourcePatternType, list[AclOperation]]


@pytest.fixture
def guarded() -> Iterator[SandboxBroker]:
    with guarded_broker() as running:
        yield running


@pytest.fixture
def bench(guarded: SandboxBroker) -> Bench:
    """With dead letters, and records that are not read yet."""
    made = Bench.make(guarded.bootstrap_servers, segments=["faulty_kit:odd_ones_fail"], chunk_records=5)
    create_topics(made.bootstrap, f"{made.output}.hidden")
    fill(made.bootstrap, made.topic, numbered(10))
    plan = made.plan("before")
    made.work(plan)
    made.checkpoint(plan)
    fill(made.bootstrap, made.topic, numbered(10, start=10))
    return made


def granted_to_run(bench: Bench) -> list[Grant]:
    return [
        (GROUP, bench.pipeline.group, PREFIX, [READ]),
        (TOPIC, bench.topic, EXACT, [READ, DESCRIBE]),
        (TOPIC, bench.output, EXACT, [WRITE, DESCRIBE]),
        (TOPIC, bench.dead, EXACT, [WRITE, DESCRIBE]),
        (WRITER, "kpipe", PREFIX, [WRITE, DESCRIBE]),
    ]


def granted_to_redrive(bench: Bench) -> list[Grant]:
    return [
        (GROUP, "kpipe.redrive", PREFIX, [READ]),
        (TOPIC, bench.dead, EXACT, [READ, WRITE]),
        (TOPIC, f"{bench.dead}.redriven", EXACT, [READ, WRITE, CREATE]),
        (TOPIC, bench.output, EXACT, [WRITE]),
    ]


def allow_only(bench: Bench, grants: list[Grant]) -> None:
    """Whatever else there is belongs to somebody who never comes."""
    locks = [(kind, "*", EXACT, "User:nobody", [AclOperation.ALL]) for kind in (GROUP, TOPIC, WRITER)]
    # The broker's own requests to itself. It comes last: from then on, nobody may change what is allowed.
    own = (ResourceType.BROKER, "kafka-cluster", EXACT, "User:ANONYMOUS", [AclOperation.CLUSTER_ACTION])
    admin = AdminClient(bench.settings)
    for kind, name, pattern, user, operations in [
        *((kind, name, pattern, "User:ANONYMOUS", operations) for kind, name, pattern, operations in grants),
        *locks,
        own,
    ]:
        wanted = [AclBinding(kind, name, pattern, user, "*", each, AclPermissionType.ALLOW) for each in operations]
        for made in admin.create_acls(wanted).values():
            made.result(30)


def test_what_is_listed_for_a_pipeline_is_enough(bench: Bench) -> None:
    allow_only(bench, granted_to_run(bench))
    plan = bench.plan("after")
    request_stop(bench.settings, plan, "another", "no reason")
    assert [each.counts.read for each in bench.work(plan)] == [10]
    end_open_transactions(bench.settings, plan.transactional_ids, 30)
    assert bench.checkpoint(plan).partitions[0].committed == 20


def test_what_is_listed_for_redrives_is_enough(bench: Bench) -> None:
    allow_only(bench, [*granted_to_run(bench), *granted_to_redrive(bench)])
    assert dry_run(bench).outcomes["redriven"] == 5
    counts = redrive(mended(bench))
    assert (counts.read, counts.named) == (5, {"kpipe:redriven": 5})
    assert dry_run(bench).outcomes["already_redriven"] == 5


def test_what_is_missing_is_named(bench: Bench) -> None:
    _, *others = granted_to_run(bench)
    own = [(GROUP, bench.pipeline.group, EXACT, [DESCRIBE]), (GROUP, f"{bench.pipeline.group}.kpipe", PREFIX, [READ])]
    allow_only(bench, [*own, *others])
    plan = bench.plan("after")
    bench.work(plan)
    with pytest.raises(CommitError, match=r"refused to commit .*: allow the connection's user to read the group"):
        bench.checkpoint(plan)
    with Positions(bench.settings) as positions:
        with pytest.raises(KpipeError, match=r"about topic .*: allow the connection's user to describe the topic"):
            positions.topic(bench.output + ".hidden")
        with pytest.raises(KpipeError, match=r"about group .*: allow the connection's user to read the group"):
            positions.members("another")
    with pytest.raises(KpipeError, match=r"from 0 \(.*: allow the connection's user to"):
        list(read_range(bench.settings, bench.dead, PartitionRange(0, 0, 1, None)))
