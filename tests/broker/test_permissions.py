"""A cluster on which the connection's user may not use something: the partition says what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from airflow_provider_kpipe.contract.permissions import REMEDY
from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from airflow_provider_kpipe.sandbox import SandboxBroker
from kpipe_engine.writing import fencing
from tests.kit.gated import SEGMENT, gated, in_the_middle
from tests.kit.guarded import guarded_broker
from tests.kit.jobs import wait_for
from tests.kit.permissions import ANY_NAME
from tests.kit.pipelines import Bench
from tests.kit.redrives import order, redrive, work
from tests.kit.topics import fill, numbered, read_all

# All of the topic but the batch that is read next stays on the broker.
FEW = {"queued.min.messages": "1", "queued.max.messages.kbytes": "1", "fetch.message.max.bytes": "200"}
both_deliveries = pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
seen_or_not = pytest.mark.parametrize("seen", [True, False], ids=["may be seen", "may not be seen"])


@pytest.fixture(scope="module")
def strict_broker() -> Iterator[SandboxBroker]:
    with guarded_broker() as running:
        yield running


@pytest.fixture(autouse=True)
def short_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client looks for the coordinator of a group for as long as it is told to."""
    monkeypatch.setattr(fencing, "ANSWER_SECONDS", 2.0)


def filled(broker: SandboxBroker, delivery: Delivery = "exactly_once", **spec: Any) -> Bench:
    bench = Bench.make(broker.bootstrap_servers, delivery=delivery, **spec)
    fill(bench.bootstrap, bench.topic, numbered(5))
    return bench


def forbid(bench: Bench, kind: ResourceType, name: str, seen: bool) -> None:
    """What there is a rule about is for those whom it names."""
    user = "User:ANONYMOUS" if seen else "User:somebody"
    what = (kind, name, ResourcePatternType.LITERAL, user, "*", AclOperation.DESCRIBE, AclPermissionType.ALLOW)
    admin = AdminClient(bench.settings)
    (made,) = admin.create_acls([AclBinding(*what)]).values()
    made.result(30)
    wait_for(lambda: bool(admin.describe_acls(AclBindingFilter(*what)).result(30)), "the rule")


def allow_again(bench: Bench, name: str) -> None:
    any_rule = AclBindingFilter(
        ResourceType.ANY, name, ResourcePatternType.ANY, ANY_NAME, ANY_NAME, AclOperation.ANY, AclPermissionType.ANY
    )
    admin = AdminClient(bench.settings)
    (gone,) = admin.delete_acls([any_rule]).values()
    gone.result(30)
    wait_for(lambda: not admin.describe_acls(any_rule).result(30), "the rule to go")


def assert_stopped_over(thing: str, progress: PartitionProgress) -> None:
    assert (progress.state, progress.next_offset) == ("stopped", 0)
    assert (progress.reason or "").startswith(f"the connection's user may not use the {thing} (")
    assert (progress.reason or "").endswith(f"): {REMEDY}")


@seen_or_not
def test_a_transactional_id(strict_broker: SandboxBroker, seen: bool) -> None:
    bench = filled(strict_broker)
    plan = bench.plan()
    job = bench.attempt(plan)
    (writer,) = plan.transactional_ids
    forbid(bench, ResourceType.TRANSACTIONAL_ID, writer, seen)
    assert_stopped_over(f"transactional id {writer!r}", *bench.work(plan, job=job))


@both_deliveries
@seen_or_not
def test_the_group_of_what_is_stored(strict_broker: SandboxBroker, delivery: Delivery, seen: bool) -> None:
    bench = filled(strict_broker, delivery)
    plan = bench.plan()
    job = bench.attempt(plan)
    forbid(bench, ResourceType.GROUP, plan.progress_group(), seen)
    assert_stopped_over(f"group {plan.progress_group()!r}", *bench.work(plan, job=job))


@both_deliveries
@seen_or_not
def test_the_source_topic(strict_broker: SandboxBroker, delivery: Delivery, seen: bool) -> None:
    bench = filled(strict_broker, delivery)
    plan = bench.plan()
    job = bench.attempt(plan)
    forbid(bench, ResourceType.TOPIC, bench.topic, seen)
    assert_stopped_over(f"topic {bench.topic!r}", *bench.work(plan, job=job))


