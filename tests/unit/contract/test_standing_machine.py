"""Plans, runs, checkpoints and people in any order: no record is passed over, and none is handled twice unasked.

A model of what Kafka holds for one partition, and of the fencing that the engine relies on. Every decision is the
product's: where a plan begins, what a worker resumes, where a checkpoint takes the group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule
from plans import plan_of

from airflow_provider_kpipe.contract.lease import Lease
from airflow_provider_kpipe.contract.offsets import Committed, Explicit, PartitionRange
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress import Counts, PartitionProgress, StoredProgress
from airflow_provider_kpipe.contract.publishing import MovedError, Target, target_of
from airflow_provider_kpipe.contract.standing import (
    Facts,
    Held,
    Stored,
    committed_beyond,
    is_superseded,
    progress_of,
    standing_of,
    take_on,
)
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.kafka.planner import Snapshot, Wishes, plan_ranges
from airflow_provider_kpipe.kafka.planning import check_publishing

LIVE = "orders"
MEDDLING = ("reset", "reset", "delete_the_group", "forget_progress", "delete_records", "recreate_the_topic")


@dataclass
class Group:
    """A group, what checkpoints remember of it, and what runs that work in it have stored."""

    committed: Held | None = None
    published: Held | None = None
    stored: Stored | None = None


@dataclass
class Worker:
    """One attempt at a run, at work on the partition."""

    plan: Plan
    lease: Lease
    epoch: int
    progress: PartitionProgress
    topic_id: str


@dataclass
class Checkpoint:
    """Has looked, and not yet committed."""

    plan: Plan
    progress: PartitionProgress
    facts: Facts
    epoch: int


def is_further(found: Target, held: Held) -> bool:
    """An offset that somebody has put there gets its mark in its place."""
    return found.offset >= held.offset if held.mark is None else found.offset > held.offset


@dataclass
class Cluster:
    topic: int = 0
    start: int = 0
    end: int = 0
    groups: dict[str, Group] = field(default_factory=dict)
    writer_epochs: Counter[str] = field(default_factory=Counter)
    checkpoint_epochs: Counter[str] = field(default_factory=Counter)
    number: int = 0

    @property
    def topic_id(self) -> str:
        return f"topic-{self.topic}"

    def group(self, name: str) -> Group:
        return self.groups.setdefault(name, Group())

    def facts(self, name: str) -> Facts:
        group = self.group(name)
        return Facts(self.topic_id, group.committed, group.published, group.stored)

    def draw(self) -> int:
        self.number += 1
        return self.number


class Partition(RuleBasedStateMachine):
    plans = Bundle("plans")
    workers = Bundle("workers")
    checkpoints = Bundle("checkpoints")

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        # By offset of the topic that is there now: how often a record was handled, and how often it may be.
        self.handled: Counter[int] = Counter()
        self.asked: Counter[int] = Counter()
        # What the group has to read still, since somebody has put it where it begins.
        self.unread: set[int] = set()
        # Where plans have found the group that somebody had put there, since the last checkpoint.
        self.found_at: set[int | None] = set()
        self.append(8)

    # What people and time do.

    @rule(count=st.integers(1, 6))
    def append(self, count: int) -> None:
        for _ in range(count):
            self.asked[self.cluster.end] = 1
            self.unread.add(self.cluster.end)
            self.cluster.end += 1

    @rule(what=st.sampled_from(MEDDLING), where=st.floats(0, 1))
    def meddle(self, what: str, where: float) -> None:
        """In one rule: most of what happens is work."""
        getattr(self, what)(where)

    def reset(self, where: float) -> None:
        """Also to the very offset where the group stands."""
        cluster, group = self.cluster, self.cluster.group(LIVE)
        offset = round(cluster.start + where * (cluster.end - cluster.start))
        if not self._is_unseen(offset):
            group.committed = Held(offset)
            self._begin_anew(offset)

    def _is_unseen(self, offset: int | None) -> bool:
        """Where a plan has found the group and no checkpoint has come, nobody can see that it was put there again."""
        return offset in self.found_at

    def _begin_anew(self, offset: int) -> None:
        self.unread = set(range(max(offset, self.cluster.start), self.cluster.end))
        for each in range(offset, self.cluster.end):
            self.asked[each] += 1

    def delete_the_group(self, _where: float) -> None:
        """And so ask for everything again: the plan after it says from where."""
        group = self.cluster.group(LIVE)
        if group.committed is not None and not self._is_unseen(None):
            group.committed = None
            self._begin_anew(0)

    def forget_progress(self, _where: float) -> None:
        """A week has passed since it was stored, and the group is committed again with each checkpoint. Where no
        checkpoint has come in that time, the group is forgotten with it."""
        group = self.cluster.group(LIVE)
        if group.committed is not None and group.committed.mark is not None and self._is_published(group):
            group.stored = None

    def _is_published(self, group: Group) -> bool:
        return group.stored is None or (group.committed is not None and group.committed.offset >= group.stored.offset)

    def delete_records(self, where: float) -> None:
        self.cluster.start = round(self.cluster.start + where / 2 * (self.cluster.end - self.cluster.start))
        self.unread.difference_update(range(self.cluster.start))

    def recreate_the_topic(self, where: float) -> None:
        """The broker deletes the offsets of a topic that goes; a worker may store one after that."""
        cluster, group = self.cluster, self.cluster.group(LIVE)
        stored = group.stored if where > 0.5 else None
        cluster.topic += 1
        cluster.start = cluster.end = 0
        cluster.groups = {LIVE: Group(stored=stored)}
        self.handled.clear()
        self.asked.clear()
        self.unread.clear()
        self.found_at.clear()
        self.append(8)

    # Plans.

    @rule(
        target=plans,
        otherwise=st.sampled_from(["earliest_at_first", "earliest", "latest"]),
        most=st.none() | st.integers(1, 8),
    )
    def plan(self, otherwise: str, most: int | None) -> object:
        wishes = Wishes(start=Committed(otherwise), max_records=most)
        snapshot = self._snapshot()
        number = self.cluster.draw()
        try:
            (planned,) = plan_ranges(wishes, snapshot, number)
        except PlanError:
            # Only a person can say where to go on.
            assert self.cluster.group(LIVE).published or self.cluster.group(LIVE).stored
            return multiple()
        if snapshot.standing(0).next_offset is None:
            self.unread.difference_update(range(planned.start))
        return self._plan(planned, number, LIVE, LIVE, continues=True)

    @rule(target=plans, first=st.floats(0, 1), length=st.integers(1, 8), publish=st.booleans())
    def plan_a_window(self, first: float, length: int, publish: bool) -> object:
        cluster = self.cluster
        start = round(cluster.start + first * (cluster.end - cluster.start))
        end = min(start + length, cluster.end)
        number = cluster.draw()
        wishes = Wishes(start=Explicit({0: start}), end=Explicit({0: end}))
        snapshot = self._snapshot()
        (planned,) = plan_ranges(wishes, snapshot, number)
        own = f"{LIVE}.backfill.run-{number}"
        if publish:
            try:
                check_publishing(LIVE, snapshot, [planned])
            except PlanError:
                return multiple()
        for each in range(start, end):
            self.asked[each] += 1
        return self._plan(planned, number, LIVE if publish else own, own, continues=False)

    def _snapshot(self) -> Snapshot:
        cluster, held = self.cluster, self.cluster.group(LIVE).committed
        if held is None or held.mark is None:
            self.found_at.add(held.offset if held else None)
        return Snapshot(LIVE, {0: cluster.start}, {0: cluster.end}, facts={0: cluster.facts(LIVE)})

    def _plan(self, planned: PartitionRange, number: int, group: str, working_group: str, *, continues: bool) -> Plan:
        return plan_of(
            planned,
            run_key=f"run-{number}",
            number=number,
            group=group,
            working_group=working_group,
            topic_id=self.cluster.topic_id,
            continues_group=continues,
        )

    # Runs.

    @rule(target=workers, plan=plans)
    def begin(self, plan: Plan) -> object:
        """An attempt of an old plan as well, and beside another one: Airflow clears what people tell it to."""
        cluster = self.cluster
        if plan.topic_id != cluster.topic_id or not plan.pending:
            return multiple()
        group = cluster.group(plan.working_group)
        (planned,) = plan.ranges
        if group.committed is not None and is_superseded(planned, plan, group.committed):
            return multiple()
        committed = self._committed_beyond(plan)
        lease = Lease(plan.number, cluster.draw(), 0)
        cluster.writer_epochs[plan.working_group] += 1
        progress = take_on(planned, plan, lease, group.stored, committed)
        worker = Worker(plan, lease, cluster.writer_epochs[plan.working_group], progress, cluster.topic_id)
        if progress.ended == "revoked" or not self._store(worker, progress):
            return multiple()
        return worker

    @rule(worker=workers, most=st.integers(1, 5))
    def work(self, worker: Worker, most: int) -> None:
        """A chunk: its records and its offset are there together, or not at all."""
        progress = worker.progress
        if progress.complete:
            return
        following = min(progress.next_offset + most, progress.range.end)
        done = [each for first, after in (*progress.range.done, *progress.done) for each in range(first, after)]
        reached = replace(progress, next_offset=following, started=True)
        if not self._store(worker, reached):
            return
        for each in range(max(progress.next_offset, self.cluster.start), following):
            if each not in done:
                self.handled[each] += 1
            if worker.plan.group == LIVE:
                self.unread.discard(each)
        worker.progress = reached

    @rule(plan=plans, chunks=st.integers(1, 3))
    def begin_and_work(self, plan: Plan, chunks: int) -> None:
        worker = self.begin(plan)
        for _ in range(chunks if isinstance(worker, Worker) else 0):
            self.work(worker, 4)

    @rule(plan=plans)
    def look_and_commit(self, plan: Plan) -> None:
        seen = self.look(plan)
        if isinstance(seen, Checkpoint):
            self.commit(seen)

    @rule(worker=consumes(workers))
    def die(self, worker: Worker) -> None:
        """Nothing more is heard of it."""

    def _committed_beyond(self, plan: Plan) -> int | None:
        held = self.cluster.group(plan.working_group).committed
        return committed_beyond(plan, {0: held} if held else {}).get(0)

    def _store(self, worker: Worker, progress: PartitionProgress) -> bool:
        """In a transaction of the partition's writer: whoever opened it last has fenced the others."""
        cluster, plan = self.cluster, worker.plan
        is_fenced = cluster.writer_epochs[plan.working_group] != worker.epoch
        if is_fenced or worker.topic_id != cluster.topic_id:
            return False
        stored = StoredProgress(
            run_key=plan.run_key,
            number=plan.number,
            topic_id=plan.topic_id,
            origin=progress.range.origin,
            start=progress.range.start,
            end=progress.range.end,
            counts=Counts(),
            owner=plan.owner,
            lease=worker.lease,
            took_over=progress.took_over,
            done=progress.done,
        )
        cluster.group(plan.working_group).stored = Stored(progress.next_offset, stored)
        return True

    # Checkpoints, in two steps: what they have seen may be old when they commit.

    @rule(target=checkpoints, plan=plans)
    def look(self, plan: Plan) -> object:
        cluster = self.cluster
        if plan.topic_id != cluster.topic_id:
            return multiple()
        cluster.checkpoint_epochs[plan.group] += 1
        own = cluster.group(plan.working_group)
        (planned,) = plan.ranges
        committed = self._committed_beyond(plan)
        progress = progress_of(planned, plan, own.stored, committed)
        return Checkpoint(plan, progress, cluster.facts(plan.group), cluster.checkpoint_epochs[plan.group])

    @rule(seen=consumes(checkpoints))
    def commit(self, seen: Checkpoint) -> None:
        cluster, plan = self.cluster, seen.plan
        if cluster.checkpoint_epochs[plan.group] != seen.epoch or plan.topic_id != cluster.topic_id:
            return
        group = cluster.group(plan.group)
        if group.committed != seen.facts.committed:
            # Somebody else's tool fences nobody, and is fenced by nobody.
            return
        try:
            found = target_of(plan, seen.progress, seen.facts)
        except MovedError:
            return
        if found is None:
            return
        assert group.committed is None or plan.group != LIVE or is_further(found, group.committed)
        group.committed = group.published = Held(found.offset, found.mark)
        if plan.group == LIVE:
            self.found_at.clear()

    # What must hold at any time.

    @invariant()
    def no_record_is_handled_more_often_than_somebody_asked(self) -> None:
        too_often = {each: count for each, count in self.handled.items() if count > self.asked[each]}
        assert not too_often, too_often

    @invariant()
    def no_record_below_the_group_was_passed_over(self) -> None:
        held = self.cluster.group(LIVE).committed
        if held is not None and held.mark is not None and held.mark.topic_id == self.cluster.topic_id:
            done = [each for first, after in held.mark.beyond for each in range(first, after)]
            self._check_read([*range(held.offset), *done])

    @invariant()
    def no_record_below_where_the_next_plan_begins_is_passed_over(self) -> None:
        standing = standing_of(self.cluster.facts(LIVE))
        if standing.next_offset is not None:
            self._check_read(range(min(standing.next_offset, self.cluster.end)))

    def _check_read(self, offsets: Iterable[int]) -> None:
        missed = self.unread.intersection(offsets)
        assert not missed, missed


