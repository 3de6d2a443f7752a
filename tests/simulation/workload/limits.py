"""Limits of the product, small enough for schedules of a few records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow_provider_kpipe.contract import kafka_names, plan
from airflow_provider_kpipe.planning import ranges as planner
from tests.simulation.workload.script import Setup

MODULES = (kafka_names, plan, planner)


@contextmanager
def limited(setup: Setup) -> Iterator[None]:
    writers, shortest, pieces = kafka_names.MOST_WRITERS, planner.SHORTEST_PIECE, planner.MOST_PIECES
    try:
        _set(setup.most_writers, setup.shortest_piece, setup.most_pieces)
        yield
    finally:
        _set(writers, shortest, pieces)


def _set(writers: int, shortest: int, pieces: int) -> None:
    for module in MODULES:
        module.MOST_WRITERS = writers  # type: ignore[attr-defined]
    planner.SHORTEST_PIECE, planner.MOST_PIECES = shortest, pieces
