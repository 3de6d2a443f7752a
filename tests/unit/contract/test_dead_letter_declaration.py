from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.pipeline.declaration import (
    KafkaDeadLetter,
    KafkaDestination,
    KafkaPipeline,
    KafkaSource,
    PipelineError,
)


def pipeline(dead_letter: KafkaDeadLetter) -> KafkaPipeline:
    return KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out"), dead_letter=dead_letter)


def test_by_default_the_record_goes_as_it_came_with_headers_of_our_own() -> None:
    declared = KafkaDeadLetter("dead")
    assert (declared.dialect, declared.format, declared.mapper) == ("kpipe", "raw", None)


@pytest.mark.parametrize(
    "declared",
    [
        KafkaDeadLetter("dead", dialect="spring"),
        KafkaDeadLetter("dead", format="envelope"),
        KafkaDeadLetter("dead", dialect="connect", format="envelope"),
        KafkaDeadLetter("dead", mapper="orders_pipeline:as_ticket"),
    ],
    ids=str,
)
def test_a_declaration_comes_back_from_json(declared: KafkaDeadLetter) -> None:
    document = json.loads(json.dumps(pipeline(declared).to_json()))
    assert KafkaPipeline.from_json(document).dead_letter == declared


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"dialect": "flink"}, "KafkaDeadLetter.dialect='flink': use one of 'kpipe', 'connect', 'spring', 'streams'"),
        ({"dialect": None}, "KafkaDeadLetter.dialect=None"),
        ({"format": "json"}, "KafkaDeadLetter.format='json': use one of 'raw', 'envelope'"),
        ({"mapper": "as_ticket"}, "KafkaDeadLetter.mapper='as_ticket' is not an import path: use 'module:function'"),
        ({"mapper": ""}, "KafkaDeadLetter.mapper='' is not an import path"),
        ({"mapper": len}, "is not an import path"),
        ({"mapper": "m:f", "format": "envelope"}, "mapper='m:f' and format='envelope'"),
        ({"mapper": "m:f", "dialect": "spring"}, "mapper='m:f' and dialect='spring'"),
    ],
    ids=str,
)
def test_a_declaration_that_cannot_work_is_refused(declared: dict[str, Any], said: str) -> None:
    with pytest.raises(PipelineError) as refusal:
        KafkaDeadLetter("dead", **declared)
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dialect": "flink"}, "KafkaPipeline.dead_letter.dialect is str 'flink'"),
        ({"format": 1}, "KafkaPipeline.dead_letter.format is int 1"),
        ({"mapper": "f"}, "KafkaPipeline.dead_letter: KafkaDeadLetter.mapper='f'"),
        ({"topic": None}, "KafkaPipeline.dead_letter.topic: str is needed"),
    ],
    ids=str,
)
def test_a_document_is_held_to_the_same_rules(changes: dict[str, Any], said: str) -> None:
    document = pipeline(KafkaDeadLetter("dead")).to_json()
    document["dead_letter"] = {**document["dead_letter"], **changes}
    with pytest.raises(DocumentError) as refusal:
        KafkaPipeline.from_json(document)
    assert said in str(refusal.value)
