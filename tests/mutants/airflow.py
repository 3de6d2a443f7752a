"""Airflow's side: what is asked of Kafka, submitted and shown."""

from __future__ import annotations

from tests.mutants.mutation import PACKAGE, Mutation

B = "tests/broker"
U = "tests/unit"

MUTATIONS = (
    Mutation(
        "positions: where no record is so young, a moment is before the log",
        f"{PACKAGE}/kafka/positions.py",
        "ends[each] if offset < 0 else offset",
        "offset",
        f"{B}/test_positions.py",
    ),
    Mutation(
        "gate: one record before the target is drained",
        f"{PACKAGE}/kafka/draining.py",
        "self.committed >= self.target",
        "self.committed >= self.target - 1",
        f"{B}/test_draining.py",
    ),
    Mutation(
        "gate: it opens before the moment to drain up to has come",
        f"{PACKAGE}/kafka/draining.py",
        "return self.settled and",
        "return",
        f"{B}/test_draining.py",
    ),
    Mutation(
        "retention: a record at the border counts as old",
        f"{PACKAGE}/kafka/retention.py",
        "return max(0, min(planned.end, first_kept) - planned.start)",
        "return max(0, first_kept - planned.start)",
        f"{B}/test_retention.py",
    ),
    Mutation(
        "retention: a window of which nothing would be left is run",
        f"{PACKAGE}/kafka/retention.py",
        "if expired == plan.offsets_planned:",
        "if expired > plan.offsets_planned:",
        f"{B}/test_retention.py",
    ),
    Mutation(
        "retention: dead letters are not looked at",
        f"{PACKAGE}/kafka/retention.py",
        "        topics.append(pipeline.dead_letter.topic)\n",
        "        pass\n",
        f"{B}/test_retention.py",
    ),
    Mutation(
        "plan check: another pipeline's plan is run",
        f"{PACKAGE}/kafka/plan_check.py",
        "if (plan.pipeline, plan.topic) != (pipeline.name, source.topic):",
        "if False:",
        f"{U}/kafka/test_plan_check.py {U}/operators/test_handover.py",
    ),
    Mutation(
        "plan check: ranges beyond the log are run",
        f"{PACKAGE}/kafka/plan_check.py",
        "if planned.end > ends[planned.partition]:",
        "if planned.end > 2**63:",
        f"{U}/kafka/test_plan_check.py {B}/test_plan_check.py",
    ),
    Mutation(
        "client settings: anything in a connection is passed on",
        f"{PACKAGE}/kafka/client_config.py",
        "if not (_ACCESS.fullmatch(name) or _TUNING.fullmatch(name)):",
        "if not (_ACCESS.match(name) or _TUNING.match(name) or name):",
        f"{U}/kafka/test_client_config.py",
    ),
    Mutation(
        "client settings: what the pipeline decides is overridden",
        f"{PACKAGE}/kafka/client_config.py",
        "if name in _DECIDED_BY_PIPELINE or name.startswith(PREFIX):",
        "if name.startswith(PREFIX):",
        f"{U}/kafka/test_client_config.py",
    ),
    Mutation(
        "transactions: those of the first id only are ended",
        f"{PACKAGE}/kafka/transactions.py",
        "list(threads.map(end, transactional_ids))",
        "list(threads.map(end, list(transactional_ids)[:1]))",
        f"{B}/test_transactions.py",
    ),
    Mutation(
        "transactions: those of pieces are left open",
        f"{PACKAGE}/kafka/transactions.py",
        "in slots_of(held[0]).items()",
        "in ()",
        f"{B}/test_transactions.py",
    ),
    Mutation(
        "checkpoint: what a killed job has left open is left to its timeout",
        f"{PACKAGE}/kafka/committer.py",
        "if destination is not None:",
        "if destination is None:",
        f"{B}/test_transactions.py",
    ),
    Mutation(
        "checkpoint task: a run that stopped half-way is a success",
        f"{PACKAGE}/operators/checkpoint.py",
        "if not checkpoint.complete:",
        "if not checkpoint.partitions:",
        f"{U}/operators/test_checkpoint.py",
    ),
    Mutation(
        "checkpoint task: a run that was only faults is a success",
        f"{PACKAGE}/operators/checkpoint.py",
        "        self.check_faults(checkpoint)\n",
        "",
        f"{U}/operators/test_checkpoint.py",
    ),
    Mutation(
        "checkpoint task: it is skipped where the run failed",
        f"{PACKAGE}/operators/checkpoint.py",
        'super().__init__(**{"trigger_rule": TriggerRule.ALL_DONE, **kwargs})',
        "super().__init__(**kwargs)",
        f"{U}/operators/test_checkpoint.py",
    ),
    Mutation(
        "run task: unfinished partitions are a success where Spark was content",
        f"{PACKAGE}/spark/job_run.py",
        "        if unfinished:\n            kind",
        "        if unfinished and self._failure:\n            kind",
        f"{U}/operators/test_run.py",
    ),
    Mutation(
        "run task: what a killed job left open stays open",
        f"{PACKAGE}/spark/job_run.py",
        "            self._failure = failure\n            self._end_transactions(positions)",
        "            self._failure = failure",
        f"{U}/operators/test_run.py",
    ),
    Mutation(
        "plan task: a retry plans anew",
        f"{PACKAGE}/operators/frozen.py",
        "    if document is not None:\n        log.info",
        "    if document is None:\n        log.info",
        f"{U}/operators/test_plan.py",
    ),
    Mutation(
        "spark: a second copy of a task may run",
        f"{PACKAGE}/spark/properties.py",
        '"spark.speculation": "false"',
        '"spark.speculation": "true"',
        f"{U}/spark/test_properties.py",
    ),
    Mutation(
        "spark: Airflow's connections are handed to the job",
        f"{PACKAGE}/spark/environment.py",
        'if not name.lstrip("_").startswith("AIRFLOW_")',
        'if not name.lstrip("_").startswith("AIRFLOW__")',
        f"{U}/spark/test_environment.py",
    ),
    Mutation(
        "spark: deploy mode cluster is taken",
        f"{PACKAGE}/spark/submission.py",
        'if self._connection["deploy_mode"] == "cluster":',
        'if self._connection["deploy_mode"] == "clusters":',
        f"{U}/spark/test_submission.py",
    ),
    Mutation(
        "spark: a task that fails leaves its job running",
        f"{PACKAGE}/spark/submission.py",
        "        if error is not None:\n            self.kill()\n",
        "",
        f"{U}/spark/test_submission.py",
    ),
    Mutation(
        "progress: a job's end is overtaken by what came before",
        f"{PACKAGE}/spark/progress_log.py",
        "if len(progress) > MOST_SHOWN or self._done.is_set():",
        "if len(progress) > MOST_SHOWN:",
        f"{U}/spark/test_progress_log.py",
    ),
)
