"""The product under a schedule: plans, workers that are stepped or killed, checkpoints, resets and redrives."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from airflow_provider_kpipe.checkpointing.committer import publish
from airflow_provider_kpipe.contract.job import Job
from airflow_provider_kpipe.contract.offsets.limits import Committed, Earliest, Explicit, Latest
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.redrive.redrive import COUNTERS, Redrive, Selection, ledger_topic_of, redriving
from airflow_provider_kpipe.exceptions import KpipeError, StalePlanError
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.redriving.ledger_topic import ensure_ledger
from airflow_provider_kpipe.redriving.planning import make_redrive_plan
from airflow_provider_kpipe.running.attempts import begin_attempt
from airflow_provider_kpipe.transactions.offset_transaction import OffsetTransaction
from kpipe_engine.errors import PartitionHaltedError, reason_of
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.wiring import build_worker
from tests.interleaving.hand import Hand, Killed, Taken
from tests.kit import topics
from tests.kit.pipelines import Bench, earlier
from tests.kit.topics import Sent
from tests.kit.workers import producer_of, run_one_chunk
from tests.promises.model import Found, Kind, Model, Run, Told
from tests.promises.properties import DOUBLED, REFUSED

MENDED = ("interleaving_kit:untouched",)


@dataclass(slots=True)
class Order:
    """A plan with the pipeline that works on it."""

    plan: Plan
    pipeline: KafkaPipeline
    run: Run | None = None
    redrive: Redrive | None = None


@dataclass
class World:
    """One pipeline and everybody who works on it. Each run has an output topic of its own, which tells what it did."""

    bench: Bench
    model: Model
    outputs: Mapping[str, int]
    """Topics for the outputs of runs, and where they ended before."""
    history: list[str] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None
    """What the others do while somebody stands still."""
    orders: list[Order] = field(default_factory=list)
    hands: list[Hand] = field(default_factory=list)
    dead: list[Hand] = field(default_factory=list)
    sizes: dict[int, int] = field(default_factory=dict)
    sent: int = 0
    depth: int = 0
    before: dict[int, int] = field(default_factory=dict)
    """Where the group stood when a checkpoint came."""
    ends_open: bool = False
    """Whether checkpoints end transactions that are open."""
    stale_look: bool = False
    """Whether the next checkpoint stands still between its look and its commit."""
    taken: Taken = field(default_factory=Taken)

    def __post_init__(self) -> None:
        self.admin = AdminClient({**self.bench.settings, "log_level": 0})
        self.reader = Consumer({**self.bench.settings, "group.id": self.bench.pipeline.group, "log_level": 0})
        for partition in range(self.partitions):
            self._begin_partition(partition)

    @property
    def partitions(self) -> int:
        with Positions(self.bench.settings) as positions:
            return len(positions.topic(self.bench.topic).partitions)

    def _begin_partition(self, partition: int) -> None:
        self.sizes[partition] = 0
        self.model.add_partition(partition)

    def note(self, what: str) -> None:
        self.history.append(f"{'    ' * self.depth}{what}")

    # What others do to the topic and the group.

    def feed(self, partition: int, count: int, how: str = "plain") -> None:
        """How: in a transaction that is committed or aborted, which takes an offset more, or in none."""
        numbers = range(self.sent, self.sent + count)
        self.sent += count
        sent = [Sent(b'{"id": %d}' % each, b"%d" % each, partition) for each in numbers]
        if how == "plain":
            topics.fill(self.bench.bootstrap, self.bench.topic, sent)
        else:
            topics.fill_in_transactions(self.bench.bootstrap, self.bench.topic, [(sent, how == "committed")])
        self.sizes[partition] += count + (how != "plain")
        self.note(f"feed {numbers} to partition {partition}: {how}")

    def grow(self) -> None:
        partition = len(self.sizes)
        new = [NewPartitions(self.bench.topic, partition + 1)]
        for grown in self.admin.create_partitions(new).values():
            grown.result()
        while self.partitions <= partition:
            pass
        self._begin_partition(partition)
        self.note(f"partition {partition} is added")

    def held(self) -> dict[int, int]:
        """Where the group stands."""
        asked = [TopicPartition(self.bench.topic, each) for each in self.sizes]
        return {each.partition: each.offset for each in self.reader.committed(asked, timeout=30) if each.offset >= 0}

    def reset(self, partition: int, offset: int) -> None:
        if not self.model.can_move(partition, offset):
            return
        topics.commit(self.bench.bootstrap, self.bench.pipeline.group, self.bench.topic, {partition: offset})
        self.model.move(partition, offset)
        self.note(f"reset partition {partition} to {offset}")

    def delete_group(self) -> None:
        held = self.held()
        if not held or not all(self.model.can_move(each, None) for each in held):
            return
        try:
            for gone in self.admin.delete_consumer_groups([self.bench.pipeline.group]).values():
                gone.result()
        except KafkaException as failure:
            self.note(f"delete the group: {failure.args[0].str()}")
            return
        for partition in held:
            self.model.move(partition, None)
        self.note("delete the group")

    # What Airflow's tasks do.

    def plan(self, kind: Kind, **wishes: Any) -> Order | None:
        key = f"r{len(self.orders)}"
        wishes = {"start": Committed("earliest"), **wishes}
        try:
            plan = self.bench.plan(key, publish=kind == "published", **wishes)
        except KpipeError as refused:
            self.note(f"plan {key} {kind} {wishes}: {refused}")
            if kind == "live":
                self.model.flag(REFUSED.broken(f"the plan {key} was refused: {refused}"))
            return None
        run = self.model.plan(key, kind, {each.partition: (each.start, each.end) for each in plan.ranges}, self.held())
        order = Order(plan, self._writing_to(len(self.orders), self.bench.pipeline), run)
        self.orders.append(order)
        shown = [(each.partition, each.start, each.end, each.cuts, each.done) for each in plan.ranges]
        self.note(f"plan {key} {kind}, number {plan.number}: {shown}")
        return order

    def window(self, publish: bool, windows: Mapping[int, tuple[int, int]]) -> Order | None:
        start = Explicit({each: window[0] for each, window in windows.items()})
        end = Explicit({each: window[1] for each, window in windows.items()})
        return self.plan("published" if publish else "backfill", start=start, end=end)

    def _writing_to(self, number: int, pipeline: KafkaPipeline) -> KafkaPipeline:
        return replace(pipeline, destination=replace(pipeline.destination, topic=list(self.outputs)[number]))

    def order_redrive(self) -> Order:
        """Of all letters that can be read now."""
        bench, key = self.bench, f"r{len(self.orders)}"
        plan = make_redrive_plan(
            bench.settings, bench.pipeline, Earliest(), Latest(), run_key=key, dry_run=False, created_at=earlier()
        )
        with Positions(bench.settings) as positions:
            ensure_ledger(bench.settings, positions.topic(bench.dead), ledger_topic_of(bench.pipeline))
        redrive = Redrive("output", Selection(), None, None, ledger_topic_of(bench.pipeline), bench.topic)
        segments = MENDED if bench.pipeline.segments else ()
        pipeline = replace(self._writing_to(len(self.orders), bench.pipeline), segments=segments)
        order = Order(plan, redriving(pipeline), redrive=redrive)
        self.orders.append(order)
        self.note(f"order redrive {key} of {[(each.start, each.end) for each in plan.ranges]}")
        return order

    def attempt(self, order: Order, trap: str | None = None) -> list[Hand]:
        """Claim what is cut, and have a worker ready for each block."""
        plan, hands = order.plan, []
        try:
            begun = begin_attempt(self.bench.settings, plan)
        except StalePlanError as refused:
            self.note(f"attempt of {plan.run_key}: {refused}")
            if order.run is None or self._is_current(order.run):
                said = f"an attempt of {plan.run_key} was refused, and nobody has moved the group: {refused}"
                self.model.flag(REFUSED.broken(said))
            return []
        job = Job(order.pipeline, plan, begun.number, redrive=order.redrive, checkpointed=begun.checkpointed)
        self.note(f"attempt {begun.number} of {plan.run_key}, checkpoints beyond its start: {begun.checkpointed}")
        for planned in plan.pending:
            if planned.cuts:
                claim = self._hand(job, planned.pieces[:1], 0, trap)
                self.step(claim)
                if claim.state != "open":
                    return []
                self.close(claim)
        for task, block in enumerate(plan.blocks, start=1):
            hands.append(self._hand(job, block, task))
        self.hands += hands
        return hands

    def _hand(self, job: Job, ranges: tuple[PartitionRange, ...], task: int, trap: str | None = None) -> Hand:
        stop_signal = StopSignal()
        worker = build_worker(job, self.bench.kafka, ranges, stop_signal, task)
        places = ",".join(f"{each.partition}.{each.slot}" for each in ranges)
        hand = Hand(f"{job.plan.run_key}/{job.attempt}:{task}@{places}", worker, stop_signal, job, trap=trap)
        store = worker.writer.store
        worker.writer.store = lambda entries: self._store(hand, store, entries)  # type: ignore[method-assign]
        return hand

    def _store(self, hand: Hand, store: Callable[[Any], None], positions: Any) -> None:
        trap, hand.trap = hand.trap, None
        if trap == "stall" and self.depth == 0:
            self.note(f"{hand.name} stands still before it stores")
            with self._meanwhile():
                self.meanwhile()
        elif trap == "killed before it is sent":
            hand.dies_waiting()
        elif trap == "killed before it stores":
            with contextlib.suppress(KafkaException, SystemError):
                # Where it was fenced, nothing more arrives.
                producer_of(hand.worker).flush(10)
            raise Killed(trap)
        store(positions)
        for each in positions.progress:
            if self.taken.is_from(hand, each.partition):
                said = f"{hand.name} has stored {each.offset}, and a later run or attempt is there"
                self.model.flag(DOUBLED.broken(said))
        if trap == "killed after it has stored":
            # Whatever it has not sent by then is never sent.
            producer_of(hand.worker).purge()
            raise Killed(trap)

    def is_taken_from(self, hand: Hand) -> bool:
        return any(self.taken.is_from(hand, state.partition) for state in hand.worker.assignment)

    @contextlib.contextmanager
    def _meanwhile(self) -> Iterator[None]:
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def step(self, hand: Hand) -> None:
        """Open a worker that is new; one that is open handles a chunk, or is closed when nothing is left."""
        worker = hand.worker
        before, hand.state = hand.state, "busy"
        try:
            if before == "new":
                worker.open()
            elif worker.assignment.unsettled:
                run_one_chunk(worker)
            else:
                self.close(hand)
                return
            hand.state = "open"
            if before == "new":
                self.taken.by(hand)
            shown = [(each.stored, each.ended or "") for each in worker.assignment]
            self.note(f"{hand.name} {'has opened' if before == 'new' else 'has handled a chunk'}: {shown}")
        except Killed as killed:
            self.bury(hand, str(killed))
        except (PartitionHaltedError, KafkaException) as stop:
            self.note(f"{hand.name} stops: {reason_of(stop)}")
            self.close(hand)

    def finish(self, hand: Hand) -> None:
        while hand.state in ("new", "open"):
            self.step(hand)

    def close(self, hand: Hand) -> None:
        hand.state = "closed"
        hand.worker.close()
        if hand in self.hands:
            self.hands.remove(hand)

    def bury(self, hand: Hand, how: str = "killed") -> None:
        """As SIGKILL would: its clients say nothing any more, and its transaction stays open."""
        hand.state = "dead"
        self.dead.append(hand)
        if hand in self.hands:
            self.hands.remove(hand)
        self.note(f"{hand.name} is {how}")

    def yields(self, hand: Hand) -> None:
        hand.stop_signal.request("somebody asks")
        self.note(f"{hand.name} is asked to yield")
        self.finish(hand)

    def checkpoint(self, order: Order) -> bool:
        """Whether it came to its end, with all that was planned."""
        assert order.run is not None
        run, settings, self.before = order.run, self.bench.settings, self.held()
        newer = {each: self._has_newer(order, each) for each in run.ranges}
        untold = {each: self.model.is_untold(run, each) for each in run.ranges}
        stalled, done = self.stale_look, None
        try:
            ends = settings if self.model.exactly_once and self.ends_open else None
            done = publish(settings, order.plan, ends)
        except KpipeError as refused:
            self.note(f"checkpoint of {run.key}: {refused}")
            if run.kind == "live" and not stalled and self._is_current(run):
                said = f"the checkpoint of {run.key} was refused, and nobody has moved the group: {refused}"
                self.model.flag(REFUSED.broken(said))
            return False
        finally:
            self.stale_look = False
            self.model.checkpoint(run, self.before, self.held(), done is not None)
        alone = not any(each.kind == "published" for each in self.model.runs.values())
        for each in done.partitions:
            counts = each.counts
            self.model.told.append(
                Told(
                    run,
                    each.partition,
                    each.complete,
                    counts.read,
                    counts.written,
                    counts.dead_lettered,
                    counts.filtered,
                    newer[each.partition],
                    alone,
                    untold[each.partition] and not stalled,
                    reached=each.committed,
                )
            )
        shown = [(each.partition, each.committed, each.complete, each.counts.read) for each in done.partitions]
        self.note(f"checkpoint of {run.key}: {shown}")
        return done.complete

    def _is_current(self, run: Run) -> bool:
        """Whether nobody has moved the group since the run was planned."""
        return all(self.model.current(each) == run.lineages[each] for each in run.ranges)

    def _has_newer(self, order: Order, partition: int) -> bool:
        later = self.orders[self.orders.index(order) + 1 :]
        return any(each.run is not None and partition in each.run.ranges for each in later)

    def tell_redriven(self, order: Order) -> None:
        """Of a redrive that has just come to its end: the next one stores in the same place."""
        with Positions(self.bench.settings) as positions:
            counted = sum(each.counts.named.get(COUNTERS["redriven"], 0) for each in positions.progress(order.plan))
        self.model.redriven_told[order.plan.run_key] = counted

    # In the end.

    def bring_out_the_dead(self) -> None:
        """What they have left open ends, as it does by itself after a minute."""
        for hand in self.dead:
            hand.worker.close()
        self.dead.clear()

    def found(self) -> Found:
        """Read all topics to their ends."""
        bench, names = self.bench, list(self.outputs)[: len(self.orders)]
        seen = read_from(
            bench.bootstrap, {bench.topic: 0, bench.dead: 0, **{each: self.outputs[each] for each in names}}
        )
        source = {number_in(each): (each.partition() or 0, each.offset() or 0) for each in seen[bench.topic]}
        written: dict[str, list[int]] = {}
        redriven: dict[str, list[int]] = {}
        for order, topic in zip(self.orders, names, strict=True):
            numbers = [number_in(each) for each in seen[topic]]
            (redriven if order.redrive else written)[order.plan.run_key] = numbers
        letters: dict[str, list[int]] = {}
        for each in seen[bench.dead]:
            headers: dict[str, Any] = dict(each.headers() or [])
            letters.setdefault(headers["kpipe-run-key"].decode(), []).append(number_in(each))
        return Found(source, written, letters, redriven)

    def clean_up(self) -> None:
        for hand in (*self.hands, *self.dead):
            hand.worker.close()
        self.hands.clear()
        self.dead.clear()
        self.reader.close()


def number_in(message: Message) -> int:
    return int(message.key() or b"")


def read_from(bootstrap: str, bases: Mapping[str, int]) -> dict[str, list[Message]]:
    """What a reader of committed records sees of topics, from these offsets to their ends."""
    settings = {"enable.auto.commit": False, "enable.partition.eof": True, "fetch.wait.max.ms": 5}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "tests-never-commit", **settings})
    seen: dict[str, list[Message]] = {each: [] for each in bases}
    try:
        known = consumer.list_topics(timeout=30).topics
        at = [TopicPartition(topic, each, base) for topic, base in bases.items() for each in known[topic].partitions]
        consumer.assign(at)
        waiting = {(each.topic, each.partition) for each in at}
        while waiting:
            for message in consumer.consume(5_000, 0.02):
                error = message.error()
                if error is None:
                    seen[message.topic() or ""].append(message)
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    waiting.discard((message.topic() or "", message.partition() or 0))
    finally:
        consumer.close()
    return seen


def stalling(world: World) -> type[OffsetTransaction]:
    """A checkpoint's transaction that stands still between the look and the commit, where the schedule wants it."""

    class Stalling(OffsetTransaction):
        def send(self, group: str, offsets: Any) -> None:
            if world.stale_look and world.depth == 0:
                world.stale_look = False
                world.note("a checkpoint stands still before it commits")
                with world._meanwhile():
                    world.meanwhile()
                # What has happened meanwhile is the others' doing.
                world.before = world.held()
            super().send(group, offsets)

    return Stalling
