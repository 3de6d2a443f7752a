from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination, PipelineError
from kpipe_engine.writing.header_rules import HeaderRules, choose_header_rules

HEADERS: list[tuple[str, bytes | None]] = [("a", b"1"), ("b", None), ("a", b"\xff"), ("c", b"")]


@pytest.fixture
def source(message: Callable[..., Any]) -> Any:
    return message(7, b"value")


def test_by_default_there_are_no_rules() -> None:
    assert choose_header_rules(KafkaDestination("out")) is None


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        ({"drop_headers": ["a"]}, [("b", None), ("c", b"")]),
        ({"drop_headers": ["no-such-header"]}, HEADERS),
        ({"copy_headers": False}, []),
    ],
    ids=repr,
)
def test_headers_are_dropped_by_name_or_all_of_them(source: Any, rules: dict[str, Any], kept: list[Any]) -> None:
    chosen = choose_header_rules(KafkaDestination("out", **rules))
    assert chosen is not None
    assert chosen.apply(HEADERS, source) == kept
    assert chosen.apply(None, source) == []


def test_the_source_is_stamped_behind_the_records_own_headers(source: Any) -> None:
    coordinates = [
        ("kpipe-source-topic", source.topic().encode()),
        ("kpipe-source-partition", str(source.partition()).encode()),
        ("kpipe-source-offset", b"7"),
    ]
    assert HeaderRules(KafkaDestination("out", stamp_source=True)).apply(HEADERS, source) == HEADERS + coordinates
    alone = HeaderRules(KafkaDestination("out", stamp_source=True, copy_headers=False))
    assert alone.apply(HEADERS, source) == coordinates


@given(headers=st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5))), dropped=st.text(max_size=5))
def test_kept_headers_keep_their_order_and_bytes(headers: list[Any], dropped: str) -> None:
    nobody: Any = None
    kept = HeaderRules(KafkaDestination("out", drop_headers=[dropped])).apply(headers, nobody)
    assert kept == [header for header in headers if header[0] != dropped]


def test_one_string_is_no_list_of_names() -> None:
    with pytest.raises(PipelineError, match="drop_headers='abc' must be a list of names"):
        KafkaDestination("out", drop_headers="abc")
