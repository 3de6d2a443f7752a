"""Reasons why the simulation alone does not notice some mutations, by name or by source. Other tests notice them."""

from __future__ import annotations

from collections.abc import Mapping

from tests.mutants.mutation import ENGINE, PACKAGE

REASONS: Mapping[str, tuple[str, ...]] = {
    "a guard beside another one: the worker that takes a partition on finds out by itself": (
        "standing: what a run has stored without a checkpoint is read again",
        "standing: what pieces have done is read again",
        "completed: a span that lies within the prefix takes it back",
    ),
    "whoever opens a producer of the same id next ends the same transaction, and a schedule looks behind a whole run": (
        "close: the transaction of a chunk stays open",
        "transactions: those of the first id only are ended",
        "transactions: those of pieces are left open",
        "transactions: that of a worker that was killed over its lease is left open",
    ),
    "it costs time or work, and breaks no promise: whoever is fenced or asked looks, and goes on from what is stored": (
        "open writers: a newer run is fenced by an older one",
        "recovery: it fences whoever fenced it without a look",
        "recovery: it trusts everybody at once",
        "ownership: a claim is compared with its task",
        "source: what was done already is read again",
        "yielding: the request of an earlier attempt is obeyed",
        "yielding: what should be given up is stored",
        "chunk: it has one record too many",
        "chunk: the clock runs before there is a record",
        "retries: one try too many",
        "retries: a wait outlives its chunk",
        "planner: a big partition starves a small one",
        "planner: what the log no longer holds takes a share of the cap",
        "planner: the ranges of 65 partitions are cut",
        "progress: a newer run that begins behind the range leaves it unfinished",
    ),
    "only at least once relies on it, where what is written twice was agreed to": (
        "ownership: nobody ever takes a partition over",
        "store: what somebody has taken over is stored all the same",
    ),
    "it is about why something stopped, and not about records": (
        "worker: why it stopped is not stored",
        "ownership: of a stop, what it stopped for is not stored",
    ),
    "schedules wish for nothing wrong, for no moments, and begin at the beginning": (
        "offsets: a moment without a zone is local time",
        "offsets: the end of a range may lie before its start",
        "wishes: partitions that no topic has are taken",
        "planner: what came to a partition before its first plan is passed over",
        "planner: a moment may lie beyond the end that was seen",
        "planner: a start below the log is taken",
        "planner: an end above the log is taken",
        "planner: a group above the log is believed",
        "positions: where no record is so young, a moment is before the log",
        "publishing: an empty partition of a new group stands nowhere",
        "plan: two ranges of one partition",
    ),
    "redrives of schedules are of all letters, go to the output, have fixed segments and no caps": (
        "redrive: one attempt more than the cap",
        "redrive: a fault at the end of the window is within it",
        "redrive: letters of every pipeline are meant",
        "redrive: a record of elsewhere goes into the source topic",
        "redrive: letters behind a stop are entered as redriven",
        "dead letters: of a letter that faults again, the record inside is written",
    ),
    "no record of a schedule is too large, and no queue is full: the broker refuses batches, and takes them again": (
        "destination: a record that finds the queue full is dropped",
        "outputs: the rest of a record is written without the part that is refused",
        "faults: what has no dead letter may be passed over",
        "dead letters: without a topic for them they vanish",
        "lane: a chunk that is redone ends in front of the record that faults",
        "recovery: a record that is found is a try in vain",
        "acknowledgements: a chunk that was refused in part was dropped as a whole",
    ),
    "no record of a schedule waits for another try: what is read is handled": (
        "chunk: it never ends in front of a record that was not handled",
        "source: what was given back is lost",
        "concurrent: records behind one that waits go before it",
    ),
    "no schedule loses the counter that numbers are drawn from, and keeps what was stored": (
        "sequence: one below what is known already is drawn",
    ),
    "requests of the model fail as a whole": (
        "held offsets: what a plan was not told of a partition is taken for nothing",
        "held offsets: what a worker was not told of a partition is taken for nothing",
        "held offsets: a record that was listened to is not read again",
        "store: a partition that the broker refused was stored",
    ),
    "no schedule has members in the group, another hand that moves it during a checkpoint, or a week without any": (
        "committer: live members are not looked for",
        "committer: what it commits is not read back",
        "committer: a quiet partition is forgotten by the broker",
    ),
    "pipelines of schedules have no budget, no time limit, and keep timestamps; no reader of theirs is left without": (
        "policy: where the budget is not known, what is written is not stored",
        "budget: the end of a chunk is not looked at",
        "budget: the chunk that broke it is kept",
        "limit: a function for faults may import for ever",
        "destination: keep_timestamp is ignored",
        "source: a stall is never noticed",
        "source: records that are lost beyond the range count too",
    ),
}

