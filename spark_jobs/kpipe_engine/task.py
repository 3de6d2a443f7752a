"""One Spark task: the blocks of partitions that it was given, one after another or several at once."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from airflow_provider_kpipe.contract.job import Job, KafkaSettings, unpack
from airflow_provider_kpipe.contract.progress import PartitionProgress
from kpipe_engine.clients import QUEUE_KBYTES
from kpipe_engine.layout import Block, Task
from kpipe_engine.partition_worker import PartitionWorker
from kpipe_engine.yielding import ListeningOrders, YieldOrders


def run_task(packed: str, settings: str, task: Task, number: int) -> Iterator[PartitionProgress]:
    """Runs in a Python worker, which Spark uses again: nothing of Kafka may outlive the task."""
    _tell_the_log()
    # Messages hold no cycles: looking for some every 700 of them took 8 % of a copy.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    job, kafka = Job.from_json(unpack(packed)), _shared(KafkaSettings.from_json(unpack(settings)), task.at_once)

    def work(block: Block, orders: YieldOrders) -> list[PartitionProgress]:
        return PartitionWorker(job, kafka, block, orders, number).run()

    with ListeningOrders(job, kafka.source) as orders:
        if task.at_once == 1:
            for block in task.blocks:
                yield from work(block, orders)
            return
        with ThreadPoolExecutor(task.at_once, "kpipe-partition") as threads:
            for done in threads.map(lambda block: work(block, orders), task.blocks):
                yield from done


def claim_what_is_cut(packed: str, settings: str) -> None:
    """Put our lease on each partition that is cut, before any of its pieces is begun: they all rely on it."""
    job, kafka = _silent(Job.from_json(unpack(packed))), KafkaSettings.from_json(unpack(settings))
    for planned in job.plan.pending:
        if planned.cuts:
            worker = PartitionWorker(job, kafka, planned.pieces[:1], YieldOrders())
            try:
                worker.open()
            finally:
                worker.close()


def _silent(job: Job) -> Job:
    """What happens to a piece is told by the task that works on it."""
    scaling = replace(job.pipeline.partitions, emit_partition_execution_events=False, events_topic=None)
    return replace(job, pipeline=replace(job.pipeline, partitions=scaling))


def _shared(kafka: KafkaSettings, at_once: int) -> KafkaSettings:
    """Workers in one process share the memory that one of them may take for its queues."""

    if at_once == 1:
        return kafka
    share = str(QUEUE_KBYTES // at_once)
    return replace(
        kafka,
        source={"queued.max.messages.kbytes": share, **kafka.source},
        destination={"queue.buffering.max.kbytes": share, **kafka.destination},
    )


def _tell_the_log() -> None:
    """Spark leaves the logging of its Python workers as it comes: what is below a warning would be gone."""
    log = logging.getLogger("kpipe")
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
