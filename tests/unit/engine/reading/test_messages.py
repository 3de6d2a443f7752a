from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.reading.messages import BareMessage, read_headers


@pytest.mark.parametrize(("headers", "read"), [(None, []), ([("a", b"1"), ("a", None)], [("a", b"1"), ("a", None)])])
def test_headers_are_a_sequence_even_if_there_are_none(message: Callable[..., Any], headers: Any, read: Any) -> None:
    assert list(read_headers(message(headers=headers))) == read


def test_a_bare_message_is_the_same_without_its_headers(message: Callable[..., SourceMessage]) -> None:
    whole: Any = message(5, b"value", headers=[("a", b"1")])
    bare: Any = BareMessage(whole)
    assert bare.headers() is None
    assert read_headers(bare) == ()
    for part in ("topic", "partition", "offset", "key", "value", "timestamp"):
        assert getattr(bare, part)() == getattr(whole, part)()
