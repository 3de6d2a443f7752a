"""What tests of batch segments share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from airflow_provider_kpipe.record import SourceMessage
from tests.kit.batches import USERS_MODULE, MakeMessage


@pytest.fixture
def user() -> Iterator[Any]:
    """The user's module, filled by each test."""
    module = ModuleType(USERS_MODULE)
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


@pytest.fixture
def messages(message: MakeMessage) -> Callable[..., list[SourceMessage]]:
    """Messages of these values, from offset 10 on."""

    def make(*values: bytes | None) -> list[SourceMessage]:
        return [
            message(10 + at, value, key=b"k%d" % at, headers=[("h", b"%d" % at)]) for at, value in enumerate(values)
        ]

    return make
