"""A source that takes records whose dead letters would not fit: the plan says so, with the remedy."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_kpipe import KafkaDeadLetter
from airflow_provider_kpipe.contract.dead_letters.dead_letter import FirstFault, bounded
from airflow_provider_kpipe.contract.dead_letters.dialects import DIALECTS
from airflow_provider_kpipe.contract.dead_letters.messages import write_envelope, write_raw
from airflow_provider_kpipe.contract.faults.fault import FailedTry
from airflow_provider_kpipe.contract.pipeline.declaration import DeadLetterDialect
from airflow_provider_kpipe.planning.letter_room import STORY_BYTES, check_letter_room, letter_bytes
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from tests.kit.letters import LETTER
from tests.kit.log_lines import logged_by
from tests.kit.pipelines import Bench
from tests.kit.topics import Sent, fill, read_all

LARGEST = 2_000_000


def make(broker: SandboxBroker, limit: int | None, **declared: Any) -> Bench:
    bench = Bench.make(
        broker.bootstrap_servers, topic_config={"max.message.bytes": str(LARGEST)}, segments=["faulty_kit:fails"]
    )
    topic = f"{bench.topic}.letters"
    create_topics(bench.bootstrap, topic, config={} if limit is None else {"max.message.bytes": str(limit)})
    return replace(bench, pipeline=replace(bench.pipeline, dead_letter=KafkaDeadLetter(topic, **declared)))


def told(bench: Bench, caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    caplog.set_level(logging.INFO)
    caplog.clear()
    check_letter_room(bench.pipeline, bench.settings, bench.settings)
    return [(each.levelno, each.getMessage()) for each in logged_by(caplog, "letter_room")]


@pytest.mark.parametrize("declared", [{}, {"format": "envelope"}], ids=repr)
def test_a_smaller_limit_is_a_warning_and_the_remedy_ends_it(
    broker: SandboxBroker, caplog: pytest.LogCaptureFixture, declared: dict[str, Any]
) -> None:
    bench = make(broker, None, **declared)
    ((level, text),) = told(bench, caplog)
    assert level == logging.WARNING
    assert "takes records of up to 2,000,000 bytes" in text
    enough = int(text.rpartition(" ")[2])
    assert f"set max.message.bytes of '{bench.topic}.letters' to {enough}" in text
    assert told(make(broker, enough, **declared), caplog) == []
    assert told(make(broker, enough - 1, **declared), caplog) != []


def test_room_that_only_the_story_lacks_is_a_line_of_the_log(
    broker: SandboxBroker, caplog: pytest.LogCaptureFixture
) -> None:
    ((level, _),) = told(make(broker, LARGEST), caplog)
    assert level == logging.INFO


def test_nothing_is_said_of_what_a_mapper_makes(broker: SandboxBroker, caplog: pytest.LogCaptureFixture) -> None:
    assert told(make(broker, None, mapper="dead_letter_kit:as_ticket"), caplog) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_story_takes_more_than_it_is_said_to(dialect: DeadLetterDialect) -> None:
    large = "\n" * 100_000
    texts: dict[str, Any] = dict.fromkeys(("component", "exception_class", "message", "stacktrace"), large)
    fault = replace(LETTER.fault, **texts)
    tries = tuple(FailedTry(at, "E" * 500, large[:2_000], 1.0) for at in range(1, 20))
    letter = replace(
        LETTER, headers=(), key=None, value=b"", fault=bounded(replace(fault, retries=tries)), run_key="r" * 750
    ).after(replace(LETTER, headers=(), key=None, value=b"", first=FirstFault(*("t" * 249, 0, 0), large, large, "")))
    for write, kind in ((write_raw, "raw"), (write_envelope, "envelope")):
        key, value, headers = write(letter, DIALECTS[dialect])
        size = len(key or b"") + len(value or b"") + sum(len(name) + len(raw or b"") + 8 for name, raw in headers)
        assert size <= STORY_BYTES[kind], kind


@pytest.mark.parametrize("declared", [{}, {"format": "envelope"}], ids=repr)
def test_a_record_at_the_limit_of_its_source_becomes_a_letter_with_the_remedy(
    broker: SandboxBroker, declared: dict[str, Any]
) -> None:
    bench = make(broker, None, **declared)
    assert bench.pipeline.dead_letter
    enough = letter_bytes(bench.pipeline.dead_letter, LARGEST)
    bench = make(broker, enough, **declared)
    large = LARGEST - 200
    fill(bench.bootstrap, bench.topic, [Sent(b"x" * large)], **{"message.max.bytes": str(LARGEST)})

    fitting: dict[str, Any] = {"message.max.bytes": str(enough)}
    (progress,) = bench.work(bench.plan(), **fitting)

    assert (progress.complete, progress.counts.dead_lettered) == (True, 1)
    assert len(read_all(bench.bootstrap, f"{bench.topic}.letters")) == 1


@pytest.mark.parametrize("declared", [{}, {"mapper": "dead_letter_kit:as_ticket"}], ids=repr)
def test_a_compacted_topic_is_told_of(
    broker: SandboxBroker, caplog: pytest.LogCaptureFixture, declared: dict[str, Any]
) -> None:
    bench = make(broker, 3 * LARGEST, **declared)
    topic = f"{bench.topic}.compacted"
    create_topics(
        bench.bootstrap, topic, config={"cleanup.policy": "compact,delete", "max.message.bytes": str(3 * LARGEST)}
    )
    compacted = replace(bench, pipeline=replace(bench.pipeline, dead_letter=KafkaDeadLetter(topic, **declared)))
    ((level, text),) = told(compacted, caplog)
    assert level == logging.WARNING
    assert f"'{topic}' has cleanup.policy=compact,delete and is compacted: it keeps only the newest" in text
    assert "set cleanup.policy to delete" in text
