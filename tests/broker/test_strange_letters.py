"""Records and dead letters that say the strangest things about themselves: nothing that is read ends a worker."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import count, product
from typing import Any

import pytest

from airflow_provider_kpipe.contract.dead_letters.dead_letter import LARGEST_COUNT, LARGEST_PARTITION, DeadLetter
from airflow_provider_kpipe.contract.dead_letters.dialects import DIALECTS
from airflow_provider_kpipe.contract.dead_letters.messages import DeadLetterMessage, write_envelope, write_raw
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.letters import LETTER
from tests.kit.pipelines import Bench
from tests.kit.redrives import dry_run, fixed, letters, redrive
from tests.kit.topics import Sent, fill, read_all

DIGITS = b"9" * 4_300
STRANGE: dict[str, bytes] = {
    "kpipe-dead-letter-attempt": DIGITS,
    "kpipe-source-partition": DIGITS,
    "kpipe-source-offset": b"1_0",
    "kpipe-source-timestamp": b"-" + DIGITS,
    "kpipe-source-topic": b"\x00\x1b[2J" + b"x" * 200_000,
    "kpipe-fault-attempts": b"0" * 5_000,
    "kpipe-fault-occurred-at": b"0" * 100_000,
    "kpipe-fault-retries": b"[" * 50_000,
    "kpipe-fault-message": b"\x00\xff\x1b]0;",
    "kafka_dlt-original-partition": b"\xff" * 4,
    "kafka_dlt-original-offset": b"\x80" + b"\x00" * 7,
    "kafka_dlt-original-timestamp": b"\x80" + b"\x00" * 6 + b"\x01",
    "__connect.errors.partition": DIGITS,
    "__streams.errors.offset": b"9" * 5_000,
}
WRITES = (write_raw, write_envelope)
SHAPES: list[dict[str, Any]] = [
    {},
    {"format": "envelope"},
    *({"dialect": name} for name in DIALECTS if name != "kpipe"),
]


def told_strangely(letter: DeadLetter) -> Iterable[DeadLetterMessage]:
    """Letters of as many records in each dialect and format, with one of their headers changed, or all of them."""
    offsets = count(1_000)
    for dialect, write in product(DIALECTS.values(), WRITES):
        names = [name for name, _ in write(letter, dialect).headers if name in STRANGE]
        for changed in [*([name] for name in names), names]:
            key, value, headers = write(at(letter, next(offsets)), dialect)
            yield DeadLetterMessage(
                key, value, [(name, STRANGE[name] if name in changed else raw) for name, raw in headers]
            )


def at(letter: DeadLetter, offset: int) -> DeadLetter:
    return replace(letter, source=replace(letter.source, offset=offset))


def changed_envelopes(letter: DeadLetter) -> Iterable[DeadLetterMessage]:
    """Their headers tell as little."""
    key, value, headers = write_envelope(letter, DIALECTS["kpipe"])
    document, number = json.loads(value), int(DIGITS)
    changes: list[dict[str, Any]] = [
        {"attempt": number},
        {"fault": {**document["fault"], "attempts": number}},
        *({"source": {**document["source"], name: number}} for name in ("partition", "offset", "timestamp")),
        {"headers": [["\ud800", "MQ=="]]},
    ]
    yield from (DeadLetterMessage(key, json.dumps({**document, **change}).encode(), headers[-1:]) for change in changes)
    yield DeadLetterMessage(key, b"[" * 100_000, headers[-1:])


def sent(messages: Iterable[DeadLetterMessage]) -> list[Sent]:
    return [Sent(each.value, each.key, headers=list(each.headers)) for each in messages]


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
def test_records_that_came_with_strange_headers_become_letters_and_go_back(
    broker: SandboxBroker, shape: dict[str, Any]
) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["faulty_kit:fails"], dead_letter=shape)
    records = sent([*told_strangely(LETTER), *changed_envelopes(LETTER)])
    fill(bench.bootstrap, bench.topic, records)

    (progress,) = bench.work(bench.plan())

    assert (progress.reason, progress.complete, progress.counts.dead_lettered) == (None, True, len(records))
    found = letters(bench)
    assert [each.source.offset for each in found] == list(range(len(records)))
    assert max(each.attempt for each in found) == LARGEST_COUNT
    assert redrive(fixed(bench), "out").named == {"kpipe:redriven": len(records)}
    assert [each.value for each in read_all(bench.bootstrap, bench.output)] == [each.value for each in found]


def test_strange_letters_in_a_dead_letter_topic_are_redriven_or_left_where_they_are(broker: SandboxBroker) -> None:
    bench = fixed(Bench.make(broker.bootstrap_servers, segments=["faulty_kit:fails"]))
    home = replace(LETTER, source=replace(LETTER.source, topic=bench.topic, partition=0), pipeline=bench.topic)
    nowhere = replace(home, source=replace(home.source, partition=LARGEST_PARTITION))
    untimely = replace(home, source=replace(home.source, offset=7, timestamp=2**63 - 1))
    strange = [*told_strangely(home), *changed_envelopes(home)]
    wrong = [write_raw(each, DIALECTS["kpipe"]) for each in (nowhere, untimely)]
    fill(bench.bootstrap, bench.dead, sent([*strange, *wrong]))

    would = dry_run(bench, target="source").outcomes
    counts = redrive(bench, target="source")

    assert counts.named == {f"kpipe:{outcome}": count for outcome, count in would.items() if count}
    assert sum(counts.named.values()) == len(strange) + len(wrong)
    # No partition is so high, and no broker takes a record from so far ahead: those two are letters again.
    assert (counts.dead_lettered, counts.written) == (2, counts.named["kpipe:redriven"] - 2)
    assert len(read_all(bench.bootstrap, bench.topic)) == counts.written
    assert [each.attempt for each in letters(bench)[-2:]] == [2, 2]


def test_a_dry_run_shows_printable_text_only(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    fault = replace(LETTER.fault, exception_class="E\x00", message="\x1b[2Jgone\r\nINFO all is well")
    letter = replace(LETTER, key=b"\x00\xff\x1b]0;", pipeline=bench.topic, fault=fault)
    fill(bench.bootstrap, bench.dead, sent([write_raw(letter, DIALECTS["kpipe"])]))

    result = dry_run(bench)

    assert result.outcomes["redriven"] == 1
    (sample,) = result.samples
    assert (sample.key, sample.message) == ("\\x00\ufffd\\x1b]0;", "\\x1b[2Jgone\\r\\nINFO all is well")
    assert dict(result.exception_classes) == {sample.exception_class: 1} == {"E\\x00": 1}


def test_why_a_partition_stopped_can_be_shown(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["faulty_kit:raises_its_key"], on_fault="stop_partition")
    fill(bench.bootstrap, bench.topic, [Sent(b"v", b"\x00\x1b[31m")])
    plan = bench.plan()

    (progress,) = bench.work(plan)

    assert "ValueError: \\x00\\x1b[31m" in (progress.reason or "")
    assert bench.checkpoint(plan).partitions[0].reason == progress.reason
