from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from demo.orders import PartitionSeed
from demo.report import Outcome, PartitionOutcome, differences, table, verdict

SEEDS = (PartitionSeed(0, 1_990, 5, 3, 2), PartitionSeed(1, 990, 4, 3, 3))


def outcome_of(seed: PartitionSeed) -> PartitionOutcome:
    """Everything as seeded."""
    return PartitionOutcome(
        partition=seed.partition,
        start=0,
        end=seed.records,
        written=seed.good,
        dead_lettered=seed.poison,
        found_written=seed.good,
        found_dead={
            "broken_json": seed.broken_json,
            "missing_field": seed.missing_field,
            "null_value": seed.null_value,
        },
        committed=seed.records,
        log_end=seed.records,
    )


RIGHT = Outcome("success", tuple(outcome_of(seed) for seed in SEEDS), repeated=0)


def with_second(**changes: Any) -> Outcome:
    first, second = RIGHT.partitions
    return dataclasses.replace(RIGHT, partitions=(first, dataclasses.replace(second, **changes)))


def test_a_run_as_seeded_has_no_differences() -> None:
    assert differences(SEEDS, RIGHT) == []
    assert verdict(SEEDS, RIGHT) == (
        "Every number is as seeded: 2,980 orders written, each exactly once; 20 in the dead letters "
        "(9 with broken JSON, 6 with a missing field, 5 with no value); every offset committed, no lag."
    )


@pytest.mark.parametrize(
    ("outcome", "difference"),
    [
        (dataclasses.replace(RIGHT, state="failed"), "the DAG run ended as 'failed' instead of 'success'"),
        (dataclasses.replace(RIGHT, repeated=1_200), "1,200 records were written more than once"),
        (
            dataclasses.replace(RIGHT, partitions=RIGHT.partitions[:1]),
            "partition 1: nothing is known of its 1,000 records",
        ),
        (with_second(start=1), "partition 1: offsets planned 999 instead of 1,000"),
        (with_second(written=989), "partition 1: written 989 instead of 990"),
        (with_second(dead_lettered=9), "partition 1: dead-lettered 9 instead of 10"),
        (with_second(found_written=0), "partition 1: orders in orders.enriched 0 instead of 990"),
        (with_second(log_end=1_001), "partition 1: lag 1 instead of 0"),
    ],
)
def test_a_number_that_differs_is_named(outcome: Outcome, difference: str) -> None:
    assert differences(SEEDS, outcome) == [difference]
    assert verdict(SEEDS, outcome) == f"NOT as seeded:\n  {difference}"


def test_poison_of_the_wrong_kind_is_named() -> None:
    found = with_second(found_dead={"broken_json": 5, "missing_field": 2, "null_value": 3})
    assert differences(SEEDS, found) == [
        "partition 1: orders with broken JSON in orders.dead 5 instead of 4",
        "partition 1: orders with a missing field in orders.dead 2 instead of 3",
    ]


def test_a_partition_without_a_commit_lags_by_all_its_records() -> None:
    assert differences(SEEDS, with_second(committed=None)) == [
        "partition 1: committed none instead of 1,000",
        "partition 1: lag 1,000 instead of 0",
    ]


def test_the_table_has_a_row_per_partition_and_their_sum() -> None:
    assert [line.split() for line in table(RIGHT).splitlines()[1:]] == [
        ["0", "[0;", "2,000)", "1,990", "10", "1,990", "10", "2,000", "0"],
        ["1", "[0;", "1,000)", "990", "10", "990", "10", "1,000", "0"],
        ["all", "3,000", "2,980", "20", "2,980", "20", "3,000", "0"],
    ]
    assert len({len(line) for line in table(RIGHT).splitlines()}) == 1
