"""Whatever is in a topic goes through a whole worker: it comes out once, and it is what it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import pytest
from fateful_kit import OUTPUTS, fate_of
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_kpipe import PartitionScaling
from airflow_provider_kpipe.contract.dead_letters.dialects import FAULT_HEADERS
from airflow_provider_kpipe.contract.dead_letters.messages import read_dead_letter
from airflow_provider_kpipe.contract.documents import OtherVersionError
from airflow_provider_kpipe.contract.redrive.redrive import RedriveTarget
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from tests.kit.pipelines import Bench
from tests.kit.redrives import dry_run, fixed, redrive
from tests.kit.strange_records import LETTERS, RECORDS, at_home, whole_runs
from tests.kit.topics import Seen, Sent, fill, read_all

# Of an example that fails, the blob is for replay, and the whole of it is long.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

RELAXED = PartitionScaling("relax_ordering_within_partition", max_in_flight_per_partition=4)
HANDLERS: dict[str, dict[str, Any]] = {
    "in order": {"segments": ["fateful_kit:meet_fate"], "dead_letter": {"dialect": "spring"}},
    "threads": {"segments": ["fateful_kit:meet_fate"], "scaling": RELAXED, "dead_letter": {"format": "envelope"}},
    "async": {"segments": ["fateful_kit:meet_fate_awaited"], "scaling": RELAXED, "dead_letter": {"dialect": "connect"}},
    "batch": {"segments": ["fateful_kit:meet_fate_in_batch"]},
}
Content = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


def content(record: Any) -> Content:
    return record.key, record.value, tuple(record.headers)


def inside(record: Seen) -> Content:
    """Of a record that came as a dead letter of somebody's, the one inside goes on from letter to letter."""
    try:
        letter = read_dead_letter(record.key, record.value, record.headers) if is_told_of(record) else None
    except OtherVersionError:
        letter = None
    return content(record if letter is None else letter)


def is_told_of(record: Seen) -> bool:
    return any(name in FAULT_HEADERS for name, _ in record.headers)


@pytest.mark.parametrize("handler", HANDLERS)
@given(records=st.lists(RECORDS, min_size=20, max_size=30))
@whole_runs(examples=3)
def test_any_record_comes_out_once_as_it_was_and_so_does_its_letter(
    broker: SandboxBroker, handler: str, records: Sequence[Sent]
) -> None:
    bench = Bench.make(broker.bootstrap_servers, **HANDLERS[handler])
    fill(bench.bootstrap, bench.topic, records)
    read = read_all(bench.bootstrap, bench.topic)
    fates = [fate_of(each.key, each.value) for each in read]
    passed = [each for each, fate in zip(read, fates, strict=True) for _ in range(OUTPUTS.get(fate, 0))]
    faulted = [each for each, fate in zip(read, fates, strict=True) if fate not in OUTPUTS]

    (progress,) = bench.work(bench.plan())

    counts = progress.counts
    assert (progress.reason, progress.complete, counts.read) == (None, True, len(records))
    assert (counts.written, counts.dead_lettered) == (len(passed), len(faulted))
    assert counts.filtered == fates.count("is filtered")
    found = read_all(bench.bootstrap, bench.output)
    assert list(map(content, found)) == list(map(content, passed))
    assert [each.timestamp for each in found] == [each.timestamp for each in passed]
    dead = read_all(bench.bootstrap, bench.dead)
    assert list(map(content_of_letter, dead)) == list(map(inside, faulted))
    assert [each.timestamp for each in dead] == [each.timestamp for each in faulted]

    named = redrive(fixed(bench)).named

    assert named == ({"kpipe:redriven": len(faulted)} if faulted else {})
    again = read_all(bench.bootstrap, bench.output)[len(passed) :]
    assert list(map(content, again)) == list(map(inside, faulted))
    assert len(read_all(bench.bootstrap, bench.dead)) == len(dead)


def content_of_letter(message: Seen) -> Content:
    letter = read_dead_letter(message.key, message.value, message.headers)
    assert letter is not None
    return content(letter)


HOWS: tuple[dict[str, Any], ...] = (
    {},
    {"each_letter": True},
    {"max_attempts": 2},
    {"max_attempts": 2, "parked": True},
    {"pipeline": ""},
)


@pytest.mark.parametrize("target", get_args(RedriveTarget))
@given(garbage=st.lists(LETTERS, min_size=20, max_size=30), how=st.sampled_from(HOWS))
@whole_runs(examples=3)
def test_any_letter_is_redriven_once_or_counted_under_what_it_is(
    broker: SandboxBroker, target: RedriveTarget, garbage: Sequence[Sent], how: dict[str, Any]
) -> None:
    bench = fixed(Bench.make(broker.bootstrap_servers))
    parking = f"{bench.topic}.parked"
    create_topics(bench.bootstrap, parking)
    how = {**how, "target": target, "parking": parking if how.get("parked") else None}
    how.pop("parked", None)
    fill(bench.bootstrap, bench.dead, [at_home(each, bench.topic) for each in garbage])
    dead = read_all(bench.bootstrap, bench.dead)

    would = dry_run(bench, **how).outcomes
    counts = redrive(bench, **how)

    assert counts.named == {f"kpipe:{outcome}": count for outcome, count in would.items() if count}
    assert sum(counts.named.values()) == counts.read == len(garbage)
    assert counts.written + counts.dead_lettered == would["redriven"]
    written = read_all(bench.bootstrap, bench.topic if target == "source" else bench.output)
    assert len(written) == counts.written
    assert are_among([payload(each) for each in written], [inside(each)[:2] for each in dead])
    if target == "output":
        assert are_among(list(map(content, written)), list(map(inside, dead)))
    parked = read_all(bench.bootstrap, parking)
    assert len(parked) == would["parked"]
    assert are_among(list(map(content, parked)), list(map(content, dead)))
    assert read_all(bench.bootstrap, bench.dead)[: len(dead)] == dead
    # One that became a letter again, for what its inside says of its time, may go back with that letter's.
    assert redrive(bench, "redrive-2", **how).named.get("kpipe:redriven", 0) <= counts.dead_lettered


def payload(record: Seen) -> tuple[bytes | None, bytes | None]:
    return record.key, record.value


def are_among(some: Sequence[Any], all_: Sequence[Any]) -> bool:
    """In the same order."""
    rest = iter(all_)
    return all(each in rest for each in some)
