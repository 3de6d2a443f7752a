"""The headers of a consumed message, of which the client gives out some that crash the process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any

from airflow_provider_kpipe.contract.dead_letters.dead_letter import Header

headers_of: Callable[[Any], Sequence[Header] | None] = methodcaller("headers")
"""Raises SystemError where a name is no UTF-8. In a loop, a plain `message.headers()` may not notice, and what it gives
out then takes the process down. Values are bytes or None, never the text that the client declares."""
