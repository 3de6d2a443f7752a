"""End of the transactions that killed jobs have left open."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import KafkaException, Producer

from airflow_provider_kpipe.contract.connecting import connecting
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.open_writers import slots_of, writers_left_open
from airflow_provider_kpipe.exceptions import KpipeError
from airflow_provider_kpipe.kafka.open_transactions import being_committed
from airflow_provider_kpipe.kafka.positions import Positions

log = logging.getLogger(__name__)

AT_ONCE = 16
END_SECONDS = 30.0


def end_what_is_left_open(
    positions: Positions, destination: Mapping[str, str], plan: Plan, seconds: float = END_SECONDS
) -> None:
    """Abort the transactions that the run of a plan, and those before it, have left open in any partition.

    The stored progress shows which may be open. The abort fences a worker that is still alive: it finds its lease
    unchanged, and redoes its chunk.

    :param positions: of the cluster that the run reads, and where its progress is stored
    :param destination: settings of the connection over which it writes
    :param seconds: for ending them; `positions` has a bound of its own
    """
    try:
        writers = _left_open(positions, plan)
    except KpipeError as error:
        log.warning("cannot list open transactions: %s", error)
        return
    if writers:
        log.info("ending what may be left open of %s", ", ".join(writers))
        end_open_transactions(destination, writers, seconds)


def _left_open(positions: Positions, plan: Plan) -> list[str]:
    topic = positions.topic(plan.topic)
    asked: dict[int, Collection[int]] = {0: topic.partitions}
    held = {0: positions.stored_so_far(plan.progress_group(), topic.name, topic.partitions)}
    for slot, partitions in slots_of(held[0]).items():
        asked[slot] = partitions
        held[slot] = positions.stored_so_far(plan.progress_group(slot), topic.name, partitions)
    being_stored = {
        slot: being_committed(positions.cluster, plan.progress_group(slot), topic.name, partitions)
        for slot, partitions in asked.items()
    }
    return writers_left_open(plan, held, being_stored)


def end_open_transactions(settings: Mapping[str, str], transactional_ids: Iterable[str], seconds: float) -> None:
    """Abort the open transaction of each id, if it has one.

    A killed worker's transaction holds back every reader of committed records until it times out.

    :param seconds: for all of them together
    """
    until = time.monotonic() + seconds

    def end(transactional_id: str) -> None:
        producer = Producer({**connecting({"log_level": 3, **settings}), "transactional.id": transactional_id})
        try:
            producer.init_transactions(max(0.0, until - time.monotonic()))
        except KafkaException as failure:
            # The broker aborts it later; the next try of the run would abort it, too.
            log.warning("the transaction of %s could not be ended now: %s", transactional_id, failure.args[0].str())

    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(end, transactional_ids))
