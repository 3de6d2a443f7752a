"""Ends what a killed job has left open."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import KafkaException, Producer

from airflow_provider_kpipe.contract.connecting import CONNECTING

log = logging.getLogger(__name__)

AT_ONCE = 16


def end_open_transactions(settings: Mapping[str, str], transactional_ids: Iterable[str], seconds: float) -> None:
    """Abort the open transaction of each id, if it has one.

    A killed worker's transaction holds back every reader of committed records until it times out.

    :param seconds: for all of them together
    """
    until = time.monotonic() + seconds

    def end(transactional_id: str) -> None:
        producer = Producer({**CONNECTING, "log_level": 3, **settings, "transactional.id": transactional_id})
        try:
            producer.init_transactions(max(0.0, until - time.monotonic()))
        except KafkaException as failure:
            # The broker ends it later; a next try of the run would do it, too.
            log.warning("the transaction of %s could not be ended now: %s", transactional_id, failure.args[0].str())

    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(end, transactional_ids))
