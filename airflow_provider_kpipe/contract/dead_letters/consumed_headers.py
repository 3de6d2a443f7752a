"""The headers of a consumed message, some of which crash the process when the client returns them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any

from airflow_provider_kpipe.contract.dead_letters.dead_letter import Header

headers_of: Callable[[Any], Sequence[Header] | None] = methodcaller("headers")
"""Raises SystemError if a name is not UTF-8. In a loop, a plain `message.headers()` may miss that, and its result then
crashes the process. Values are bytes or None, never the text that the client declares."""
