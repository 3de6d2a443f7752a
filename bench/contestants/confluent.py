"""One plain process on confluent-kafka, as a user would write it by hand: with transactions, or without."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.data import check_output
from bench.processes import DRIVERS, Session, driver_environment
from bench.work import Job

PLAIN, PLAIN_TRANSACTIONS = "one plain process", "one plain process, transactions"

CONSUMER: Mapping[str, Any] = {
    # These are the values of kpipe's workers: an empty fetch returns soon, the client checks a full local queue again
    # after 5 ms instead of a second, and the queue never runs empty.
    "fetch.wait.max.ms": 5,
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 20_000,
    "queued.max.messages.kbytes": 48 * 1024,
    "enable.auto.commit": False,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
}

PRODUCER: Mapping[str, Any] = {
    # The other contestants use idempotence and all replicas, too.
    "linger.ms": 100,
    "batch.size": 256_000,
    "queue.buffering.max.messages": 100_000,
    "acks": "all",
    "enable.idempotence": True,
    # Without it, the client calls Python for every single record that has arrived.
    "delivery.report.only.error": True,
}

# As many as in a chunk of kpipe: after these, the process commits offsets, or a transaction.
CHUNK_RECORDS = 500_000


class Confluent:
    """All partitions in one process, which uses one core for Python and some more inside the client."""

    def __init__(self, folder: Path, *, transactions: bool) -> None:
        self.name = PLAIN_TRANSACTIONS if transactions else PLAIN
        self._transactions = transactions
        self._log = folder / f"{self.name.replace(' ', '-')}.log"
        self._session: Session | None = None

    def start(self) -> None:
        python = Path(sys.executable)
        command = [str(python), str(DRIVERS / "confluent_rounds.py")]
        self._session = Session(command, driver_environment(python), self._log)

    def run(self, job: Job) -> float:
        assert self._session is not None
        servers = {"bootstrap.servers": job.bootstrap_servers}
        return float(
            self._session.ask(
                {
                    "task": job.work.task,
                    "consumer": {**CONSUMER, **servers, "group.id": job.output},
                    "producer": {**PRODUCER, **servers},
                    "transactional_id": job.output if self._transactions else None,
                    "chunk_records": CHUNK_RECORDS,
                    "source": job.work.records.topic,
                    "output": job.output,
                }
            )["seconds"]
        )

    def check(self, job: Job) -> None:
        check_output(job, unique=self._transactions)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
