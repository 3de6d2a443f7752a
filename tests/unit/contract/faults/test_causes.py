from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.faults.causes import MOST_CAUSES, NAME_BYTES, OTHER_KINDS, Cause, merged
from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.offsets.metadata import size_of

CAUSES = st.lists(
    st.builds(
        Cause,
        exception_class=st.sampled_from([f"E{number}" for number in range(14)]),
        component=st.sampled_from(["orders:parse", "orders:Enrich"]),
        count=st.integers(1, 9),
        partition=st.integers(0, 3),
        offset=st.integers(0, 99),
    ),
    max_size=60,
)


def test_a_cause_is_what_a_fault_says() -> None:
    fault = Fault.of(ValueError("no amount"), "orders:parse", "segment")
    assert Cause.of(fault, 3, 17) == Cause("ValueError", "orders:parse", 1, 3, 17)


def test_long_names_are_cut_by_bytes() -> None:
    fault = Fault.of(ValueError("no"), "帳" * 100, "segment")
    cause = Cause.of(dataclasses.replace(fault, exception_class='"' * 100), 0, 0)
    assert size_of(cause.exception_class) <= NAME_BYTES
    assert size_of(cause.component) <= NAME_BYTES


def test_those_of_one_kind_are_counted_together_and_the_first_record_stays() -> None:
    one, other = Cause("A", "x", 1, 0, 5), Cause("B", "x", 1, 0, 6)
    assert merged([one, other, Cause("A", "x", 1, 0, 7)]) == (Cause("A", "x", 2, 0, 5), other)
    # A worker goes on counting in what it had.
    assert one.count == 1
    assert merged([other])[0] is not other


@given(causes=CAUSES)
def test_no_record_is_lost_and_there_are_never_more_kinds_than_shown(causes: list[Cause]) -> None:
    found = merged(causes)
    assert sum(each.count for each in found) == sum(each.count for each in causes)
    assert len(found) <= MOST_CAUSES + 1
    assert len({each.kind for each in found}) == len(found)
    if len(found) > MOST_CAUSES:
        assert found[-1].kind == (OTHER_KINDS, "")
    if causes:
        assert min(each.first for each in found) == min(each.first for each in causes)


def test_ten_kinds_are_told_by_themselves() -> None:
    found = merged([Cause(f"E{number}", "x", 20 - number, 0, number) for number in range(12)])
    assert [each.exception_class for each in found] == [*(f"E{number}" for number in range(10)), OTHER_KINDS]
    assert (found[-1].count, found[-1].first) == (10 + 9, (0, 10))


@given(one=CAUSES, other=CAUSES)
def test_partitions_are_merged_in_any_order(one: list[Cause], other: list[Cause]) -> None:
    assert merged([*one, *other]) == merged([*other, *one])


def test_a_cause_is_shown_with_where_it_was_met_first() -> None:
    assert Cause("ValueError", "orders:parse", 1_200, 3, 17).shown("orders") == (
        "1,200 x ValueError in orders:parse, first orders-3 at offset 17"
    )
    assert Cause(OTHER_KINDS, "", 2, 0, 1).shown("orders") == "2 x other kinds, first orders-0 at offset 1"