TestPartition = Partition.TestCase
TestPartition.settings = settings(max_examples=500, stateful_step_count=40, deadline=None)


# Schedules that were found once, and stay.


@pytest.fixture
def state() -> Iterator[Partition]:
    made = Partition()
    yield made
    made.no_record_is_handled_more_often_than_somebody_asked()
    made.no_record_below_the_group_was_passed_over()
    made.no_record_below_where_the_next_plan_begins_is_passed_over()


def run_whole(state: Partition, otherwise: str = "earliest_at_first") -> Plan:
    plan = state.plan(otherwise=otherwise, most=None)
    assert isinstance(plan, Plan)
    state.begin_and_work(plan=plan, chunks=3)
    state.look_and_commit(plan=plan)
    return plan


def next_start(state: Partition, otherwise: str = "earliest_at_first") -> int:
    plan = state.plan(otherwise=otherwise, most=None)
    assert isinstance(plan, Plan)
    return plan.ranges[0].start


def group_of(state: Partition) -> int | None:
    held = state.cluster.group(LIVE).committed
    return held.offset if held else None


def test_a_group_that_is_reset_twice_to_one_offset_is_read_again_twice(state: Partition) -> None:
    run_whole(state)
    for _ in range(2):
        state.reset(0.0)
        assert next_start(state) == 0
        run_whole(state)
    assert (state.handled[0], group_of(state)) == (3, 8)


