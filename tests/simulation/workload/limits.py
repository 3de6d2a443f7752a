"""Limits of the product, small enough for schedules of a few records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from airflow_provider_kpipe.contract import kafka_names, plan
from airflow_provider_kpipe.kafka import planner
from tests.simulation.workload.script import Setup


@contextmanager
def limited(setup: Setup) -> Iterator[None]:
    with ExitStack() as stack:
        for module in (kafka_names, plan, planner):
            stack.enter_context(patch.object(module, "MOST_WRITERS", setup.most_writers))
        stack.enter_context(patch.object(planner, "SHORTEST_PIECE", setup.shortest_piece))
        stack.enter_context(patch.object(planner, "MOST_PIECES", setup.most_pieces))
        yield
