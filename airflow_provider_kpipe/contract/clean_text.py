"""Text of records and errors, as it may be shown: in logs, terminals, JSON and databases.

Whoever writes a record decides what is in it. NUL and halves of a pair are refused by PostgreSQL's JSON; escape
sequences move a terminal's cursor; a line break forges a line of a log. All of these are shown as Python spells them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Control characters, line and paragraph separators, what turns the direction of writing, and halves of a pair.
_UNSHOWABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def cleaned(text: str, most: int | None = None) -> str:
    """The text with every character that is not to be shown as `\\x00` and the like, cut to so many characters."""
    if not text.isprintable():
        text = _UNSHOWABLE.sub(_spelled, text if most is None else text[:most])
    return text if most is None else text[:most]


def cleaned_json(document: Any) -> Any:
    """A JSON document with all its texts cleaned, names of fields included; what PostgreSQL takes as JSON."""
    if isinstance(document, str):
        return cleaned(document)
    if isinstance(document, Mapping):
        return {cleaned(str(name)): cleaned_json(part) for name, part in document.items()}
    if isinstance(document, (list, tuple)):
        return [cleaned_json(part) for part in document]
    return document


def _spelled(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode()