def test_a_reset_to_one_offset_is_seen_again_once_a_checkpoint_has_left_the_group_there(state: Partition) -> None:
    state.append(8)
    state.reset(0.0)
    plan = state.plan(otherwise="earliest_at_first", most=None)
    assert isinstance(plan, Plan)
    state.begin(plan=plan)
    state.look_and_commit(plan=plan)
    assert group_of(state) == 0
    state.begin_and_work(plan=plan, chunks=1)
    state.reset(0.0)
    assert next_start(state) == 0


def test_a_window_that_was_published_is_not_published_again_once_the_group_is_deleted(state: Partition) -> None:
    window = state.plan_a_window(first=0.0, length=3, publish=True)
    assert isinstance(window, Plan)
    state.begin_and_work(plan=window, chunks=1)
    state.look_and_commit(plan=window)
    assert group_of(state) == 3
    state.delete_the_group(0.0)
    state.look_and_commit(plan=window)
    assert group_of(state) is None


def test_a_group_that_is_deleted_twice_starts_over_twice(state: Partition) -> None:
    run_whole(state)
    state.delete_the_group(0.0)
    run_whole(state, "latest")
    state.delete_the_group(0.0)
    assert next_start(state, "earliest") == 0


def test_a_cleared_run_whose_progress_is_forgotten_is_done_and_takes_nothing_back(state: Partition) -> None:
    older = state.plan(otherwise="earliest_at_first", most=None)
    assert isinstance(older, Plan)
    state.begin_and_work(plan=older, chunks=3)
    state.append(1)
    newer = run_whole(state)
    state.forget_progress(0.0)
    state.begin_and_work(plan=older, chunks=3)
    state.begin_and_work(plan=newer, chunks=3)
    assert max(state.handled.values()) == 1


