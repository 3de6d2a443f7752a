"""A partition worker at work beside the test."""

from __future__ import annotations

import threading

from airflow_provider_kpipe.contract.progress import PartitionProgress
from kpipe_engine.partition_worker import PartitionWorker


class Working(threading.Thread):
    """Runs it; `progress` is what it reports at the end."""

    def __init__(self, worker: PartitionWorker) -> None:
        super().__init__()
        self.worker = worker
        self.progress: list[PartitionProgress] = []

    def run(self) -> None:
        self.progress = self.worker.run()
