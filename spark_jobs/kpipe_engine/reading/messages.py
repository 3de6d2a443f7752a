"""Messages of the client, as far as the engine has to be careful with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_provider_kpipe.contract.dead_letters.consumed_headers import headers_of
from airflow_provider_kpipe.contract.dead_letters.dead_letter import Header
from airflow_provider_kpipe.record import SourceMessage


def read_headers(message: SourceMessage) -> Sequence[Header]:
    return headers_of(message) or ()


class BareMessage:
    """A message without its headers, because one of their names is invalid UTF-8."""

    __slots__ = ("_message",)

    def __init__(self, message: SourceMessage) -> None:
        self._message = message

    def __getattr__(self, name: str) -> Any:
        return getattr(self._message, name)

    def headers(self) -> None:
        return None
