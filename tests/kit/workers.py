"""Partition workers: at work beside the test, or abandoned in the middle of a chunk."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from kpipe_engine.partition_worker import PartitionWorker
from kpipe_engine.reading.chunk import Chunk
from kpipe_engine.stop_signal import StopSignal


class Working(threading.Thread):
    """Runs it; `progress` is what it reports at the end."""

    def __init__(self, worker: PartitionWorker) -> None:
        super().__init__()
        self.worker = worker
        self.progress: list[PartitionProgress] = []

    def run(self) -> None:
        self.progress = self.worker.run()


def session_of(worker: PartitionWorker) -> Any:
    """The session that takes the records of a worker."""
    return worker.filler._session


def producer_of(worker: PartitionWorker) -> Any:
    """The client with which a worker writes by now."""
    return session_of(worker)._producer


def store_offsets(worker: PartitionWorker) -> None:
    """Put the offsets of a worker into its transaction, which stays open."""
    writer: Any = worker.writer
    producer_of(worker).send_offsets_to_transaction(
        worker.progress_store.entries(worker.assignment).progress, writer._group
    )


def run_one_chunk(worker: PartitionWorker) -> None:
    """Run a chunk, again if it fails, as long as something is left to do."""
    is_done = False
    while worker.assignment.unsettled and not is_done:
        with worker.retry.attempt():
            worker.run_chunk()
            is_done = True


@contextmanager
def abandoned(*workers: PartitionWorker, chunks: int = 0) -> Iterator[None]:
    """Workers that have come so many chunks far, and are gone in the middle of the next one, as after a SIGKILL: inside
    the block, nothing of them ends the transactions that they have begun."""
    try:
        for worker in workers:
            worker.open()
            for _ in range(chunks):
                worker.run_chunk()
            worker.retry.begin()
            worker.filler.fill(Chunk(10, 60.0, StopSignal()), worker.retry.next_ranges)
            assert producer_of(worker).flush(30) == 0
        yield
    finally:
        for worker in workers:
            worker.close()
