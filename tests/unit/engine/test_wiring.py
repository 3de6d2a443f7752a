from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_kpipe.contract.job import Job, KafkaSettings
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.contract.progress.progress import Counts
from kpipe_engine.assignment.worker_position import WorkerPosition
from kpipe_engine.batches.processor import BatchProcessor
from kpipe_engine.errors import PartitionHaltedError
from kpipe_engine.faults.time_limit import TimeLimit
from kpipe_engine.processing.concurrent import ConcurrentProcessor
from kpipe_engine.processing.copying import CopyProcessor
from kpipe_engine.processing.sequential import SequentialProcessor
from kpipe_engine.stop_signal import StopSignal
from kpipe_engine.wiring import Processors
from kpipe_engine.writing.destination import Destination
from tests.kit.plans import plan_of


@pytest.fixture
def choosing(session: Any) -> Callable[..., Processors]:
    """The handlers of a worker whose pipeline has these segments, which may take half a second to import."""

    def make(*segments: str) -> Processors:
        ranges = [PartitionRange(each, 0, 10, 0) for each in range(2)]
        declared = KafkaDestination("out")
        job = Job(KafkaPipeline("orders", KafkaSource("orders"), declared, segments=segments), plan_of(*ranges))
        faults: Any = None
        limit = TimeLimit(0.01, 0.5, WorkerPosition())
        destination = Destination(declared, session)
        return Processors(job, KafkaSettings({}, {}), ranges, session, destination, faults, StopSignal(), limit)

    return make


@pytest.fixture
def fate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """What the module of segments meets where it is imported for the first time."""

    def meets(fate: str) -> None:
        monkeypatch.setenv("KPIPE_TEST_IMPORT_FATE", fate)
        monkeypatch.setenv("KPIPE_TEST_IMPORT_MARK", str(tmp_path / "imported"))
        monkeypatch.delitem(sys.modules, "importing_kit", raising=False)

    return meets


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ([], CopyProcessor),
        (["one"], SequentialProcessor),
        (["one", "many"], BatchProcessor),
        (["one", "awaited"], ConcurrentProcessor),
    ],
)
def test_the_kind_of_segments_decides_their_processor(
    choosing: Callable[..., Processors], fate: Callable[[str], None], names: list[str], kind: type
) -> None:
    fate("")
    processor = choosing(*(f"importing_kit:{name}" for name in names)).choose(0)
    assert type(processor) is kind
    processor.open()
    processor.close()


@pytest.mark.parametrize("name", ["one", "many", "awaited"])
@pytest.mark.parametrize(("met", "said"), [("sleep", "no answer within 0.5 s"), ("fail", "ValueError: no good")])
def test_an_import_that_fails_once_stops_all_partitions_at_their_first_record_whatever_a_second_would_come_to(
    choosing: Callable[..., Processors], fate: Callable[[str], None], name: str, met: str, said: str
) -> None:
    fate(met)
    chosen = choosing(f"importing_kit:{name}")
    for processor in (chosen.choose(0), chosen.choose(1)):
        assert processor.process([], Counts(), {}, math.inf) == 0
        assert processor.waits == 0
        with pytest.raises(PartitionHaltedError) as stop:
            processor.open()
        assert f"segment 'importing_kit:{name}' cannot be imported on the executor" in str(stop.value)
        assert said in str(stop.value)
        assert stop.value.next_offset is None
        processor.close()


def test_for_a_partition_that_is_given_up_nothing_is_imported(
    choosing: Callable[..., Processors], fate: Callable[[str], None], tmp_path: Path
) -> None:
    fate("fail")
    chosen = choosing("importing_kit:one")
    with pytest.raises(PartitionHaltedError, match="the worker died"):
        chosen.choose(0, "the worker died").open()
    assert not (tmp_path / "imported").exists()
