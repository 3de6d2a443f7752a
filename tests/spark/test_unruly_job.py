"""Jobs whose segments or hosts do not behave: they print where they should not, or have no room on a disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.jobs import end_transactions, running_job
from tests.kit.pipelines import Bench
from tests.kit.small_disk import fill_up, small_disk
from tests.kit.topics import committed, fill, numbered, read_all


def test_segments_that_print_and_close_what_they_print_to_disturb_nobody(
    broker: SandboxBroker, run_warm: Callable[[Bench, Plan], str]
) -> None:
    """Spark talks to its Python workers, and kpipe's supervisors to theirs, over descriptors of their own."""
    bench = Bench.make(broker.bootstrap_servers, partitions=2, segments=["orders_kit:prints"])
    fill(bench.bootstrap, bench.topic, numbered(200, partitions=2))
    plan = bench.plan()
    run_warm(bench, plan)
    assert bench.checkpoint(plan).complete
    assert len({record.key for record in read_all(bench.bootstrap, bench.output)}) == 200


def test_a_spark_without_room_for_its_files_fails_its_run_and_loses_nothing(
    broker: SandboxBroker, run_warm: Callable[[Bench, Plan], str], tmp_path: Path
) -> None:
    bench = Bench.make(broker.bootstrap_servers, partitions=2)
    fill(bench.bootstrap, bench.topic, numbered(200, partitions=2))
    plan = bench.plan()
    with small_disk(tmp_path / "disk", "1m") as disk:
        fill_up(disk)
        with running_job(bench, plan, spark_conf={"spark.local.dir": str(disk)}) as job:
            assert job.wait(120) != 0
            assert "No space left on device" in job.output()
    end_transactions(bench, plan)
    assert not bench.checkpoint(plan).complete
    # Where nothing was complete, the group begins where the plan does.
    assert set(committed(bench.bootstrap, plan.group, bench.topic, 2).values()) <= {0}
    run_warm(bench, plan)
    assert bench.checkpoint(plan).complete
    keys = [record.key for record in read_all(bench.bootstrap, bench.output)]
    assert (len(keys), len(set(keys))) == (200, 200)


@pytest.mark.parametrize("segment", ["ends_its_program", "leaves_without_a_word"])
def test_segments_that_exit_make_a_fault_of_their_record_and_no_other(
    broker: SandboxBroker, run_warm: Callable[[Bench, Plan], str], segment: str
) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=[f"orders_kit:{segment}"], chunk_records=10)
    fill(bench.bootstrap, bench.topic, numbered(30))
    plan = bench.plan()
    run_warm(bench, plan)
    checkpoint = bench.checkpoint(plan)
    assert (checkpoint.complete, checkpoint.totals.written, checkpoint.totals.dead_lettered) == (True, 29, 1)
    assert [each.key for each in read_all(bench.bootstrap, bench.dead)] == [b"7"]
