from __future__ import annotations

import math

import pytest

from airflow_provider_kpipe.contract.progress.progress import Counts
from kpipe_engine.errors import PartitionHaltedError
from kpipe_engine.processing.stopping import StoppedProcessor


def test_the_partition_stops_before_its_first_record_and_not_without_one() -> None:
    stop, counts = PartitionHaltedError("the segment cannot be imported"), Counts()
    processor = StoppedProcessor(stop)
    assert processor.process([], counts, {}, math.inf) == 0
    assert (counts, processor.waits) == (Counts(), 0)
    with pytest.raises(PartitionHaltedError) as raised:
        processor.open()
    assert raised.value is stop
    processor.close()
