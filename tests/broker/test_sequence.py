"""Numbers that order plans and attempts, whatever the clocks of their hosts say."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from airflow_provider_kpipe.sandbox import SandboxBroker
from airflow_provider_kpipe.transactions.sequence import draw_number
from tests.kit.pipelines import Bench


def test_each_number_is_higher_than_all_before_it(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    group = bench.pipeline.group
    drawn = [draw_number(bench.settings, group, bench.topic, above=above) for above in (0, 0, 40, 7)]
    assert drawn == [1, 2, 41, 42]
    assert draw_number(bench.settings, "another", bench.topic) == 1


def test_nobody_gets_a_number_that_somebody_else_has(broker: SandboxBroker) -> None:
    bench = Bench.make(broker.bootstrap_servers)
    with ThreadPoolExecutor(3) as threads:
        drawn = list(threads.map(lambda _: draw_number(bench.settings, bench.pipeline.group, bench.topic), range(3)))
    assert len(set(drawn)) == 3
