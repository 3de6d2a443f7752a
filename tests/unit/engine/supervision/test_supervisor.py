from __future__ import annotations

import json
from collections.abc import Iterator
from multiprocessing.connection import Pipe
from typing import Any

import pytest

from airflow_provider_kpipe.contract.job import Job, KafkaSettings
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination, KafkaPipeline, KafkaSource
from kpipe_engine.assignment.precautions import Precautions
from kpipe_engine.assignment.worker_position import WorkerPosition
from kpipe_engine.supervision import supervisor as module
from kpipe_engine.supervision.supervisor import Supervisor, WorkerProcess
from kpipe_engine.supervision.task_layout import Block, Task
from kpipe_engine.supervision.worker_process import CLOSED
from tests.kit.plans import plan_of

ADDRESS = "kafka:9092"


class Answering:
    """A process that answers at once: with the clusters at which nobody is, by partition."""

    silences: dict[int, list[str]]
    silent_now: list[str]
    given: list[int]
    asked: list[list[str]]
    has_died = False
    begun_at = float("inf")
    said = WorkerProcess.said

    def __init__(self, job: Job, kafka: KafkaSettings) -> None:
        self.position = WorkerPosition()
        self.pipe, self._other_end = Pipe()

    def give(self, block: Block, number: int, precautions: Precautions) -> None:
        (planned,) = block
        self.given.append(planned.partition)
        silent = self.silences.get(planned.partition, [])
        done = [{"partition": planned.partition, "state": "stopped" if silent else "complete"}]
        self._other_end.send_bytes(json.dumps({"done": done, "silent": silent}).encode())
        self._other_end.send_bytes(CLOSED)

    def ask(self) -> list[str]:
        self.asked.append(self.silent_now)
        return self.silent_now

    def end(self) -> None:
        self.pipe.close()
        self._other_end.close()


def job_over(partitions: int) -> Job:
    plan = plan_of(*(PartitionRange(each, 0, 10, 0) for each in range(partitions)))
    return Job(KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out")), plan)


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    monkeypatch.setattr(module, "WorkerProcess", Answering)
    monkeypatch.setattr(Answering, "given", [], raising=False)
    monkeypatch.setattr(Answering, "asked", [], raising=False)
    monkeypatch.setattr(Answering, "silent_now", [], raising=False)
    made = Supervisor(job_over(1), KafkaSettings({"bootstrap.servers": ADDRESS}, {}))
    yield made
    made.close()


def run(supervisor: Supervisor, *partitions: int, silent: set[int], at_once: int = 1) -> list[dict[str, Any]]:
    Answering.silences = {partition: [ADDRESS] for partition in silent}
    blocks = tuple((PartitionRange(each, 0, 10, 0),) for each in partitions)
    return list(supervisor.run(Task(blocks, at_once), 1))


def test_a_cluster_that_is_silent_for_two_blocks_in_a_row_is_not_asked_for_the_others(supervisor: Supervisor) -> None:
    done = run(supervisor, *range(5), silent={1, 2, 3, 4})

    assert Answering.given == [0, 1, 2]
    assert [(each["partition"], each["state"]) for each in done] == [
        (0, "complete"),
        *((each, "stopped") for each in (1, 2, 3, 4)),
    ]
    for each in done[3:]:
        assert each["reason"] == (
            f"not tried: 2 workers in a row have ended because no broker answers at {ADDRESS}; see that the brokers "
            "run and that workers can reach them, then run again"
        )


def test_nor_in_the_next_task_of_the_same_worker_while_it_stays_silent(supervisor: Supervisor) -> None:
    run(supervisor, 0, silent={0, 1})
    run(supervisor, 1, silent={0, 1})
    Answering.silent_now = [ADDRESS]
    (untried,) = run(supervisor, 2, silent=set())
    assert Answering.given == [0, 1]
    assert Answering.asked == [[ADDRESS]]
    assert untried["reason"].startswith("not tried: ")


def test_a_cluster_that_answers_a_later_task_gets_its_blocks(supervisor: Supervisor) -> None:
    run(supervisor, 0, 1, 2, silent={0, 1, 2})
    done = run(supervisor, 3, 4, silent={4})
    assert Answering.asked == [[]]
    assert Answering.given == [0, 1, 3, 4]
    assert [(each["partition"], each["state"]) for each in done] == [(3, "complete"), (4, "stopped")]
    # It begins anew, and is asked once for each task.
    run(supervisor, 5, 6, silent={5, 6})
    assert Answering.given == [0, 1, 3, 4, 5]
    assert Answering.asked == [[]]


def test_as_long_as_it_answers_nobody_asks(supervisor: Supervisor) -> None:
    run(supervisor, 0, 1, silent={1})
    run(supervisor, 2, silent=set())
    assert Answering.asked == []


def test_one_block_that_is_answered_gives_hope_to_all(supervisor: Supervisor) -> None:
    run(supervisor, *range(6), silent={0, 2, 4})
    assert Answering.given == list(range(6))


def test_those_that_are_at_work_already_come_to_their_own_end(supervisor: Supervisor) -> None:
    done = run(supervisor, *range(10), silent=set(range(10)), at_once=4)
    assert sorted(each["partition"] for each in done) == list(range(10))
    assert len(Answering.given) < 10
    assert sum("reason" in each for each in done) == 10 - len(Answering.given)
