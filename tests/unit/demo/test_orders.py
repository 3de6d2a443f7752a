from __future__ import annotations

import json
from collections import Counter
from typing import Any

from orders_pipeline import Enrich, parse

from demo import orders
from demo.orders import KINDS, kind_of, message, messages, order, partition_of, seeds

COUNT = 4_000


class FakeRecord:
    """As much of a record as the demo's segments touch."""

    def __init__(self, value: bytes | None) -> None:
        self.value = value


def record_of(value: bytes | None) -> Any:
    return FakeRecord(value)


def fault_of(value: bytes | None) -> str | None:
    """What the pipeline's first segment raises for a value."""
    try:
        parse(record_of(value))
    except Exception as error:  # noqa: BLE001 - the segment may raise anything
        return type(error).__name__
    return None


def test_every_run_makes_the_same_orders() -> None:
    assert list(messages(COUNT)) == list(messages(COUNT))


def test_the_counts_match_the_messages() -> None:
    sent = Counter((each.partition, each.kind) for each in messages(COUNT))
    counted = {(each.partition, kind): getattr(each, kind) for each in seeds(COUNT) for kind in KINDS}
    assert counted == {key: sent[key] for key in counted}
    assert sum(each.records for each in seeds(COUNT)) == COUNT


def test_the_numbers_of_the_demo() -> None:
    found = seeds()
    assert [each.partition for each in found] == [0, 1, 2, 3]
    assert sum(each.records for each in found) == 200_000
    assert {kind: sum(getattr(each, kind) for each in found) for kind in KINDS} == {
        "good": 199_300,
        "broken_json": 400,
        "missing_field": 200,
        "null_value": 100,
    }
    assert all(each.broken_json and each.missing_field and each.null_value for each in found)
    # Partitions that are alike would hide numbers that were mixed up.
    assert len({each.good for each in found}) == len({each.poison for each in found}) == 4


def test_each_kind_of_poison_faults_the_pipeline_in_its_own_way() -> None:
    faults = {kind: {fault_of(each.value) for each in messages(COUNT) if each.kind == kind} for kind in KINDS}
    assert faults == {
        "good": {None},
        "broken_json": {"JSONDecodeError"},
        "missing_field": {"KeyError"},
        "null_value": {"ValueError"},
    }


def test_a_good_order_goes_through_the_pipeline() -> None:
    record = record_of(message(1).value)
    enrich = Enrich()
    enrich.run_key = "run"
    enrich.process(parse(record))
    enriched = json.loads(record.value or b"")
    assert enriched == {**order(1), "total": order(1)["quantity"] * order(1)["unit_price"], "enriched_by": "run"}


def test_a_customer_stays_in_one_partition() -> None:
    partitions: dict[bytes, set[int]] = {}
    for each in messages(20_000):
        partitions.setdefault(each.key, set()).add(each.partition)
    assert {len(found) for found in partitions.values()} == {1}


def test_the_orders_fill_a_day_in_order() -> None:
    moments = [each.timestamp_ms for each in messages(24)]
    assert moments == [round(orders.DAY.timestamp() * 1000) + hour * 3_600_000 for hour in range(24)]
    assert order(12, 24)["created_at"] == "2026-01-01T12:00:00.000+00:00"


def test_an_order_is_found_again_by_its_id() -> None:
    for number in (0, 137, 199_999):
        assert orders.number_of(order(number)["order_id"]) == number
    assert partition_of(137) == message(137).partition
    assert kind_of(137) == "broken_json"