def test_three_plans_before_the_first_checkpoint(state: Partition) -> None:
    plans = [state.plan(otherwise="earliest_at_first", most=most) for most in (4, 4, None)]
    for plan in plans:
        assert isinstance(plan, Plan)
        state.begin_and_work(plan=plan, chunks=3)
        state.look_and_commit(plan=plan)
    assert (group_of(state), next_start(state), max(state.handled.values())) == (8, 8, 1)


def test_what_comes_to_a_new_partition_after_its_first_plan_is_read(state: Partition) -> None:
    state.recreate_the_topic(0.0)
    run_whole(state, "latest")
    assert group_of(state) == 8
    state.append(3)
    assert next_start(state, "latest") == 8


def test_a_slow_checkpoint_is_fenced_by_a_newer_one(state: Partition) -> None:
    older = state.plan(otherwise="earliest_at_first", most=4)
    assert isinstance(older, Plan)
    state.begin_and_work(plan=older, chunks=3)
    slow = state.look(plan=older)
    assert isinstance(slow, Checkpoint)
    run_whole(state)
    state.commit(seen=slow)
    assert group_of(state) == 8


def test_progress_of_a_topic_that_is_gone_counts_no_more(state: Partition) -> None:
    plan = state.plan(otherwise="earliest_at_first", most=None)
    assert isinstance(plan, Plan)
    state.begin_and_work(plan=plan, chunks=3)
    state.recreate_the_topic(1.0)
    assert next_start(state) == 0
    run_whole(state)
    assert state.handled[0] == 1


