from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.offsets.limits import At, Committed, Earliest, Explicit, Latest, OffsetLimit
from airflow_provider_kpipe.contract.offsets.origin import Origin
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.progress.checkpoint import CommitMark
from airflow_provider_kpipe.contract.progress.standing import Facts, Held
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.planning.ranges import Snapshot, Wishes, cut, plan_ranges, share_fairly

LENGTHS = st.dictionaries(st.integers(0, 100), st.integers(0, 10**9), max_size=12)
MOMENT, LATER = 1_000, 2_000


def held(**offsets: int) -> dict[int, Facts]:
    return {int(name.removeprefix("p")): Facts("id", Held(offset)) for name, offset in offsets.items()}


def snapshot(**changes: Any) -> Snapshot:
    """Partition 0 holds [100, 200), 1 holds [0, 50), and 2 is empty."""
    found: dict[str, Any] = {
        "topic": "orders",
        "earliest": {0: 100, 1: 0, 2: 0},
        "latest": {0: 200, 1: 50, 2: 0},
        "at": {MOMENT: {0: 120, 1: 10, 2: 0}, LATER: {0: 180, 1: 50, 2: 0}},
        "facts": held(p0=150, p1=20),
    }
    return Snapshot(**{**found, **changes})


def ranges(wishes: Wishes, found: Snapshot) -> dict[int, tuple[int, int]]:
    return {each.partition: (each.start, each.end) for each in plan_ranges(wishes, found)}


@given(wanted=LENGTHS, total=st.integers(1, 10**10))
@settings(deadline=None, max_examples=200)
def test_shares_are_as_large_as_the_total_allows_and_never_larger_than_wanted(
    wanted: dict[int, int], total: int
) -> None:
    shares = share_fairly(wanted, total)
    assert shares.keys() == wanted.keys()
    assert all(0 <= shares[name] <= amount for name, amount in wanted.items())
    assert sum(shares.values()) == min(total, sum(wanted.values()))