@pytest.mark.parametrize("segments", [[], ["orders_kit:unhurriedly"]], ids=["at the end", "while records are handled"])
def test_a_topic_that_may_be_seen_and_not_be_written_to(strict_broker: SandboxBroker, segments: list[str]) -> None:
    """In a transaction, nothing of the chunk is sent then, and no record is told why."""
    bench = filled(strict_broker, segments=segments)
    fill(bench.bootstrap, bench.topic, numbered(1_000))
    plan = bench.plan()
    job = bench.attempt(plan)
    forbid(bench, ResourceType.TOPIC, bench.output, seen=True)

    (progress,) = bench.work(plan, job=job)

    assert (progress.state, progress.next_offset) == ("stopped", 0)
    assert (progress.reason or "").startswith(
        f"the connection's user may not write to one of the topics {bench.output!r}, {bench.dead!r}, or to one"
    )
    assert "Topic authorization failed" in (progress.reason or "")


def test_the_ledger_of_a_redrive(strict_broker: SandboxBroker) -> None:
    bench = filled(strict_broker, segments=["faulty_kit:odd_ones_fail"])
    bench.work(bench.plan())
    redrive(bench, "first", target="source")
    made = order(bench, "second", target="source")
    forbid(bench, ResourceType.TOPIC, made.redrive.ledger_topic, seen=True)
    assert_stopped_over(f"topic {made.redrive.ledger_topic!r}", *work(bench, made))


LOST = ["the output", "the dead letters", "the source", "all of the source", "the group of what is stored"]
LOST_BY = {"exactly_once": [*LOST, "the transactional id"], "at_least_once": LOST}


@pytest.mark.parametrize(("delivery", "lost"), [(each, lost) for each, some in LOST_BY.items() for lost in some])
def test_a_permission_revoked_in_the_middle_of_a_run_stops_it_without_loss(
    strict_broker: SandboxBroker, delivery: Delivery, lost: str, tmp_path: Path
) -> None:
    """Of the source, next to nothing is fetched ahead: otherwise the run might have all that it needs of it."""
    gate, records = tmp_path / "gate", gated(numbered(40), 15, tmp_path / "gate")
    segments = [SEGMENT, "faulty_kit:odd_ones_fail"]
    made = Bench.make(
        strict_broker.bootstrap_servers,
        delivery=delivery,
        chunk_records=10,
        segments=segments,
        max_dead_letter_ratio=None,
    )
    bench = replace(made, login=FEW)
    fill(bench.bootstrap, bench.topic, records, **{"batch.num.messages": 5})
    plan = bench.plan()
    (writer,) = plan.transactional_ids
    kind, name = {
        "the output": (ResourceType.TOPIC, bench.output),
        "the dead letters": (ResourceType.TOPIC, bench.dead),
        "the source": (ResourceType.TOPIC, bench.topic),
        "all of the source": (ResourceType.TOPIC, bench.topic),
        "the group of what is stored": (ResourceType.GROUP, plan.progress_group()),
        "the transactional id": (ResourceType.TRANSACTIONAL_ID, writer),
    }[lost]
    with in_the_middle(bench, plan, 10, gate) as working:
        forbid(bench, kind, name, seen=lost != "all of the source")

    (progress,) = working.progress
    assert progress.state == "stopped"
    # Where a transaction does not tie it to the rest, a chunk ends in front of the record that nobody may handle.
    stored = {("at_least_once", "the dead letters"): [11], (delivery, "the source"): list(range(10, 40))}
    assert progress.next_offset in stored.get((delivery, lost), [10]), progress.reason
    assert name in (progress.reason or "")
    assert "the connection's user may" in (progress.reason or "")

    allow_again(bench, name)
    (again,) = bench.work(plan)
    assert again.complete
    assert bench.checkpoint(plan).complete
    for topic, fates in ((bench.output, range(0, 40, 2)), (bench.dead, range(1, 40, 2))):
        found = sorted(json.loads(record.key or b"") for record in read_all(bench.bootstrap, topic))
        assert (found if delivery == "exactly_once" else sorted(set(found))) == list(fates), topic