def test_a_window_that_does_not_reach_back_to_a_group_that_was_reset_is_not_published(state: Partition) -> None:
    first = state.plan(otherwise="earliest_at_first", most=4)
    assert isinstance(first, Plan)
    state.begin_and_work(plan=first, chunks=3)
    state.look_and_commit(plan=first)
    window = state.plan_a_window(first=0.5, length=4, publish=True)
    assert isinstance(window, Plan)
    state.begin_and_work(plan=window, chunks=3)
    state.reset(0.0)
    state.look_and_commit(plan=window)
    assert group_of(state) == 0


def test_a_run_from_before_a_reset_that_stores_after_it_tears_no_two_runs_apart(state: Partition) -> None:
    before = state.plan(otherwise="earliest_at_first", most=None)
    assert isinstance(before, Plan)
    state.reset(0.0)
    first = state.plan(otherwise="earliest_at_first", most=None)
    assert isinstance(first, Plan)
    state.begin_and_work(plan=before, chunks=3)
    second = state.plan(otherwise="earliest_at_first", most=None)
    assert isinstance(second, Plan)
    for plan in (first, second):
        state.begin_and_work(plan=plan, chunks=3)
    assert max(state.handled.values()) == 2


def test_a_cleared_run_from_before_a_reset_does_nothing_once_a_newer_one_has_gone_on(state: Partition) -> None:
    before = state.plan(otherwise="earliest_at_first", most=None)
    assert isinstance(before, Plan)
    state.begin_and_work(plan=before, chunks=1)
    state.reset(0.0)
    run_whole(state)
    state.forget_progress(0.0)
    state.begin_and_work(plan=before, chunks=3)
    assert max(state.handled.values()) == 2
