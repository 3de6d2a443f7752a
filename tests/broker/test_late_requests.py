"""A request that was held back on the wire arrives in the transaction after its own: nothing is written twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.kit.pipelines import Bench
from tests.kit.proxy import END_TXN, PRODUCE, Connection, Proxy, broker_behind
from tests.kit.topics import fill, numbered, read_all

RECORDS = 12_000
CHUNK = 2_000


class Postman:
    """Keeps one request to end a transaction, cuts its connection, and delivers it amid the next transaction."""

    def __init__(self, number: int) -> None:
        self._number, self._ends, self._since = number, 0, 0
        self._kept: tuple[bytes, Connection] | None = None
        self.delivered = False

    def on_request(self, kind: int, request: bytes, connection: Connection) -> bool:
        if kind == END_TXN:
            self._ends += 1
            if self._ends == self._number:
                self._kept = request, connection
                connection.cut()
                return True
        if kind == PRODUCE and self._kept and self._ends > self._number:
            self._since += 1
            if self._since == 2:
                kept, over = self._kept
                over.send(kept)
                self.delivered = True
        return False


@pytest.mark.parametrize("number", [3, 5])
def test_a_late_end_of_a_transaction_ends_no_other(number: int) -> None:
    postman = Postman(number)
    with Proxy() as proxy, broker_behind(proxy) as broker:
        bench = Bench.make(broker.bootstrap_servers, chunk_records=CHUNK, segments=["orders_kit:untouched"])
        fill(bench.bootstrap, bench.topic, numbered(RECORDS))
        plan = bench.plan()
        proxy.on_request = postman.on_request
        # Small batches: there is something to write before and after the late request.
        small: dict[str, Any] = {"batch.num.messages": 100, "linger.ms": 0}
        worker = bench.worker(plan, **{**small, "bootstrap.servers": proxy.address})
        (progress,) = worker.run()
        assert postman.delivered
        assert progress.complete, progress.reason
        times = Counter(record.key for record in read_all(bench.bootstrap, bench.output))
    assert len(times) == RECORDS
    assert set(times.values()) == {1}
    assert progress.counts.written == RECORDS
