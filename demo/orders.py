"""Orders for the demo: every run makes the same ones, with a known number of poison records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Literal, TypeAlias, get_args

from airflow_provider_kpipe.sandbox.errors import SandboxError
from airflow_provider_kpipe.sandbox.topics import create_topics

Kind: TypeAlias = Literal["good", "broken_json", "missing_field", "null_value"]
KINDS: tuple[Kind, ...] = get_args(Kind)

TOPIC, ENRICHED, DEAD, PARKED = "orders", "orders.enriched", "orders.dead", "orders.parked"
PARTITIONS = 4
ORDERS = 200_000
# The orders cover a day, so that a backfill has hours to choose from.
DAY = datetime(2026, 1, 1, tzinfo=timezone.utc)
_DAY_MS = round(DAY.timestamp() * 1000)
_MILLISECONDS_OF_DAY = 86_400_000

_CUSTOMERS = 4_999
# Customers are spread unevenly, as in a real topic.
_PARTITION_OF_CUSTOMER = (0, 0, 0, 1, 1, 1, 2, 2, 3, 3)
_ARTICLES = (("tea-green-100g", 6.9), ("tea-black-250g", 9.5), ("cup-blue", 12.0), ("kettle-1l", 49.9), ("tray", 18.25))
_CITIES = ("Lisbon", "Kraków", "Lyon", "Turku", "Graz", "Cork", "Ghent")
_CHANNELS = (b"web", b"app", b"shop")
_FLUSH_SECONDS = 60.0
_to_json = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class Message:
    """The record that is sent for one order."""

    kind: Kind
    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    partition: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class PartitionSeed:
    """The number of orders of each kind in a partition."""

    partition: int
    good: int
    broken_json: int
    missing_field: int
    null_value: int

    @property
    def poison(self) -> int:
        return self.broken_json + self.missing_field + self.null_value

    @property
    def records(self) -> int:
        return self.good + self.poison


def order_id(number: int) -> str:
    return f"order-{number:07d}"


def number_of(identifier: str) -> int:
    return int(identifier.removeprefix("order-"))


def partition_of(number: int) -> int:
    """Return the partition of an order: a customer's orders stay in one."""
    return _PARTITION_OF_CUSTOMER[_customer(number) % len(_PARTITION_OF_CUSTOMER)]


def kind_of(number: int) -> Kind:
    """Return the kind of an order: three and a half of a thousand are poison."""
    if number % 500 == 137:
        return "broken_json"
    if number % 1000 == 733:
        return "missing_field"
    return "null_value" if number % 2000 == 1999 else "good"


def _customer(number: int) -> int:
    return number * 7919 % _CUSTOMERS


def placed_at(number: int, count: int = ORDERS) -> datetime:
    """Return the time of an order: `count` orders are spread evenly over the day."""
    return DAY + timedelta(milliseconds=number * _MILLISECONDS_OF_DAY // count)


def order(number: int, count: int = ORDERS) -> dict[str, Any]:
    sku, unit_price = _ARTICLES[number * 31 % len(_ARTICLES)]
    return {
        "order_id": order_id(number),
        "customer_id": f"customer-{_customer(number):04d}",
        "sku": sku,
        "quantity": 1 + number * 13 % 5,
        "unit_price": unit_price,
        "city": _CITIES[number * 17 % len(_CITIES)],
        "created_at": placed_at(number, count).isoformat(timespec="milliseconds"),
    }


def message(number: int, count: int = ORDERS) -> Message:
    kind = kind_of(number)
    content = order(number, count)
    if kind == "missing_field":
        del content["unit_price"]
    value: bytes | None = _to_json(content).encode()
    if kind == "broken_json":
        value = (value or b"")[:-9]
    return Message(
        kind=kind,
        key=content["customer_id"].encode(),
        value=None if kind == "null_value" else value,
        headers=(("channel", _CHANNELS[number % len(_CHANNELS)]), ("content-type", b"application/json")),
        partition=partition_of(number),
        timestamp_ms=_DAY_MS + number * _MILLISECONDS_OF_DAY // count,
    )


def messages(count: int = ORDERS) -> Iterator[Message]:
    return (message(number, count) for number in range(count))


def seeds(count: int = ORDERS) -> tuple[PartitionSeed, ...]:
    """Count the orders that `seed` puts into each partition, by kind."""
    found = Counter((partition_of(number), kind_of(number)) for number in range(count))
    return tuple(
        PartitionSeed(partition, **{kind: found[partition, kind] for kind in KINDS}) for partition in range(PARTITIONS)
    )


def create_order_topics(bootstrap_servers: str) -> None:
    """Create the topics of the orders pipeline."""
    create_topics(bootstrap_servers, TOPIC, ENRICHED, partitions=PARTITIONS)
    create_topics(bootstrap_servers, DEAD, PARKED)


def seed(bootstrap_servers: str, count: int = ORDERS) -> tuple[PartitionSeed, ...]:
    """Send the orders to their topic, and return the counts of each partition."""
    from confluent_kafka import Producer

    producer = Producer(
        # Idempotent, so that a retry inside the client makes no second copy.
        {"bootstrap.servers": bootstrap_servers, "linger.ms": 20, "enable.idempotence": True, "log_level": 3}
    )
    failed: list[Any] = []

    def note(error: Any, _: Any) -> None:
        if error is not None:
            failed.append(error)

    for each in messages(count):
        while True:
            try:
                producer.produce(
                    TOPIC,
                    each.value,
                    each.key,
                    each.partition,
                    on_delivery=note,
                    timestamp=each.timestamp_ms,
                    headers=list(each.headers),
                )
                break
            except BufferError:
                producer.poll(0.1)
    waiting = producer.flush(_FLUSH_SECONDS)
    if waiting or failed:
        reason = failed[0] if failed else f"no answer within {_FLUSH_SECONDS:.0f} s"
        raise SandboxError(f"{waiting + len(failed)} of {count} orders did not reach topic {TOPIC!r}: {reason}")
    return seeds(count)
