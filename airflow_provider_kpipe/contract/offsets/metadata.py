"""The metadata beside an offset: the size that a broker accepts, and texts that fit into it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

METADATA_BYTES = 4096
"""The size that a broker accepts, unless its `offset.metadata.max.bytes` says otherwise."""
LEAST_METADATA_BYTES = 2048
"""The size that each offset needs at least, with all optional parts left out."""
KEY_BYTES = 160
# Two offsets of 19 digits, with what JSON puts around them.
SPAN_BYTES = 42
_DIGEST_CHARACTERS = 16
_MARK = "~"


def as_text(document: Any) -> str:
    """Write JSON on one line, in as few bytes as UTF-8 allows."""
    # JSON can spell an unpaired surrogate and UTF-8 cannot: a client would reject the whole text.
    return _encoded(document).encode(errors="replace").decode()


def size_of(text: str) -> int:
    """Count the bytes that a text takes within JSON."""
    return len(as_text(text).encode()) - 2


def cut(text: str, most: int) -> str:
    """Return the longest beginning of a text that takes at most `most` bytes within JSON."""
    # A character takes one byte at least, and six at most.
    text, most = text[: max(most, 0)], max(most, 0)
    if size_of(text) <= most:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size_of(text[:middle]) <= most else (low, middle - 1)
    return text[:low]


def shortened(name: str, most: int = KEY_BYTES) -> str:
    """Shorten a name that is longer than `most` bytes; the digest at its end keeps it distinct from other names."""
    if size_of(name) <= most:
        return name
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]
    return cut(name, most - len(_MARK) - len(digest)) + _MARK + digest


def most_spans(metadata_bytes: int) -> int:
    """Return how many spans of completed offsets fit beside an offset, together with the required metadata."""
    return max(0, (metadata_bytes - LEAST_METADATA_BYTES) // SPAN_BYTES)


def _encoded(document: Any) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
