"""The repository's DAGs on a real Airflow, Spark and Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.sandbox import SandboxBroker, kafka_consumer_groups
from demo import orders
from demo.airflow_api import DagRun
from demo.airflow_server import SandboxAirflow
from tests.kit.topics import Sent, fill

ORDERS = 4_000
RUN_SECONDS = 180
HOUR = (orders.DAY + timedelta(hours=12), orders.DAY + timedelta(hours=13))

BAD_FORMS: Mapping[str, tuple[dict[str, Any], str]] = {
    "unknown field": (
        {"window_strat": "2026-01-01T00:00:00Z"},
        "The field 'window_strat' is not known. Known are: window_start, window_end,",
    ),
    "start beyond the end": (
        {"start_offsets": {"0": 1_000_000}},
        "partition 0 of 'orders': the start 1000000 lies above the end of the log",
    ),
}


REDRIVE = "kpipe_redrive_dead_letters"
BAD_REDRIVES: Mapping[str, tuple[dict[str, Any], str]] = {
    "no coordinates": ({"record": "order 12"}, "record is 'order 12', which names no record"),
    "unknown record": ({"record": "orders-0-999999"}, "has record='orders-0-999999' and pipeline='orders': nothing"),
    "unknown class": ({"exception_class": "KeyErorr"}, "has exception_class='KeyErorr' and pipeline='orders': nothing"),
    "no field": ({"recrod": "orders-0-12"}, "The field 'recrod' is not known. Known are: occurred_from,"),
}


@pytest.fixture(scope="module")
def seeds(broker: SandboxBroker) -> tuple[orders.PartitionSeed, ...]:
    orders.create_order_topics(broker.bootstrap_servers)
    return orders.seed(broker.bootstrap_servers, ORDERS)


@pytest.fixture(scope="module")
def live(airflow: SandboxAirflow, seeds: tuple[orders.PartitionSeed, ...]) -> DagRun:
    """The scheduled pipeline has run once; everything else comes after it."""
    run = airflow.api.trigger("kpipe_orders")
    assert run.wait(RUN_SECONDS) == "success", run.task_states()
    return run


@pytest.fixture(scope="module")
def backfills(airflow: SandboxAirflow, live: DagRun) -> dict[str, DagRun]:
    """All forms are sent at once: Airflow works on them side by side, and the tests look at one each."""
    forms: dict[str, dict[str, Any]] = {
        "window": {"window_start": HOUR[0].isoformat(), "window_end": HOUR[1].isoformat()},
        "offsets": {"start_offsets": {"0": 10, "3": 0}, "end_offsets": {"0": 20, "3": 5}},
        "dry run": {"window_start": HOUR[0].isoformat(), "dry_run": True},
        **{name: form for name, (form, _) in BAD_FORMS.items()},
    }
    runs = {name: airflow.api.trigger("kpipe_orders_backfill", form) for name, form in forms.items()}
    for run in runs.values():
        run.wait(RUN_SECONDS)
    return runs


def committed(broker: SandboxBroker, group: str) -> dict[int, int]:
    with Positions({"bootstrap.servers": broker.bootstrap_servers}) as positions:
        held = positions.group_offsets(group, orders.TOPIC, range(orders.PARTITIONS))
    return {partition: each.offset for partition, each in held.items()}


def in_hour(partition: int) -> int:
    """Orders of a partition that were placed within HOUR."""
    return sum(
        orders.partition_of(number) == partition and HOUR[0] <= orders.placed_at(number, ORDERS) < HOUR[1]
        for number in range(ORDERS)
    )


def test_every_task_of_the_pipeline_runs_and_so_does_what_comes_after_the_gate(live: DagRun) -> None:
    assert live.task_states() == dict.fromkeys(
        ("orders.plan", "orders.run", "orders.checkpoint", "drained", "report"), "success"
    )


def test_the_checkpoint_has_the_numbers_that_were_seeded(live: DagRun, seeds: tuple[orders.PartitionSeed, ...]) -> None:
    record = live.xcom("orders.checkpoint")
    assert record == live.xcom("orders.checkpoint", "checkpoint")
    assert (record["pipeline"], record["group"], record["topic"]) == ("orders", "orders", "orders")
    assert [
        (
            each["partition"],
            each["start"],
            each["end"],
            each["committed"],
            each["complete"],
            {name: count for name, count in each["counts"].items() if name != "causes"},
        )
        for each in record["partitions"]
    ] == [
        (
            seed.partition,
            0,
            seed.records,
            seed.records,
            True,
            {
                "read": seed.records,
                "written": seed.good,
                "dead_lettered": seed.poison,
                "filtered": 0,
                "skipped": 0,
                "retried": 0,
                "lost": 0,
                "named": {},
            },
        )
        for seed in seeds
    ]


def test_the_gate_hands_on_what_is_committed(
    live: DagRun, broker: SandboxBroker, seeds: tuple[orders.PartitionSeed, ...]
) -> None:
    ends = {str(seed.partition): seed.records for seed in seeds}
    assert live.xcom("report") == ends
    assert {str(partition): offset for partition, offset in committed(broker, "orders").items()} == ends


def test_kafkas_own_tool_sees_the_group_at_the_end(
    live: DagRun, broker: SandboxBroker, seeds: tuple[orders.PartitionSeed, ...]
) -> None:
    described = kafka_consumer_groups(broker.bootstrap_servers, "--describe", "--group", "orders")
    rows = sorted(line.split()[:6] for line in described.splitlines() if line.startswith("orders "))
    assert rows == [
        ["orders", "orders", str(seed.partition), str(seed.records), str(seed.records), "0"] for seed in seeds
    ]


def test_a_window_is_read_again_under_a_group_of_its_own(
    backfills: dict[str, DagRun], broker: SandboxBroker, seeds: tuple[orders.PartitionSeed, ...]
) -> None:
    run = backfills["window"]
    assert run.state() == "success", run.task_states()
    record = run.xcom("orders.checkpoint")
    assert record["group"] == f"orders.backfill.kpipe_orders_backfill/{run.run_id}/orders.plan"
    assert {each["partition"]: each["counts"]["read"] for each in record["partitions"]} == {
        seed.partition: in_hour(seed.partition) for seed in seeds
    }
    assert committed(broker, record["group"]) == {each["partition"]: each["end"] for each in record["partitions"]}


def test_offsets_are_read_again_just_as_they_were_given(backfills: dict[str, DagRun], broker: SandboxBroker) -> None:
    run = backfills["offsets"]
    assert run.state() == "success", run.task_states()
    record = run.xcom("orders.checkpoint")
    assert [(each["partition"], each["start"], each["end"]) for each in record["partitions"]] == [
        (0, 10, 20),
        (3, 0, 5),
    ]
    assert committed(broker, record["group"]) == {0: 20, 3: 5}


def test_the_live_group_stays_where_it_was(
    backfills: dict[str, DagRun], broker: SandboxBroker, seeds: tuple[orders.PartitionSeed, ...]
) -> None:
    assert committed(broker, "orders") == {seed.partition: seed.records for seed in seeds}


def test_a_dry_run_plans_and_does_nothing(backfills: dict[str, DagRun], broker: SandboxBroker) -> None:
    run = backfills["dry run"]
    assert run.task_states() == {"orders.plan": "success", "orders.run": "skipped", "orders.checkpoint": "skipped"}
    assert committed(broker, run.xcom("orders.plan")["group"]) == {}
    assert "(dry run)" in run.log("orders.plan")


@pytest.mark.parametrize("name", BAD_FORMS)
def test_a_bad_form_fails_at_once_and_says_what_to_write(name: str, backfills: dict[str, DagRun]) -> None:
    run = backfills[name]
    states = run.task_states()
    assert states["orders.plan"] == "failed"
    assert run.tries("orders.plan") == 1
    assert "success" not in states.values(), "nothing was run"
    assert BAD_FORMS[name][1] in run.log("orders.plan")


@pytest.fixture(scope="module")
def redrives(airflow: SandboxAirflow, backfills: dict[str, DagRun]) -> dict[str, DagRun]:
    """The form, sent several times: one run after the other, as the DAG wants it."""
    broken = {"exception_class": "JSONDecodeError", "target": "output"}
    forms: dict[str, dict[str, Any]] = {
        "dry run": {"dry_run": True},
        "first": broken,
        "second": broken,
        "capped": {"target": "source", "max_attempts": 1},
        **{name: form for name, (form, _) in BAD_REDRIVES.items()},
    }
    runs: dict[str, DagRun] = {}
    for name, form in forms.items():
        runs[name] = airflow.api.trigger(REDRIVE, form)
        runs[name].wait(RUN_SECONDS)
    return runs


def poison(seeds: tuple[orders.PartitionSeed, ...]) -> tuple[int, int]:
    """Records that died in the live run, and in backfills again: all, and those with broken JSON."""
    return sum(each.poison for each in seeds), sum(each.broken_json for each in seeds)


def test_a_dry_run_of_the_redrive_shows_what_there_is(
    redrives: dict[str, DagRun], seeds: tuple[orders.PartitionSeed, ...]
) -> None:
    run = redrives["dry run"]
    assert run.state() == "success", run.log("redrive")
    result = run.xcom("redrive")
    every, broken = poison(seeds)
    assert result["dry_run"] is True
    # What died in a backfill too is one record.
    assert result["outcomes"]["redriven"] == every
    assert result["outcomes"]["redriven"] + result["outcomes"]["duplicate"] == result["partitions"][0]["read"]
    assert result["exception_classes"]["json.decoder.JSONDecodeError"] >= broken
    assert result["pipelines"] == {"orders": result["outcomes"]["redriven"]}
    assert len(result["samples"]) == 10
    assert result["samples"][0]["record"].startswith("orders-")


def test_a_redrive_through_the_segments_makes_dead_letters_of_what_is_still_broken(redrives: dict[str, DagRun]) -> None:
    run = redrives["first"]
    assert run.state() == "success", run.log("redrive")
    result, before = run.xcom("redrive"), redrives["dry run"].xcom("redrive")
    assert result == run.xcom("redrive", "progress")
    broken = before["exception_classes"]["json.decoder.JSONDecodeError"]
    assert (result["outcomes"]["redriven"], result["dead_lettered"], result["written"]) == (broken, broken, 0)
    assert result["complete"] is True


def test_pressed_again_it_redrives_only_what_has_died_since(redrives: dict[str, DagRun]) -> None:
    result, first = redrives["second"].xcom("redrive"), redrives["first"].xcom("redrive")
    assert result["outcomes"]["already_redriven"] == first["outcomes"]["redriven"]
    # The new dead letters, at their second attempt.
    assert result["outcomes"]["redriven"] == first["dead_lettered"]


def test_over_the_cap_letters_are_parked(redrives: dict[str, DagRun], broker: SandboxBroker) -> None:
    result = redrives["capped"].xcom("redrive")
    assert (result["outcomes"]["redriven"], result["written"]) == (0, 0)
    with Positions({"bootstrap.servers": broker.bootstrap_servers}) as positions:
        (parked,) = positions.latest(positions.topic(orders.PARKED), "read_committed").values()
    # Each once, and one more offset for the end of the transaction.
    assert result["outcomes"]["parked"] == parked - 1 > 0


@pytest.mark.parametrize("name", BAD_REDRIVES)
def test_a_bad_form_of_the_redrive_fails_at_once_and_says_what_to_write(name: str, redrives: dict[str, DagRun]) -> None:
    run = redrives[name]
    assert run.state() == "failed"
    assert run.tries("redrive") == 1
    assert BAD_REDRIVES[name][1] in run.log("redrive")


def test_airflows_own_backfill_reads_its_hours_again_under_groups_of_their_own(
    airflow: SandboxAirflow, live: DagRun, broker: SandboxBroker, seeds: tuple[orders.PartitionSeed, ...]
) -> None:
    (run,) = airflow.api.backfill("kpipe_orders", HOUR[0], HOUR[0])
    assert run.wait(RUN_SECONDS) == "success", run.log("orders.plan")
    record = run.xcom("orders.checkpoint")
    assert record["group"] == f"orders.backfill.kpipe_orders/{run.run_id}/orders.plan"
    assert {each["partition"]: each["counts"]["read"] for each in record["partitions"]} == {
        seed.partition: in_hour(seed.partition) for seed in seeds
    }
    assert committed(broker, "orders") == {seed.partition: seed.records for seed in seeds}


def test_every_later_run_goes_on_where_the_last_one_committed(
    airflow: SandboxAirflow, live: DagRun, broker: SandboxBroker, seeds: tuple[orders.PartitionSeed, ...]
) -> None:
    """The third run is the first that has two runs before it."""
    for _ in range(2):
        run = airflow.api.trigger("kpipe_orders")
        assert run.wait(RUN_SECONDS) == "success", run.log("orders.plan")
        starts = {each["partition"]: each["start"] for each in run.xcom("orders.plan")["ranges"]}
        assert starts == {seed.partition: seed.records for seed in seeds}


def test_a_finished_run_that_is_cleared_after_a_newer_one_keeps_its_counts_and_starts_no_spark(
    airflow: SandboxAirflow, live: DagRun, broker: SandboxBroker, seeds: tuple[orders.PartitionSeed, ...]
) -> None:
    progress, record = live.xcom("orders.run"), live.xcom("orders.checkpoint")
    fill(broker.bootstrap_servers, orders.TOPIC, [Sent(b'{"order_id": 1, "quantity": 2, "unit_price": 9.5}')])
    newer = airflow.api.trigger("kpipe_orders")
    assert newer.wait(RUN_SECONDS) == "success", newer.log("orders.run")
    after = committed(broker, "orders")
    assert after[0] > record["partitions"][0]["committed"]

    live.clear(["orders.run"], downstream=True)

    assert live.wait(RUN_SECONDS) == "success", live.task_states()
    assert live.tries("orders.run") == live.tries("orders.checkpoint") == 2
    assert (live.xcom("orders.run"), live.xcom("orders.checkpoint")) == (progress, record)
    assert "An earlier try has completed this already" in live.log("orders.run")
    assert "spark-submit" not in live.log("orders.run")
    assert committed(broker, "orders") == after
