from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.offsets.origin import Origin
from airflow_provider_kpipe.contract.progress.checkpoint import Checkpoint, CommitMark, PartitionCheckpoint
from airflow_provider_kpipe.contract.progress.progress import Counts

COUNTS = st.builds(Counts, *[st.integers(0, 2**40)] * 7)
PARTITIONS = st.builds(
    PartitionCheckpoint,
    partition=st.integers(0, 999),
    start=st.integers(0),
    end=st.integers(0),
    committed=st.none() | st.integers(0),
    complete=st.booleans(),
    reason=st.none() | st.text(),
    counts=COUNTS,
)
CHECKPOINTS = st.builds(
    Checkpoint,
    run_key=st.text(),
    pipeline=st.text(),
    group=st.text(),
    topic=st.text(),
    partitions=st.lists(PARTITIONS, max_size=4).map(tuple),
)


def partition(number: int, *, complete: bool = True, counts: Counts | None = None) -> PartitionCheckpoint:
    return PartitionCheckpoint(number, 0, 10, 10, complete, None, counts or Counts())


def checkpoint(*partitions: PartitionCheckpoint) -> Checkpoint:
    return Checkpoint("run", "orders", "orders", "orders", partitions)


@given(made=CHECKPOINTS)
@settings(deadline=None, max_examples=100)
def test_a_checkpoint_comes_back_from_json_as_it_went(made: Checkpoint) -> None:
    assert Checkpoint.from_json(json.loads(json.dumps(made.to_json()))) == made


def test_xcom_records_what_became_of_the_records_of_each_partition() -> None:
    counts = Counts(read=10, written=7, dead_lettered=1, filtered=1, skipped=1, retried=2, lost=3)
    (recorded,) = checkpoint(partition(4, counts=counts)).to_json()["partitions"]
    assert recorded == {
        "partition": 4,
        "start": 0,
        "end": 10,
        "committed": 10,
        "complete": True,
        "reason": None,
        "counts": {
            "read": 10,
            "written": 7,
            "dead_lettered": 1,
            "filtered": 1,
            "skipped": 1,
            "retried": 2,
            "lost": 3,
            "named": {},
            "causes": [],
        },
    }


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"committed": "10"}, "Checkpoint.partitions[0].committed: int is needed, not str '10'"),
    ({"complete": None}, "Checkpoint.partitions[0].complete: bool is needed"),
    ({"counts": []}, "Checkpoint.partitions[0].counts: a JSON object is needed"),
]


@pytest.mark.parametrize(("changes", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_a_checkpoint_that_does_not_fit_is_refused_with_the_path(changes: dict[str, Any], said: str) -> None:
    document = checkpoint(partition(0)).to_json()
    document["partitions"][0].update(changes)
    with pytest.raises(DocumentError) as refusal:
        Checkpoint.from_json(document)
    assert said in str(refusal.value)


def test_a_checkpoint_is_complete_when_every_partition_is() -> None:
    assert checkpoint(partition(0), partition(1)).complete
    assert not checkpoint(partition(0), partition(1, complete=False)).complete


def test_totals_are_summed_over_the_partitions() -> None:
    one, other = Counts(1, 2, 3, 4, 5, 6, 7), Counts(10, 20, 30, 40, 50, 60, 70)
    assert checkpoint(partition(0, counts=one), partition(1, counts=other)).totals == Counts(11, 22, 33, 44, 55, 66, 77)
    assert checkpoint().totals == Counts()


@given(
    mark=st.builds(
        CommitMark,
        run_key=st.text(),
        number=st.integers(0),
        topic_id=st.text(),
        origin=st.builds(Origin, st.integers(0), st.none() | st.integers(0)),
        owner=st.text(),
        beyond=st.lists(st.tuples(st.integers(0), st.integers(0)), max_size=3).map(tuple),
    )
)
@settings(deadline=None, max_examples=100)
def test_a_commit_names_the_run_that_made_it(mark: CommitMark) -> None:
    assert CommitMark.read_text(mark.to_text()) == mark


@pytest.mark.parametrize(
    "metadata",
    [None, "", "committed by hand", "{", "1", "null", "[]", "{}"],
    ids=repr,
)
def test_an_offset_that_someone_else_committed_has_no_mark(metadata: str | None) -> None:
    assert CommitMark.read_text(metadata) is None
