"""Names of headers that arrive as they are written."""

from __future__ import annotations

from typing import Any


def check_header_name(name: Any) -> None:
    """Raise TypeError or ValueError where the client would make another name of it, or end the whole process."""
    if not isinstance(name, str):
        raise TypeError(f"a header is named by a {type(name).__name__}, and only a str is written as it is")
    name.encode()  # half of a pair ends the process
    if "\0" in name:
        raise ValueError(f"the header name {name[:60]!r} holds NUL, and the client cuts it off there")
