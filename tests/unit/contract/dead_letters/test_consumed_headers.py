from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_kpipe.contract.dead_letters.consumed_headers import headers_of
from airflow_provider_kpipe.record import SourceMessage


class UnreadableMessage:
    """A message of which the client cannot decode the name of a header."""

    def headers(self) -> Any:
        raise SystemError("a name is not UTF-8")


@pytest.mark.parametrize("headers", [None, [("a", b"1"), ("a", None), ("b", b"\xff")]])
def test_headers_come_as_the_client_returns_them(message: Callable[..., SourceMessage], headers: Any) -> None:
    assert headers_of(message(headers=headers)) == headers


def test_a_name_that_is_not_utf8_raises_at_the_call() -> None:
    with pytest.raises(SystemError, match="not UTF-8"):
        headers_of(UnreadableMessage())
