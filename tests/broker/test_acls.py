"""What users of connections have to be allowed: what the page about permissions says, and nothing beyond it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from airflow_provider_kpipe import PartitionScaling
from airflow_provider_kpipe.checkpointing.draining import look
from airflow_provider_kpipe.contract.offsets.limits import Earliest, Explicit, Latest
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from airflow_provider_kpipe.exceptions import KpipeError
from airflow_provider_kpipe.planning import ranges as planner
from airflow_provider_kpipe.planning.needed_topics import check_needed_topics
from airflow_provider_kpipe.redriving.planning import check_redrive_topics
from airflow_provider_kpipe.running.stop_requests import request_stop
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.wiring import build_worker
from tests.kit.jobs import end_transactions
from tests.kit.permissions import Grant, StrictBroker, asked_for
from tests.kit.pipelines import Bench
from tests.kit.redrives import dry_run, fixed, order, work
from tests.kit.secure import OTHER_USER, USER
from tests.kit.topics import are_held_back, fill, numbered
from tests.kit.workers import abandoned

RECORDS = 10


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StrictBroker]:
    with StrictBroker(tmp_path_factory.mktemp("certificates")) as running:
        yield running


class StoppedError(Exception):
    """A partition did not come to its end."""


@dataclass(frozen=True)
class Case:
    """One thing that may not be done, and the role that needs it."""

    role: str
    taken: Grant
    left: Grant | None = None
    """What is granted in its place."""

    def __str__(self) -> str:
        return f"{self.role}: {self.taken}" + (f" but {self.left.operation}" if self.left else "")

    def granted(self) -> list[Grant]:
        rest = [each for each in asked_for(self.role) if each != self.taken]
        return [*rest, self.left] if self.left else rest


def cases(roles: Sequence[str]) -> Iterator[Case]:
    """Without each grant of these roles, and with no more of it than may be seen."""
    for role in roles:
        grants = asked_for(role)
        for grant in grants:
            yield Case(role, grant)
            # Another operation on the same thing lets it be seen already.
            alone = [(each.option, each.name) for each in grants].count((grant.option, grant.name)) == 1
            if grant.operation != "Describe" and alone:
                yield Case(role, grant, replace(grant, operation="Describe"))


@dataclass(frozen=True)
class Stage:
    """A pipeline whose user may do no more than is granted, and the names that the page has for its topics."""

    broker: StrictBroker
    bench: Bench
    names: dict[str, str]

    def allow(self, own: Sequence[Grant], other: Sequence[Grant] = ()) -> None:
        granted = {USER: own, OTHER_USER: other}
        self.broker.allow_only({user: [each.renamed(self.names) for each in those] for user, those in granted.items()})

    @property
    def unbounded(self) -> Bench:
        """The same pipeline with a user who may do everything."""
        return replace(self.bench, login={}, written_login=None)


def staged(strict: StrictBroker, **spec: Any) -> Stage:
    """With dead letters, and records that are not read yet."""
    made = Bench.make(strict.bootstrap_servers, segments=["faulty_kit:odd_ones_fail"], chunk_records=5, **spec)
    fill(made.bootstrap, made.topic, numbered(RECORDS))
    bench = replace(made, login=strict.sasl())
    return Stage(strict, bench, {"orders.enriched": bench.output, "orders": bench.topic})


def run(bench: Bench, plan: Plan) -> None:
    """As the task does."""
    finished(bench.work(plan))
    end_transactions(bench, plan)


def finished(progress: Sequence[PartitionProgress]) -> None:
    for each in progress:
        if not each.complete:
            raise StoppedError(each.reason)


def pipeline(stage: Stage) -> None:
    bench = stage.bench
    check_needed_topics(bench.pipeline, bench.settings, bench.written_settings)
    plan = bench.plan("first")
    run(bench, plan)
    request_stop(bench.settings, plan, 1, "no reason")
    assert bench.checkpoint(plan).partitions[0].committed == RECORDS
    gate(stage)


def gate(stage: Stage) -> None:
    bench, group = stage.bench, stage.bench.pipeline.group
    until = Explicit({0: RECORDS})
    topic, level = bench.topic, bench.pipeline.source.isolation_level
    target = DrainTarget.of(until, group=group, topic=topic, isolation_level=level, partitions=None)
    assert [each.drained for each in look(bench.settings, target)] == [True]


def backfill(stage: Stage) -> None:
    bench = stage.bench
    plan = bench.plan("backfill", publish=True, start=Earliest(), end=Latest())
    run(bench, plan)
    assert bench.checkpoint(plan).partitions[0].committed == RECORDS


def redrive(stage: Stage) -> None:
    bench = fixed(stage.bench)
    assert dry_run(bench).outcomes["redriven"] == RECORDS // 2
    # The first time, the records fault again.
    for run_key, each in (("again", stage.bench), ("fixed", bench)):
        made = order(each, run_key)
        check_redrive_topics(each.settings, each.settings, each.pipeline, made.redrive)
        finished(work(each, made))
        end_transactions(each, made.plan)
    assert dry_run(bench).outcomes["already_redriven"] == RECORDS


ELSEWHERE = "Destination on another cluster"
STEPS = {"Pipeline": pipeline, "Backfill": backfill, "Redrive": redrive, "Gate only": gate, ELSEWHERE: pipeline}


def staged_for(strict: StrictBroker, role: str) -> Stage:
    """With what the steps of a role find there; another user stands for another cluster."""
    if role == ELSEWHERE:
        stage = staged(strict, delivery="at_least_once", destination={"conn_id": "elsewhere"})
        return replace(stage, bench=replace(stage.bench, written_login=strict.sasl(user=OTHER_USER)))
    stage = staged(strict)
    if role in ("Redrive", "Gate only"):
        plan = stage.unbounded.plan("before")
        run(stage.unbounded, plan)
        stage.unbounded.checkpoint(plan)
    return stage


def allow(stage: Stage, role: str, granted: Sequence[Grant]) -> None:
    """Grant this to a role, and what its steps need besides."""
    if role == ELSEWHERE:
        stage.allow([each for each in asked_for("Pipeline") if each not in asked_for(role)], granted)
    else:
        stage.allow([*(asked_for("Pipeline") if role == "Backfill" else []), *granted])


def assert_named(stage: Stage, case: Case, failure: BaseException) -> None:
    taken = case.taken.renamed(stage.names)
    assert re.search(rf"{taken.kind}s? .*'{re.escape(taken.name)}", str(failure)), str(failure)
    assert "the page 'Permissions' of kpipe's documentation" in str(failure)
    assert not getattr(failure, "retriable", False)


@pytest.mark.parametrize("role", STEPS)
def test_the_permissions_of_a_role_are_enough(strict: StrictBroker, role: str) -> None:
    stage = staged_for(strict, role)
    allow(stage, role, asked_for(role))
    STEPS[role](stage)


def test_a_range_in_pieces_needs_no_more(strict: StrictBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "SHORTEST_PIECE", 3)
    stage = staged(strict, scaling=PartitionScaling("relax_ordering_within_partition"))
    stage.allow(asked_for("Pipeline"))
    bench = stage.bench
    plan = bench.plan()
    job = bench.attempt(plan)
    (planned,) = plan.ranges
    assert len(planned.pieces) > 1
    for task, piece in enumerate(planned.pieces):
        finished(build_worker(job, bench.kafka, [piece], StopSignal(), task).run())
    end_transactions(bench, plan)
    assert bench.checkpoint(plan).partitions[0].committed == RECORDS


def test_ending_the_transaction_of_a_killed_worker_needs_no_more(strict: StrictBroker) -> None:
    stage = staged(strict)
    stage.allow(asked_for("Pipeline"))
    bench = stage.bench
    plan = bench.plan()
    with abandoned(bench.worker(plan), chunks=1):
        assert are_held_back(bench.bootstrap, bench.output)
        end_transactions(bench, plan)
        assert not are_held_back(bench.bootstrap, bench.output)


@pytest.mark.parametrize("case", list(cases([*STEPS])), ids=str)
def test_nothing_that_is_granted_can_be_left_out(strict: StrictBroker, case: Case) -> None:
    stage = staged_for(strict, case.role)
    allow(stage, case.role, case.granted())
    with pytest.raises((KpipeError, StoppedError)) as failure:
        STEPS[case.role](stage)
    assert_named(stage, case, failure.value)
