"""A job over a plan, from its submission to the progress of it that Kafka holds."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from airflow.sdk.exceptions import AirflowException
from confluent_kafka import KafkaException

from airflow_provider_kpipe.contract.job import Job, KafkaSettings
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.progress import Counts, PartitionProgress
from airflow_provider_kpipe.exceptions import IncompleteRunError, OverdueJobError, TooManyFaultsError, YieldedRunError
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.planning.plan_check import check_in_log
from airflow_provider_kpipe.running.progress_log import ProgressLog, Show, table
from airflow_provider_kpipe.running.stop_requests import request_stop
from airflow_provider_kpipe.spark.submission import Submission
from airflow_provider_kpipe.transactions.left_open import END_SECONDS, end_what_is_left_open

log = logging.getLogger(__name__)

# Airflow kills a task outright five seconds after asking it to stop: both have to fit into that time.
YIELD_ON_KILL_SECONDS = 3.0
END_TRANSACTIONS_ON_KILL_SECONDS = 1.0
LOOK_SECONDS = 0.1


class JobRun:
    """Run of a job: it submits the job, and shows its progress, which it reads from Kafka and not from Spark.

    A job that is killed and run again resumes at its last stored offset.
    """

    def __init__(
        self,
        job: Job,
        kafka: KafkaSettings,
        *,
        conn_id: str,
        spark_conf: Mapping[str, str] | None,
        py_files: Sequence[str],
        submit_options: Mapping[str, Any] | None,
        progress_interval: float,
    ) -> None:
        self._job, self._kafka = job, kafka
        self._progress_interval = progress_interval
        self._failure: Exception | None = None
        self._seen_at: Mapping[int, datetime] = {}
        self._submission = Submission(
            job,
            kafka,
            conn_id=conn_id,
            name=f"kpipe {job.plan.pipeline}",
            spark_conf=spark_conf or {},
            py_files=py_files,
            submit_options=submit_options or {},
        )

    def run(self, show: Show) -> list[PartitionProgress]:
        """Show the progress while the job runs, and return that of every range after its end, however it ended.

        If every range has been read to its end already, submit no job.
        """
        with Positions(self._kafka.source) as positions:
            check_in_log(positions, self._job.plan)
            # Stored progress cannot be read while a killed worker's transaction over it is open.
            self._end_transactions(positions)
            progress = positions.progress(self._job.plan)
            if all(each.complete for each in progress):
                log.info("Run %s is complete: an earlier try has read every range to its end", self._job.plan.run_key)
            else:
                self._submit(positions, show)
                progress = positions.progress(self._job.plan)
        log.info("Run %s:\n%s", self._job.plan.run_key, table(progress, self._job.plan.topic))
        return progress

    def check(self, progress: Sequence[PartitionProgress]) -> None:
        """Raise unless every range was read to its end, and enough of its records passed."""
        unfinished = [each for each in progress if not each.complete]
        if unfinished:
            kind = YieldedRunError if all(map(self._is_given_up, unfinished)) else IncompleteRunError
            overdue = f"{self._failure}\n" if isinstance(self._failure, OverdueJobError) else ""
            raise kind(overdue + _unfinished(self._job.plan, unfinished, self._seen_at)) from self._failure
        if self._failure is not None:
            log.warning("Spark failed after every range had been read to its end: %s", self._failure)
        # Workers that ended at the same time have not seen each other's counts.
        counts = sum((each.counts for each in progress), Counts())
        reason = self._job.pipeline.budget.exceeded_by(counts.dead_lettered, counts.read, counts.skipped)
        if reason is not None:
            raise TooManyFaultsError(
                f"{reason}; every range of {self._job.plan.topic!r} was read to its end: fix the cause, then redrive "
                "the dead letters, or read what was skipped again with a backfill"
            )

    def stop(self) -> None:
        """Let the partitions yield, then end the job, even if some have not, and the transactions that it left open."""
        if self._submission.is_running:
            self._ask_to_yield()
        self._submission.kill()
        with Positions(self._kafka.source, answer_seconds=END_TRANSACTIONS_ON_KILL_SECONDS) as positions:
            self._end_transactions(positions, END_TRANSACTIONS_ON_KILL_SECONDS)

    def _ask_to_yield(self) -> None:
        until = time.monotonic() + YIELD_ON_KILL_SECONDS
        try:
            request_stop(
                self._kafka.source, self._job.plan, self._job.attempt, "the task was stopped", YIELD_ON_KILL_SECONDS
            )
        except KafkaException as failure:
            log.warning("the partitions cannot be asked to yield: %s", failure.args[0].str())
            return
        while self._submission.is_running and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)

    def _is_given_up(self, progress: PartitionProgress) -> bool:
        """Tell whether a partition was given up permanently. A later try may resume it if its task was stopped."""
        is_late = self._job.deadline is not None and time.time() >= self._job.deadline
        return progress.ended == "revoked" or (progress.ended == "yielded" and is_late)

    def _submit(self, positions: Positions, show: Show) -> None:
        plan, seconds = self._job.plan, self._progress_interval
        watch = ProgressLog(self._kafka.source, plan, interval_seconds=seconds, show=show)
        self._seen_at = watch.moved_at
        try:
            with self._submission, watch:
                self._submission.run()
        except (AirflowException, OverdueJobError) as failure:
            # The progress in Kafka shows whether the failure matters.
            self._failure = failure
            self._end_transactions(positions)

    def _end_transactions(self, positions: Positions, seconds: float = END_SECONDS) -> None:
        if self._job.pipeline.delivery == "exactly_once":
            end_what_is_left_open(positions, self._kafka.destination, self._job.plan, seconds)


def _unfinished(
    plan: Plan, unfinished: Sequence[PartitionProgress], seen_at: Mapping[int, datetime] | None = None
) -> str:
    lines = [
        f"partition {each.range.partition} is at {each.next_offset} of [{each.range.start}, {each.range.end}): "
        f"{each.reason or _silent(each, seen_at or {})}"
        for each in unfinished[:10]
    ]
    more = f"\nand {len(unfinished) - 10} more" if len(unfinished) > 10 else ""
    return (
        f"{len(unfinished)} of {len(plan.ranges)} partitions of {plan.topic!r} were not read to their end; "
        "what they completed is stored, and the next try or the next run resumes there\n" + "\n".join(lines) + more
    )


def _silent(progress: PartitionProgress, seen_at: Mapping[int, datetime]) -> str:
    since = seen_at.get(progress.range.partition)
    silent = f", and stored nothing after {since.isoformat(timespec='seconds')}" if since else ""
    return f"its worker did not come to the end{silent}; see above what Spark said"
