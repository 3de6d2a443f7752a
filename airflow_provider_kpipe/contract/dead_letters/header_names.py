"""Check that the names of headers arrive as they are written."""

from __future__ import annotations

from typing import Any


def check_header_name(name: Any) -> None:
    """Raise TypeError or ValueError for a name that the client would change, or that would crash the process."""
    if not isinstance(name, str):
        raise TypeError(f"a header is named by a {type(name).__name__}, and only a str is written as it is")
    name.encode()  # half of a surrogate pair would crash the process
    if "\0" in name:
        raise ValueError(f"the header name {name[:60]!r} holds NUL, and the client cuts it off there")
