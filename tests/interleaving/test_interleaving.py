"""Random schedules of everything that can happen to a pipeline, on a real broker, compared with a model.

`SEED=…` in the environment replays one schedule, and `make interleave SECONDS=…` goes on for longer.
"""

from __future__ import annotations

import os
import random
import time

from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.interleaving.outputs import output_topics
from tests.interleaving.schedule import Schedule

SECONDS = float(os.environ.get("SECONDS_TO_INTERLEAVE") or 60)
LEAST_SCHEDULES = 3


def test_nothing_is_lost_or_there_twice(broker: SandboxBroker) -> None:
    replayed = os.environ.get("SEED")
    first = int(replayed) if replayed else random.SystemRandom().randrange(10**9)
    until, done = time.monotonic() + SECONDS, 0
    while not done or (not replayed and (done < LEAST_SCHEDULES or time.monotonic() < until)):
        schedule = Schedule(first + done, broker.bootstrap_servers, output_topics(broker.bootstrap_servers))
        run(schedule)
        done += 1


def run(schedule: Schedule) -> None:
    try:
        anomalies = schedule.run()
    except Exception as error:
        error.add_note(schedule.told)
        raise
    assert not anomalies, "\n".join([schedule.told, *anomalies])
