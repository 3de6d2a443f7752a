"""End of a driver whose job does not end in time."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time

from airflow_provider_kpipe.contract.job import DRIVER_GRACES, Job

log = logging.getLogger("kpipe")

OVERDUE = 4


def end_when_overdue(job: Job) -> None:
    """End the driver once its job is overdue. Workers that yield, or that supervisors end, end the job long before."""
    if job.deadline is not None:
        timer = threading.Timer(job.overdue_after(DRIVER_GRACES) - time.time(), _end, [job])
        timer.daemon = True
        timer.start()


def _end(job: Job) -> None:
    partitions = ", ".join(str(planned.partition) for planned in job.plan.pending[:20])
    log.error(
        "max_run_time was reached %.0f s ago, and tasks over the partitions %s%s have not come to their end: the job "
        "is ended",
        time.time() - job.overdue_after(0),
        partitions,
        ", ..." if len(job.plan.pending) > 20 else "",
    )
    sys.stdout.flush()
    # A regular exit of Spark would wait for the tasks.
    os._exit(OVERDUE)