SURVIVORS: Mapping[str, str] = {name: reason for reason, names in REASONS.items() for name in names}

UNSIMULATED_FOR: Mapping[str, tuple[str, ...]] = {
    "schedules begin with plans: what stands before them, in tasks, gates and forms of Airflow, is not run": (
        *(f"{PACKAGE}/operators/{name}.py" for name in ("checkpoint", "plan", "redrive")),
        f"{PACKAGE}/sensors/partitions_drained.py",
        f"{PACKAGE}/checkpointing/draining.py",
        f"{PACKAGE}/contract/progress/drain_target.py",
        f"{PACKAGE}/contract/offsets/windows.py",
        f"{PACKAGE}/forms/fields.py",
        f"{PACKAGE}/planning/plan_check.py",
        f"{PACKAGE}/task_runtime/frozen_state.py",
        f"{PACKAGE}/running/job_run.py",
        f"{PACKAGE}/running/progress_log.py",
    ),
    "there is no Spark: workers are tasks of the scheduler, and nobody submits, supervises or forks them": (
        f"{PACKAGE}/contract/job_file.py",
        *(f"{PACKAGE}/spark/{name}.py" for name in ("environment", "properties", "submission")),
        *(
            f"{ENGINE}/supervision/{name}.py"
            for name in ("crash_cases", "overdue", "spark_task", "supervisor", "task_layout", "worker_process")
        ),
    ),
    "topics keep what they hold, have room for all letters, and all replicas are in sync": (
        f"{PACKAGE}/planning/letter_room.py",
        f"{PACKAGE}/planning/retention.py",
        f"{PACKAGE}/redriving/retention.py",
        f"{ENGINE}/writing/missing_replicas.py",
    ),
    "the model is reached without a connection of Airflow's, always answers, and refuses nobody a look": (
        f"{PACKAGE}/kafka/connection.py",
        f"{PACKAGE}/kafka/open_transactions.py",
        f"{ENGINE}/errors.py",
        f"{ENGINE}/writing/backpressure.py",
    ),
    "documents are those of this version, and letters are in one dialect and hold what their record held": (
        f"{PACKAGE}/contract/documents.py",
        *(f"{PACKAGE}/contract/dead_letters/{name}.py" for name in ("dead_letter", "messages")),
        f"{ENGINE}/redrive/original_record.py",
    ),
    "pipelines are valid, copy all headers, stop no run, and have no budget, retries, limits, mappers or batches": (
        *(f"{PACKAGE}/contract/pipeline/{name}.py" for name in ("declaration", "policies")),
        f"{ENGINE}/assignment/run_monitor.py",
        *(f"{ENGINE}/batches/{name}.py" for name in ("arrow_batch", "bisection")),
        *(f"{ENGINE}/faults/{name}.py" for name in ("time_limit", "user_mapper")),
        f"{ENGINE}/reading/lone_fetch.py",
        f"{ENGINE}/writing/header_rules.py",
        f"{ENGINE}/wiring.py",
    ),
}
UNSIMULATED: Mapping[str, str] = {file: reason for reason, files in UNSIMULATED_FOR.items() for file in files}
"""The reason for each source that is mutated and that the simulation does not try."""
