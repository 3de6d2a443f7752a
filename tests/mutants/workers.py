"""Workers: how they die, fall silent, and watch over user code and over each other."""

from __future__ import annotations

from tests.mutants.mutation import ENGINE as E
from tests.mutants.mutation import Mutation

B = "tests/broker"
U = "tests/unit/engine"

MUTATIONS = (
    Mutation(
        "overdue: a worker that does not yield is waited for",
        f"{E}/supervision/supervisor.py",
        "is_overdue = time.time() > max(child.begun_at + self._job.grace_seconds, self._job.overdue_after(1))",
        "is_overdue = False",
        f"{B}/test_overdue_workers.py -k a_worker_that_does_not_yield",
    ),
    Mutation(
        "overdue: the driver waits for tasks that hang",
        f"{E}/supervision/overdue.py",
        "        timer.start()\n",
        "",
        "tests/spark/test_overdue_job.py -k whose_tasks_hang",
    ),
    Mutation(
        "supervisor: a silent cluster gets all blocks",
        f"{E}/supervision/supervisor.py",
        "self._unanswered + 1 if clusters else 0",
        "0",
        f"{U}/supervision/test_supervisor.py",
    ),
    Mutation(
        "supervisor: a host that reaches its cluster again tries nothing more",
        f"{E}/supervision/supervisor.py",
        "        if not silent:\n            self._note_silence(silent)\n",
        "",
        f"{U}/supervision/test_supervisor.py",
    ),
    Mutation(
        "supervisor: a cluster that answers again has no other chance",
        f"{E}/supervision/supervisor.py",
        "self._unanswered + 1 if clusters else 0",
        "self._unanswered + bool(clusters)",
        f"{U}/supervision/test_supervisor.py",
    ),
    Mutation(
        "silence: what lies behind a failure does not count",
        f"{E}/errors.py",
        " or is_silence(failure.__cause__))",
        ")",
        f"{U}/test_errors.py",
    ),
    Mutation(
        "details: those that are not stored count as stored",
        f"{E}/reading/details_group.py",
        "if answer.error is not None:",
        "if False:",
        f"{U}/reading/test_details_group.py",
    ),
    Mutation(
        "limit: a function for faults may import for ever",
        f"{E}/faults/fault_handler.py",
        'with self._limit.step(f"the import of on_fault={self._path!r}"):',
        "if self._path:",
        f"{U}/faults/test_fault_handler.py",
    ),
    Mutation(
        "limit: a mapper may import for ever",
        f"{E}/faults/user_mapper.py",
        'with self._limit.step(f"the import of the dead letter mapper {self._path!r}"):',
        "if self._path:",
        f"{U}/faults/test_user_mapper.py",
    ),
    Mutation(
        "care: a record is found after more deaths than is said",
        f"{E}/supervision/crash_cases.py",
        "SHRINK = 32",
        "SHRINK = 16",
        f"{U}/supervision/test_crash_cases.py",
    ),
    Mutation(
        "care: one death in a chunk of its own condemns a record",
        f"{E}/supervision/crash_cases.py",
        "self._alone == before",
        "True",
        f"{U}/supervision/test_crash_cases.py",
    ),
    Mutation(
        "pieces: the driver imports segments",
        f"{E}/supervision/spark_task.py",
        "StopSignal(), precautions=precautions)",
        "StopSignal())",
        f"{B}/test_pieces.py",
    ),
    Mutation(
        "lone fetch: the client goes on while its messages are handled",
        f"{E}/reading/lone_fetch.py",
        'calls.within(CLOSE_SECONDS, "the client that had fetched was closed", consumer.close)',
        "pass",
        f"{U}/reading/test_lone_fetch.py",
    ),
    Mutation(
        "last words: why a partition stops is not stored",
        f"{E}/assignment/last_words.py",
        "    successor.run_chunks()\n",
        "",
        f"{U}/assignment/test_last_words.py",
    ),
    Mutation(
        "last words: their clients stay open",
        f"{E}/assignment/last_words.py",
        "        calls.close()\n",
        "        pass\n",
        f"{U}/assignment/test_last_words.py",
    ),
    Mutation(
        "replicas: a topic that has some of them in sync lacks none",
        f"{E}/writing/missing_replicas.py",
        "if len(each.isrs) < len(each.replicas):",
        "if not each.isrs:",
        f"{U}/writing/test_missing_replicas.py",
    ),
    Mutation(
        "watch: a healthy chunk is given up for the faults of others",
        f"{E}/assignment/run_monitor.py",
        "if self._budget.ratio_is_exceeded_by(*_of(self._own)):",
        "if self._own:",
        f"{U}/assignment/test_run_monitor.py",
    ),
    Mutation(
        "watch: only the first chunk asks the others",
        f"{E}/assignment/run_monitor.py",
        "self._has_looked_everywhere, self._left = False, 0",
        "self._left = 0",
        f"{U}/assignment/test_run_monitor.py",
    ),
    Mutation(
        "watch: the others are asked again and again",
        f"{E}/assignment/run_monitor.py",
        "        if self._has_looked_everywhere:\n            return False\n",
        "",
        f"{U}/assignment/test_run_monitor.py",
    ),
    Mutation(
        "watch: all slots are looked at before each chunk",
        f"{E}/assignment/run_monitor.py",
        "self._others.look(self._slots)",
        "self._others.look()",
        f"{U}/assignment/test_run_monitor.py",
    ),
    Mutation(
        "handlers: a worker that has only to say that a partition stops imports its segments",
        f"{E}/wiring.py",
        "        if ends is not None:\n",
        "        if False:\n",
        f"{U}/test_wiring.py",
    ),
    Mutation(
        "handlers: each partition tries an import again that has failed",
        f"{E}/wiring.py",
        "    @cached_property\n",
        "    @property\n",
        f"{U}/test_wiring.py",
    ),
    Mutation(
        "planned topic: what was read of a topic that was re-created is stored",
        f"{E}/partition_worker.py",
        "            self.topic.check()\n",
        "            pass\n",
        f"{B}/test_recreated_topics.py",
    ),
    Mutation(
        "source: what was read before records left the topic is dropped with them",
        f"{E}/reading/range_reader.py",
        "                    if not has_messages:\n                        raise\n",
        "                    raise\n",
        f"{U}/reading/test_range_reader.py",
    ),
)