@given(wanted=LENGTHS.filter(bool), total=st.integers(1, 10**10))
@settings(deadline=None, max_examples=200)
def test_nobody_is_starved_by_a_bigger_one(wanted: dict[int, int], total: int) -> None:
    shares = share_fairly(wanted, total)
    assert all(shares[name] >= min(amount, total // len(wanted)) for name, amount in wanted.items())


@given(wanted=LENGTHS.filter(bool), total=st.integers(1, 10**10))
@settings(deadline=None, max_examples=200)
def test_no_capped_partition_gets_less_than_another(wanted: dict[int, int], total: int) -> None:
    shares = share_fairly(wanted, total)
    most = max(shares.values())
    assert all(shares[name] == amount or shares[name] >= most - 1 for name, amount in wanted.items())


def test_the_others_share_the_rest_of_a_small_partition() -> None:
    assert share_fairly({0: 10, 1: 1_000, 2: 1_000}, 100) == {0: 10, 1: 45, 2: 45}


def test_records_that_have_left_the_log_take_nothing_of_a_cap() -> None:
    found = snapshot(facts=held(p0=30, p1=20))
    assert ranges(Wishes(partitions=(0,), max_records=10), found) == {0: (30, 110)}
    assert ranges(Wishes(partitions=(0,), max_records_per_partition=10), found) == {0: (30, 110)}


def test_a_backfill_reads_again_what_runs_have_done_beyond_a_gap() -> None:
    mark = CommitMark("run-1", 1, "id", Origin(1, 100), beyond=((160, 170),))
    found = snapshot(facts={0: Facts("id", Held(150, mark))})
    (goes_on,) = plan_ranges(Wishes(partitions=(0,)), found)
    (backfill,) = plan_ranges(Wishes(start=Explicit({0: 150}), partitions=(0,)), found, number=7)
    assert (goes_on.done, goes_on.origin) == (((160, 170),), Origin(1, 100))
    assert (backfill.done, backfill.origin) == ((), Origin(7))


STARTS: list[tuple[OffsetLimit, dict[int, tuple[int, int]]]] = [
    (Committed(), {0: (150, 200), 1: (20, 50), 2: (0, 0)}),
    (Earliest(), {0: (100, 200), 1: (0, 50), 2: (0, 0)}),
    (At(MOMENT), {0: (120, 200), 1: (10, 50), 2: (0, 0)}),
    (Explicit({0: 130, 1: 0}), {0: (130, 200), 1: (0, 50)}),
]


@pytest.mark.parametrize(("start", "found"), STARTS, ids=[repr(start) for start, _ in STARTS])
def test_a_plan_starts_where_it_was_wished(start: OffsetLimit, found: dict[int, tuple[int, int]]) -> None:
    assert ranges(Wishes(start=start), snapshot()) == found


ENDS: list[tuple[OffsetLimit, dict[int, tuple[int, int]]]] = [
    (Latest(), {0: (100, 200), 1: (0, 50), 2: (0, 0)}),
    (At(LATER), {0: (100, 180), 1: (0, 50), 2: (0, 0)}),
    (Explicit({0: 170, 2: 0}), {0: (100, 170), 2: (0, 0)}),
]


@pytest.mark.parametrize(("end", "found"), ENDS, ids=[repr(end) for end, _ in ENDS])
def test_a_plan_ends_where_it_was_wished(end: OffsetLimit, found: dict[int, tuple[int, int]]) -> None:
    assert ranges(Wishes(start=Earliest(), end=end), snapshot()) == found


def test_a_window_is_between_two_moments() -> None:
    assert ranges(Wishes(start=At(MOMENT), end=At(LATER)), snapshot()) == {0: (120, 180), 1: (10, 50), 2: (0, 0)}


def test_a_plan_keeps_the_committed_offset_that_it_was_made_against() -> None:
    planned = plan_ranges(Wishes(start=Earliest()), snapshot())
    assert planned == (
        PartitionRange(0, 100, 200, 150, group_origin=Origin(1, 150)),
        PartitionRange(1, 0, 50, 20, group_origin=Origin(1, 20)),
        PartitionRange(2, 0, 0, None, group_origin=Origin(1)),
    )


@pytest.mark.parametrize(("otherwise", "start"), [("earliest", 100), ("latest", 200)])
def test_a_partition_without_a_committed_offset_starts_where_it_was_said(otherwise: Any, start: int) -> None:
    found = ranges(Wishes(start=Committed(otherwise)), snapshot(facts=held(p1=20)))
    assert found == {0: (start, 200), 1: (20, 50), 2: (0, 0)}


def checkpointed(offset: int, topic_id: str = "id") -> Held:
    return Held(offset, CommitMark("run", 1, topic_id, Origin(1), "orders"))


@pytest.mark.parametrize(
    ("known", "start"),
    [
        pytest.param({1: Facts("id", checkpointed(20))}, 100, id="other partitions are published"),
        pytest.param({1: Facts("id", published=checkpointed(20))}, 100, id="they were reset since"),
        pytest.param({1: Facts("id", checkpointed(20, "gone"))}, 200, id="of a topic that had the same name"),
        pytest.param({1: Facts("id", Held(20))}, 200, id="somebody has put it there, and no run has begun"),
        pytest.param(
            {0: Facts("id", published=checkpointed(120)), 1: Facts("id", checkpointed(20))}, 200, id="it was deleted"
        ),
    ],
)
def test_a_partition_that_is_added_later_is_read_from_its_beginning(known: dict[int, Facts], start: int) -> None:
    found = snapshot(facts={0: Facts("id"), **known}, latest={0: 200, 1: 50}, earliest={0: 100, 1: 0})
    assert ranges(Wishes(start=Committed("latest")), found)[0] == (start, 200)


def test_a_partition_without_a_committed_offset_is_an_error_where_it_was_said() -> None:
    with pytest.raises(PlanError, match="partition 0 of 'orders': the group has no committed offset"):
        plan_ranges(Wishes(start=Committed("error")), snapshot(facts=held(p1=20)))


def test_a_committed_offset_of_zero_is_a_committed_offset() -> None:
    found = snapshot(facts=held(p0=100, p1=0, p2=0))
    assert ranges(Wishes(start=Committed("error")), found) == {0: (100, 200), 1: (0, 50), 2: (0, 0)}


def test_a_committed_offset_below_the_log_stays_so_that_the_loss_is_noticed() -> None:
    assert ranges(Wishes(partitions=(0,)), snapshot(facts=held(p0=40))) == {0: (40, 200)}


def test_a_group_past_the_window_has_nothing_left_to_do() -> None:
    assert ranges(Wishes(end=At(MOMENT)), snapshot()) == {0: (150, 150), 1: (20, 20), 2: (0, 0)}


def test_an_empty_topic_makes_an_empty_plan() -> None:
    nothing = snapshot(earliest={0: 0, 1: 0}, latest={0: 0, 1: 0}, facts={})
    assert ranges(Wishes(), nothing) == {0: (0, 0), 1: (0, 0)}


def test_a_start_after_the_last_record_is_an_empty_plan_although_records_arrive_meanwhile() -> None:
    later = snapshot(at={MOMENT: {0: 205, 1: 50, 2: 0}})
    assert [len(each) for each in plan_ranges(Wishes(start=At(MOMENT)), later)] == [0, 0, 0]


REFUSED: list[tuple[str, Wishes, dict[str, Any], str]] = [
    (
        "explicit start below the log",
        Wishes(start=Explicit({0: 99})),
        {},
        "partition 0 of 'orders': the start 99 lies below the start of the log, 100",
    ),
    (
        "explicit start above the log",
        Wishes(start=Explicit({0: 201})),
        {},
        "partition 0 of 'orders': the start 201 lies above the end of the log, 200",
    ),
    (
        "explicit end above the log",
        Wishes(start=Earliest(), end=Explicit({1: 51})),
        {},
        "partition 1 of 'orders': the end 51 lies above the end of the log, 50",
    ),
    (
        "end below the log",
        Wishes(start=Earliest(), end=Explicit({0: 50})),
        {},
        "partition 0 of 'orders': start 100 is after end 50",
    ),
    (
        "group above the log",
        Wishes(),
        {"facts": held(p1=51)},
        "partition 1 of 'orders': the group stands at 51, above the end of the log, 50",
    ),
    (
        "unknown partition",
        Wishes(partitions=(0, 3)),
        {},
        "partition 3 is not in topic 'orders', which has partitions 0 to 2",
    ),
    ("unknown partition in the start", Wishes(start=Explicit({7: 0})), {}, "partition 7 is not in topic 'orders'"),
    ("unknown partition in the end", Wishes(end=Explicit({8: 0})), {}, "partition 8 is not in topic 'orders'"),
]


@pytest.mark.parametrize(("wishes", "changes", "said"), [each[1:] for each in REFUSED], ids=[e[0] for e in REFUSED])
def test_wishes_that_make_no_plan_are_refused_by_partition(wishes: Wishes, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(PlanError) as refusal:
        plan_ranges(wishes, snapshot(**changes))
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("wishes", "partitions"),
    [
        (Wishes(partitions=(2, 0, 0)), [0, 2]),
        (Wishes(start=Explicit({1: 0}), partitions=(0, 1)), [1]),
        (Wishes(start=Explicit({0: 100, 1: 0}), end=Explicit({1: 50, 2: 0})), [1]),
    ],
    ids=["named", "explicit start", "explicit start and end"],
)
def test_only_the_partitions_wished_for_are_planned(wishes: Wishes, partitions: list[int]) -> None:
    assert [each.partition for each in plan_ranges(wishes, snapshot())] == partitions


@pytest.mark.parametrize(
    ("caps", "lengths"),
    [
        ({"max_records_per_partition": 30}, [30, 30, 0]),
        ({"max_records_per_partition": 80}, [80, 50, 0]),
        ({"max_records": 60}, [30, 30, 0]),
        ({"max_records": 120}, [70, 50, 0]),
        ({"max_records": 1_000}, [100, 50, 0]),
        ({"max_records": 120, "max_records_per_partition": 60}, [60, 50, 0]),
        ({"max_records": 1}, [1, 0, 0]),
    ],
    ids=repr,
)
def test_caps_cut_the_end_and_are_shared_fairly(caps: dict[str, Any], lengths: list[int]) -> None:
    planned = plan_ranges(Wishes(start=Earliest(), **caps), snapshot())
    assert [len(each) for each in planned] == lengths
    assert [each.start for each in planned] == [100, 0, 0]


@pytest.mark.parametrize(("topic_partitions", "pieces"), [(1, 5), (64, 5), (65, 1), (1_000, 1)])
def test_a_long_range_is_cut_where_its_topic_has_no_more_partitions_than_writers(
    topic_partitions: int, pieces: int
) -> None:
    long, short = PartitionRange(0, 100, 100_100, 100), PartitionRange(1, 0, 20_000, 0)
    one, other = cut([long, short], topic_partitions)
    found = [(each.start, each.end) for each in one.pieces]
    size = 100_000 // pieces
    assert found == [(start, start + size) for start in range(100, 100_100, size)]
    assert other == short


@pytest.mark.parametrize(("kept", "pieces"), [(0, 16), (33, 16), (40, 9), (48, 1), (60, 1)])
def test_a_range_is_cut_into_fewer_pieces_where_spans_stay_beside_the_offset(kept: int, pieces: int) -> None:
    planned = PartitionRange(0, 0, 400_000, 0)
    (done,) = cut([replace(planned, done=tuple((at, at + 1) for at in range(1, 2 * kept, 2)))], 1)
    (published,) = cut([planned], 1, kept={0: kept})
    assert (len(done.pieces), len(published.pieces)) == (pieces, pieces)


@pytest.mark.parametrize("cap", [0, -1, True, False, 1.5, "5"], ids=repr)
@pytest.mark.parametrize("name", ["max_records", "max_records_per_partition"])
def test_a_cap_is_a_whole_number_from_one(name: str, cap: Any) -> None:
    with pytest.raises(ValueError, match=f"^{name}={cap!r}: a cap is a whole number from 1"):
        Wishes(**{name: cap})


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ({"partitions": (-1,)}, "partitions has -1: a partition is a whole number from 0"),
        ({"partitions": ()}, "partitions is empty, and names no partition: name some, or leave it out"),
        ({"start": Explicit({0: 100}), "partitions": (1,)}, "no partition in common: they name [1] and [0]"),
        ({"start": Explicit({0: 100}), "end": Explicit({1: 50})}, "no partition in common: they name [0] and [1]"),
        (
            {"start": Explicit({0: 180, 1: 5}), "end": Explicit({0: 170, 1: 5})},
            "partition 0: start 180 is after end 170: swap or correct them",
        ),
    ],
    ids=repr,
)
def test_wishes_that_contradict_each_other_need_no_topic_to_be_refused(wishes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        Wishes(**wishes)


@pytest.mark.parametrize("end", [Committed(), Earliest()], ids=repr)
def test_a_plan_cannot_end_at_the_group_or_at_the_beginning(end: OffsetLimit) -> None:
    said = f"end='{type(end).__name__.lower()}': use 'latest', a moment, or an offset per partition"
    with pytest.raises(ValueError, match=said):
        Wishes(end=end)


@pytest.mark.parametrize(("start", "continues"), [(Committed(), True), (Committed("error"), True), (Earliest(), False)])
def test_only_a_plan_from_the_committed_offsets_continues_the_group(start: OffsetLimit, continues: bool) -> None:
    assert Wishes(start=start).continues_group is continues


def test_a_plan_is_silent_about_what_is_usual(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        plan_ranges(Wishes(), snapshot())
    assert not caplog.records
