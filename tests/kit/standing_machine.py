"""A machine of all that happens to partitions: no record is passed over, and none is handled twice unasked.

What Kafka holds, and how it fences, is a model (`standing_model`). Every decision is the product's: where a plan begins
and when it stops by name, what a worker resumes, where a checkpoint takes the group, when a gate opens.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, precondition, rule

from airflow_provider_kpipe.contract.kafka_names import checkpoint_id_of
from airflow_provider_kpipe.contract.offsets.limits import Committed, Explicit, WithoutOffset
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.contract.progress.lease import Lease
from airflow_provider_kpipe.contract.progress.progress import Counts, PartitionProgress, StoredProgress
from airflow_provider_kpipe.contract.progress.publishing import MovedError, is_untouched, target_of
from airflow_provider_kpipe.contract.progress.resuming import committed_beyond, is_superseded, progress_of, take_on
from airflow_provider_kpipe.contract.progress.standing import Held, Stored, standing_of
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.planning import make_plan as planning
from airflow_provider_kpipe.planning import truncation
from airflow_provider_kpipe.planning.ranges import Snapshot, Wishes, plan_ranges
from tests.kit.plans import plan_of
from tests.kit.standing_model import LIVE, Asked, Checkpoint, Group, Log, Topic, Worker, is_further

MEDDLING = ("delete_the_group", "forget_progress", "delete_records", "recreate_the_topic")
MOST_PARTITIONS = 2
WHICH = st.integers(0, MOST_PARTITIONS - 1)


class Partitions(RuleBasedStateMachine):
    plans = Bundle("plans")
    workers = Bundle("workers")
    checkpoints = Bundle("checkpoints")

    def __init__(self) -> None:
        super().__init__()
        self.topic = Topic()
        self.append(8)

    # What people and time do.

    @rule(count=st.integers(1, 6), which=WHICH)
    def append(self, count: int, which: int = 0) -> None:
        self.topic.log(which).append(count)

    @rule(what=st.sampled_from(MEDDLING), where=st.floats(0, 1), which=WHICH)
    def meddle(self, what: str, where: float, which: int) -> None:
        """In one rule: most of what happens is work."""
        getattr(self, what)(where, which)

    @rule(where=st.floats(0, 1), which=WHICH)
    def reset(self, where: float, which: int = 0) -> None:
        """Also to the very offset where the group stands."""
        log = self.topic.log(which)
        offset = round(log.start + where * (log.end - log.start))
        if not log.is_unseen(offset):
            log.group(LIVE).committed = Held(offset)
            log.begin_anew(offset)

    def delete_the_group(self, _where: float = 0.0, _which: int = 0) -> None:
        """And so ask for everything again: the plan after it says from where."""
        held = [log for log in self.topic.logs if log.group(LIVE).committed is not None]
        if any(log.is_unseen(None) for log in held):
            return
        for log in held:
            was_here = log.group(LIVE).stands_in(self.topic.id)
            log.group(LIVE).committed = None
            if was_here:
                log.is_begun = False
                log.begin_anew(0)

    def forget_progress(self, _where: float = 0.0, which: int = 0) -> None:
        """A week has passed since it was stored, and the group is committed again with each checkpoint. Where no
        checkpoint has come in that time, the group is forgotten with it."""
        group = self.topic.log(which).group(LIVE)
        if group.committed is not None and group.committed.is_of(self.topic.id) and group.is_published:
            group.stored = None

    def delete_records(self, where: float, which: int = 0) -> None:
        log = self.topic.log(which)
        log.delete_up_to(round(log.start + where / 2 * (log.end - log.start)))

    def recreate_the_topic(self, where: float, _which: int = 0) -> None:
        self.topic.recreate(keeps_stored=where > 0.5, keeps_group=0.0 < where < 1.0)
        self.append(8)

    @rule(where=st.floats(0, 1), more=st.integers(-1, 4), which=WHICH)
    def elect(self, where: float, more: int, which: int = 0) -> None:
        """A new leader, which has records up to some place, and which may get as many as were lost, and more."""
        log = self.topic.log(which)
        end = log.end
        log.elect(round(log.start + where * (end - log.start)))
        if more >= 0:
            log.append(end - log.end + more)

    @precondition(lambda self: len(self.topic.logs) < MOST_PARTITIONS)
    @rule()
    def grow(self) -> None:
        """What is planned already knows nothing of the partition that is added."""
        self.topic.logs.append(Log())

    # Plans.

    @rule(
        target=plans,
        otherwise=st.sampled_from(["earliest_at_first", "earliest", "latest"]),
        most=st.none() | st.integers(1, 8),
    )
    def plan(self, otherwise: WithoutOffset, most: int | None) -> object:
        wishes = Wishes(start=Committed(otherwise), max_records=most)
        topic, snapshot, number = self.topic, self.topic.snapshot(), self.topic.draw()
        try:
            ranges = plan_ranges(wishes, snapshot, number)
            self._check_not_truncated(snapshot, ranges)
        except PlanError:
            # Only a person can say where to go on.
            assert any(facts.is_anything_known for facts in snapshot.facts.values())
            return multiple()
        # A partition that was added since is read from its beginning.
        published = [any(held.is_of(topic.id) for held in each.group(LIVE).checkpoints) for each in topic.logs]
        for planned in ranges:
            log = topic.logs[planned.partition]
            is_added = any(published) and not published[planned.partition]
            is_wished = otherwise == "latest" and not log.is_begun and not is_added
            if is_wished and snapshot.standing(planned.partition).next_offset is None:
                log.unread.difference_update(range(planned.start))
            self._check_read(log, range(planned.start))
        return self._plan(ranges, number, LIVE, LIVE, continues=True)

    def _check_not_truncated(self, snapshot: Snapshot, ranges: Iterable[PartitionRange]) -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(truncation, "truncated", self._truncated)
            planning.check_not_truncated(cast("Any", None), LIVE, snapshot, ranges)

    def _truncated(self, _cluster: object, _group: str, _topic: str, asked: Asked) -> dict[int, str]:
        found = self.topic.truncated(asked)
        assert all(self.topic.logs[each].is_cut for each in found), found
        return found

    @rule(
        target=plans,
        first=st.floats(0, 1),
        length=st.integers(1, 8),
        publish=st.booleans(),
        which=WHICH,
        is_again=st.booleans(),
    )
    def plan_a_window(self, first: float, length: int, publish: bool, which: int = 0, is_again: bool = False) -> object:
        """Also in a DAG run that was deleted and triggered again, which has its key once more."""
        topic, log = self.topic, self.topic.log(which)
        partition = which % len(topic.logs)
        start = round(log.start + first * (log.end - log.start))
        end = min(start + length, log.end)
        number = topic.draw()
        wishes = Wishes(start=Explicit({partition: start}), end=Explicit({partition: end}))
        snapshot = topic.snapshot()
        ranges = plan_ranges(wishes, snapshot, number)
        run_key = "run-again" if is_again else f"run-{number}"
        own = f"{LIVE}.backfill.{run_key}"
        if publish:
            try:
                self._check_not_truncated(snapshot, ranges)
                planning.check_publishing(LIVE, snapshot, ranges)
            except PlanError:
                return multiple()
        log.ask_for(range(start, end))
        return self._plan(ranges, number, LIVE if publish else own, own, continues=False, run_key=run_key)

    def _plan(
        self,
        ranges: tuple[PartitionRange, ...],
        number: int,
        group: str,
        working_group: str,
        *,
        continues: bool,
        run_key: str | None = None,
    ) -> Plan:
        return plan_of(
            *ranges,
            run_key=run_key or f"run-{number}",
            number=number,
            group=group,
            working_group=working_group,
            topic_id=self.topic.id,
            continues_group=continues,
            topic_partitions=len(self.topic.logs),
        )

    # Runs.

    @rule(target=workers, plan=plans, which=WHICH)
    def begin(self, plan: Plan, which: int = 0) -> object:
        """An attempt of an old plan as well, and beside another one: Airflow clears what people tell it to."""
        topic = self.topic
        if plan.topic_id != topic.id or not plan.pending:
            return multiple()
        planned = plan.pending[which % len(plan.pending)]
        group = topic.logs[planned.partition].group(plan.working_group)
        if is_superseded(planned, plan, group.checkpoints):
            return multiple()
        log = topic.logs[planned.partition]
        committed = self._committed_beyond(plan, planned)
        if committed is not None and log.is_cut_below(plan.working_group):
            # The attempt is refused: a checkpoint of an older plan has come, since this one, to what was cut before.
            return multiple()
        lease = Lease(plan.number, topic.draw(), 0)
        fence = topic.fence(plan.transactional_id(planned.partition))
        progress = take_on(planned, plan, lease, group.stored, committed)
        worker = Worker(plan, lease, fence, progress, planned.leader_epoch)
        if progress.ended == "revoked" or not self._store(worker, progress):
            return multiple()
        return worker

    @rule(worker=workers, most=st.integers(1, 5))
    def work(self, worker: Worker, most: int) -> None:
        """A chunk: its records and its offset are there together, or not at all."""
        progress, log = worker.progress, self._log_of(worker)
        # Where the leader does not know what was read before, the partition stops and names it.
        if log is None or progress.complete or log.has_lost(progress.next_offset, worker.read_epoch):
            return
        following = min(progress.next_offset + most, progress.range.end, log.end)
        done = [each for first, after in (*progress.range.done, *progress.done) for each in range(first, after)]
        reached = replace(progress, next_offset=following, started=True)
        if following == progress.next_offset or not self._store(worker, reached):
            return
        for each in range(max(progress.next_offset, log.start), following):
            if each not in done:
                log.handled[each] += 1
                log.handled_in.add((worker.plan.number, each))
            if worker.plan.group == LIVE:
                log.unread.discard(each)
        worker.progress, worker.read_epoch = reached, log.epoch_at(following - 1)

    @rule(plan=plans, chunks=st.integers(1, 3), which=WHICH)
    def begin_and_work(self, plan: Plan, chunks: int, which: int = 0) -> None:
        worker = self.begin(plan, which)
        for _ in range(chunks if isinstance(worker, Worker) else 0):
            self.work(worker, 4)

    @rule(plan=plans)
    def look_and_commit(self, plan: Plan) -> None:
        seen = self.look(plan)
        if isinstance(seen, Checkpoint):
            self.commit(seen)

    @rule(target=plans, otherwise=st.sampled_from(["earliest_at_first", "earliest", "latest"]))
    def run_whole(self, otherwise: str) -> object:
        """Many faults take several runs and checkpoints to be seen."""
        plan = self.plan(otherwise, None)
        if not isinstance(plan, Plan):
            return multiple()
        for which in range(len(plan.pending)):
            self.begin_and_work(plan, 5, which)
        self.look_and_commit(plan)
        return plan

    @rule(worker=consumes(workers))
    def die(self, worker: Worker) -> None:
        """Nothing more is heard of it."""

    def _log_of(self, worker: Worker) -> Log | None:
        """None where the topic is gone that was planned against."""
        return self.topic.logs[worker.range.partition] if worker.plan.topic_id == self.topic.id else None

    def _committed_beyond(self, plan: Plan, planned: PartitionRange) -> Held | None:
        group = self.topic.logs[planned.partition].group(plan.working_group)
        held = committed_beyond(replace(plan, ranges=(planned,)), {planned.partition: group.checkpoints})
        return held.get(planned.partition)

    def _store(self, worker: Worker, progress: PartitionProgress) -> bool:
        """In a transaction of the partition's writer: whoever opened it last has fenced the others."""
        plan, planned, log = worker.plan, progress.range, self._log_of(worker)
        if log is None or self.topic.fences[plan.transactional_id(planned.partition)] != worker.fence:
            return False
        stored = StoredProgress(
            run_key=plan.run_key,
            number=plan.number,
            topic_id=plan.topic_id,
            origin=planned.origin,
            start=planned.start,
            end=planned.end,
            counts=Counts(),
            owner=plan.owner,
            lease=worker.lease,
            took_over=progress.took_over,
            done=progress.done,
        )
        log.group(plan.working_group).stored = Stored(progress.next_offset, stored, leader_epoch=planned.leader_epoch)
        return True

    # Checkpoints, in two steps: what they have seen may be old when they commit.

    @rule(target=checkpoints, plan=plans)
    def look(self, plan: Plan) -> object:
        topic = self.topic
        if plan.topic_id != topic.id:
            return multiple()
        fence = topic.fence(checkpoint_id_of(plan.group))
        progress = tuple(self._progress(plan, planned) for planned in plan.ranges)
        facts = {each.partition: topic.facts(each.partition, plan.group) for each in plan.ranges}
        return Checkpoint(plan, progress, facts, fence)

    def _progress(self, plan: Plan, planned: PartitionRange) -> PartitionProgress:
        own: Group = self.topic.logs[planned.partition].group(plan.working_group)
        return progress_of(planned, plan, own.stored, self._committed_beyond(plan, planned))

    @rule(seen=consumes(checkpoints))
    def commit(self, seen: Checkpoint) -> None:
        topic, plan = self.topic, seen.plan
        if topic.fences[checkpoint_id_of(plan.group)] != seen.fence or plan.topic_id != topic.id:
            return
        groups = {each: topic.logs[each].group(plan.group) for each in seen.facts}
        if any(group.committed != seen.facts[each].committed for each, group in groups.items()):
            # Somebody else's tool fences nobody, and is fenced by nobody.
            return
        try:
            found = [(each.range, target_of(plan, each, seen.facts[each.range.partition])) for each in seen.progress]
        except MovedError:
            return
        for planned, target in found:
            log, group = topic.logs[planned.partition], groups[planned.partition]
            if target is None:
                continue
            before = group.committed if group.stands_in(topic.id) else None
            assert before is None or plan.group != LIVE or is_further(target, before)
            group.committed = group.published = Held(target.offset, target.mark, planned.leader_epoch)
            if plan.group == LIVE:
                log.found_at.clear()
        self._note_what_is_begun(seen)

    def _note_what_is_begun(self, seen: Checkpoint) -> None:
        for each in seen.progress if seen.plan.continues_group else ():
            partition = each.range.partition
            if each.complete and each.ended != "revoked" and is_untouched(seen.plan, each, seen.facts[partition]):
                self.topic.logs[partition].is_begun = True

    # Gates, at any time.

    @rule(plan=plans)
    def look_through_the_gate(self, plan: Plan) -> None:
        """One that is open has what it waited for behind it."""
        if plan.topic_id != self.topic.id:
            # It fails, and says so.
            return
        target = DrainTarget.of_plan(plan, group=None, partitions=None)
        for planned in plan.ranges:
            log = self.topic.logs[planned.partition]
            facts = self.topic.facts(planned.partition, plan.group)
            if target.position(facts, log.start) < (target.offsets or {})[planned.partition]:
                continue
            if plan.group != LIVE:
                read = {(plan.number, each) for each in range(max(planned.start, log.start), planned.end)}
                assert read <= log.handled_in, read - log.handled_in
            elif not log.is_cut_below(LIVE):
                self._check_read(log, range(planned.start, planned.end))

    # What must hold at any time.

    @invariant()
    def no_record_is_handled_more_often_than_somebody_asked(self) -> None:
        for log in self.topic.logs:
            too_often = {each: count for each, count in log.handled.items() if count > log.asked[each]}
            assert not too_often, too_often

    @invariant()
    def no_record_below_the_group_was_passed_over(self) -> None:
        """Unless the next plan will stop and name the partition."""
        for log in self.topic.logs:
            held = log.group(LIVE).committed
            if held is None or not held.is_of(self.topic.id) or log.has_lost(held.offset, held.leader_epoch):
                continue
            done = [each for first, after in held.mark.beyond for each in range(first, after)] if held.mark else []
            self._check_read(log, [*range(held.offset), *done])

    @invariant()
    def no_record_below_where_the_next_plan_begins_is_passed_over(self) -> None:
        for partition, log in enumerate(self.topic.logs):
            standing = standing_of(self.topic.facts(partition))
            if standing.next_offset is not None and not log.has_lost(standing.next_offset, standing.leader_epoch):
                self._check_read(log, range(min(standing.next_offset, log.end)))

    def _check_read(self, log: Log, offsets: Iterable[int]) -> None:
        missed = log.missed(offsets)
        assert not missed, missed
