"""Partition workers: at work beside the test, or abandoned in the middle of a chunk."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

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


@contextmanager
def abandoned(*workers: PartitionWorker, chunks: int = 0) -> Iterator[None]:
    """Workers that have come so many chunks far, and are gone in the middle of the next one, as after a SIGKILL: inside
    the block, nothing of them ends the transactions that they have begun."""
    try:
        for worker in workers:
            worker.open()
            for _ in range(chunks):
                worker.run_chunk()
            worker.recovery.begin()
            worker.fill(Chunk(10, 60.0, StopSignal()), worker.next_states)
            assert worker.delivery.acks.producer.flush(30) == 0
        yield
    finally:
        for worker in workers:
            worker.close()
