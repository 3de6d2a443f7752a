from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.job import DRIVER_GRACES, TASK_GRACES, Job, KafkaSettings, pack, unpack
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination, KafkaPipeline, KafkaSource
from tests.kit.plans import plan_of

SETTINGS = st.dictionaries(st.text(), st.text(), max_size=4)


def job(partitions: int = 1) -> Job:
    ranges = [PartitionRange(each, 10**9 + each, 2 * 10**9 + each, 10**9 + each) for each in range(partitions)]
    declared = KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out"), segments=["orders:parse"])
    return Job(declared, plan_of(*ranges))


def test_a_job_comes_back_from_its_package_as_it_went() -> None:
    assert Job.from_json(unpack(pack(job(3)))) == job(3)


@given(source=SETTINGS, destination=SETTINGS)
@settings(deadline=None, max_examples=100)
def test_settings_come_back_from_their_package_as_they_went(
    source: dict[str, str], destination: dict[str, str]
) -> None:
    made = KafkaSettings(source, destination)
    packed = pack(made)
    assert KafkaSettings.from_json(unpack(packed)) == made
    assert packed.isascii()
    assert packed.split() == [packed]


def test_the_same_job_makes_the_same_package() -> None:
    assert pack(job(2)) == pack(job(2))


def test_settings_show_no_secret_when_they_are_printed() -> None:
    made = KafkaSettings({"sasl.password": "hush"}, {"sasl.password": "hush"})
    assert "hush" not in repr(made)
    assert "hush" not in str(made)
    assert "hush" not in f"{[made]}"


def test_a_later_attempt_has_the_later_leases_whatever_its_tasks_are() -> None:
    earlier, later = replace(job(), attempt=8), replace(job(), attempt=9)
    assert earlier.lease(0) < earlier.lease(7) < later.lease(0)


def test_driver_and_task_wait_longer_than_workers_after_the_deadline() -> None:
    late = replace(job(), deadline=1_000.0, grace_seconds=10.0)
    assert [late.overdue_after(graces) for graces in (0, 1, DRIVER_GRACES, TASK_GRACES)] == [1_000, 1_010, 1_030, 1_040]
    assert job().overdue_after(1) == math.inf


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"schema_version": 2}, "Job.schema_version is 2"),
    ({"plan": None}, "Job.plan: a JSON object is needed"),
    ({"pipeline": []}, "Job.pipeline: a JSON object is needed"),
]


@pytest.mark.parametrize(("changes", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_a_job_that_does_not_fit_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(DocumentError) as refusal:
        Job.from_json({**json.loads(json.dumps(job().to_json())), **changes})
    assert said in str(refusal.value)


def test_a_fault_deep_in_a_job_is_named_with_its_whole_path() -> None:
    document = json.loads(json.dumps(job().to_json()))
    document["plan"]["ranges"][0]["end"] = None
    with pytest.raises(DocumentError, match=r"^Job\.plan\.ranges\[0\]\.end: int is needed, not NoneType None$"):
        Job.from_json(document)


@pytest.mark.parametrize("value", [5, True, None, ["a"], {"a": "b"}], ids=repr)
def test_a_setting_that_is_no_text_is_refused(value: Any) -> None:
    with pytest.raises(DocumentError, match=r"KafkaSettings\.source\['linger\.ms'\]: str is needed"):
        KafkaSettings.from_json({**KafkaSettings({}, {}).to_json(), "source": {"linger.ms": value}})


def test_settings_of_registries_travel_with_the_others_and_show_as_little() -> None:
    made = KafkaSettings({}, {}, {"url": "http://one"}, {"basic.auth.user.info": "me:hush"})
    assert KafkaSettings.from_json(unpack(pack(made))) == made
    assert "hush" not in repr(made)
