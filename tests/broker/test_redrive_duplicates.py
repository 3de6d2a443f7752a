"""Several runs over one record leave several letters of it: a redrive puts the record back once."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_kpipe.contract.dead_letters.dialects import DIALECTS
from airflow_provider_kpipe.contract.dead_letters.messages import write_raw
from airflow_provider_kpipe.contract.offsets.limits import Earliest, Explicit, Latest
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.contract.redrive.ledger import LedgerEntry
from airflow_provider_kpipe.contract.redrive.redrive import RedriveTarget, ledger_topic_of
from airflow_provider_kpipe.sandbox import SandboxBroker
from kpipe_engine.reading.chunk import Chunk
from tests.kit.letters import LETTER
from tests.kit.pipelines import Bench
from tests.kit.redrives import await_committed, dry_run, fixed, letters, order, redrive, work, worker
from tests.kit.topics import Sent, fill, numbered, read_all

TARGETS: tuple[RedriveTarget, ...] = ("source", "output")
ODD = list(range(1, 40, 2))


def after_a_backfill(broker: SandboxBroker, **spec: Any) -> Bench:
    """Forty records, of which the odd ones failed in a run and in a backfill: twenty letters, and twenty more."""
    bench = Bench.make(broker.bootstrap_servers, segments=["faulty_kit:odd_ones_fail"], **spec)
    fill(bench.bootstrap, bench.topic, numbered(40))
    plan = bench.plan()
    bench.work(plan)
    bench.checkpoint(plan)
    bench.work(bench.plan("backfill", start=Earliest(), end=Latest()))
    await_committed(bench)
    assert len(letters(bench)) == 2 * len(ODD)
    return fixed(bench)


def scattered(broker: SandboxBroker) -> Bench:
    """Two letters of each record in different partitions, as those of records without a key may lie."""
    bench = Bench.make(broker.bootstrap_servers, 1, outputs=3)
    for number in range(30):
        source = replace(LETTER.source, topic=bench.topic, partition=0, offset=number)
        letter = replace(LETTER, pipeline=bench.topic, value=b'{"id": %d}' % number, source=source)
        _, value, headers = write_raw(letter, DIALECTS["kpipe"])
        sent = [Sent(value, None, (number + at) % 3, headers=list(headers)) for at in (0, 1)]
        fill(bench.bootstrap, bench.dead, sent)
    return bench


def times_back(bench: Bench, target: RedriveTarget = "output") -> dict[int, int]:
    """How often each odd record was put back."""
    topic, before = (bench.topic, 1) if target == "source" else (bench.output, 0)
    found = Counter(json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, topic))
    return {each: found[each] - before for each in ODD}


def said(outcomes: dict[str, int]) -> dict[str, int]:
    return {f"kpipe:{name}": count for name, count in outcomes.items() if count}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [{}, {"format": "envelope"}, {"mapper": "dead_letter_kit:as_it_is"}], ids=repr)
def test_each_record_goes_back_once(broker: SandboxBroker, target: RedriveTarget, shape: dict[str, Any]) -> None:
    bench = after_a_backfill(broker, dead_letter=shape)
    would = dict(dry_run(bench, target=target).outcomes)

    counts = redrive(bench, target=target)

    assert counts.named == said(would) == {"kpipe:redriven": 20, "kpipe:duplicate": 20}
    assert (counts.read, counts.written, counts.filtered) == (40, 20, 20)
    assert times_back(bench, target) == dict.fromkeys(ODD, 1)
    found = [LedgerEntry.from_json(json.loads(each.value or b"")) for each in entries(bench)]
    assert [entry.record and (entry.record.topic, entry.record.offset) for entry in found] == [
        (bench.topic, each) for each in ODD
    ]
    assert redrive(bench, "again", target=target).named == {"kpipe:already_redriven": 20, "kpipe:duplicate": 20}


def entries(bench: Bench) -> list[Any]:
    return read_all(bench.bootstrap, ledger_topic_of(bench.pipeline))


@pytest.mark.parametrize("half", [slice(20), slice(20, 40)], ids=["the first letters", "the second ones"])
def test_a_later_redrive_knows_what_an_earlier_one_put_back(broker: SandboxBroker, half: slice) -> None:
    bench = after_a_backfill(broker)
    offsets = [each.offset for each in read_all(bench.bootstrap, bench.dead)][half]
    some = {"start": Explicit({0: offsets[0]}), "end": Explicit({0: offsets[-1] + 1})}
    assert redrive(bench, "some", **some).named == {"kpipe:redriven": 20}

    assert said(dict(dry_run(bench).outcomes)) == {"kpipe:already_redriven": 20, "kpipe:duplicate": 20}
    assert redrive(bench, "all").named == {"kpipe:already_redriven": 20, "kpipe:duplicate": 20}
    assert times_back(bench) == dict.fromkeys(ODD, 1)


def test_letters_in_different_partitions_that_are_redriven_at_once(broker: SandboxBroker) -> None:
    bench = scattered(broker)
    would = said(dict(dry_run(bench).outcomes))
    made = order(bench)
    # None of them has stored an entry when another one decides.
    workers = [worker(bench, made, partition) for partition in (2, 1, 0)]
    for each in workers:
        each.open()
    for each in workers:
        each.writer.begin()
        each.filler.fill(Chunk(100, 60.0, each.stop_signal), each.assignment)
    for each in workers:
        each.store()
        each.close()

    counts = sum((each.assignment.current.counts for each in workers), Counts())
    assert counts.named == would == {"kpipe:redriven": 30, "kpipe:duplicate": 30}
    found = [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, bench.output)]
    assert sorted(found) == list(range(30))


def test_letters_in_different_partitions_that_are_redriven_one_after_another(broker: SandboxBroker) -> None:
    bench = scattered(broker)
    last = order(bench, "last", start=Explicit({0: 0, 1: 0, 2: 0}), end=Explicit({0: 0, 1: 0, 2: 20}))
    work(bench, last)

    would = said(dict(dry_run(bench).outcomes))

    assert redrive(bench, "all").named == would
    assert would == {"kpipe:already_redriven": 20, "kpipe:duplicate": 30, "kpipe:redriven": 10}
    found = [json.loads(record.value or b"")["id"] for record in read_all(bench.bootstrap, bench.output)]
    assert sorted(found) == list(range(30))


def test_each_letter_goes_back_where_somebody_asks_for_it(broker: SandboxBroker) -> None:
    bench = after_a_backfill(broker)
    assert redrive(bench, "one each").named == {"kpipe:redriven": 20, "kpipe:duplicate": 20}
    assert dry_run(bench, each_letter=True).outcomes["redriven"] == 20
    assert redrive(bench, "the others", each_letter=True).named == {
        "kpipe:already_redriven": 20,
        "kpipe:redriven": 20,
    }
    assert times_back(bench) == dict.fromkeys(ODD, 2)


def test_a_failed_chunk_has_settled_no_letter(broker: SandboxBroker) -> None:
    bench = after_a_backfill(broker)
    bench = replace(bench, pipeline=replace(bench.pipeline, chunk_records=15))
    made = order(bench)
    cut = worker(bench, made)
    cut.open()
    cut.run_chunk()
    cut.writer.begin()
    cut.filler.fill(Chunk(15, 60.0, cut.stop_signal), cut.assignment)
    cut.retry.discard_chunk()
    cut.store()
    cut.run_chunk()
    cut.close()

    (progress,) = work(bench, made)

    assert progress.counts.named == {"kpipe:redriven": 20, "kpipe:duplicate": 20}
    assert times_back(bench) == dict.fromkeys(ODD, 1)


def test_a_ledger_that_a_later_version_wrote_stops_the_partition_by_name(broker: SandboxBroker) -> None:
    bench = after_a_backfill(broker)
    made = order(bench)
    newer = {**LedgerEntry("later", "redriven", "").to_json(), "schema_version": 99}
    key = f"{made.plan.topic_id}/0".encode()
    fill(bench.bootstrap, ledger_topic_of(bench.pipeline), [Sent(json.dumps(newer).encode(), key)])

    (progress,) = work(bench, made)

    assert (progress.state, progress.next_offset) == ("stopped", 0)
    assert f"the ledger topic '{ledger_topic_of(bench.pipeline)}' cannot be read: entry" in (progress.reason or "")
    assert times_back(bench) == dict.fromkeys(ODD, 0)
