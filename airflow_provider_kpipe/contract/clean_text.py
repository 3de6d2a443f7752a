"""Text of records and errors, made safe to show in logs, terminals, JSON and databases.

The writer of a record decides its content. PostgreSQL's JSON rejects NUL and unpaired surrogates; escape sequences
move a terminal's cursor; a line break forges a line of a log. All of these are shown as Python spells them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Control characters, line and paragraph separators, marks that turn the direction of writing, unpaired surrogates.
_UNSHOWABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def cleaned(text: str, most: int | None = None) -> str:
    """Return the text with each unshowable character spelled as `\\x00` and the like, cut to `most` characters."""
    if not text.isprintable():
        text = _UNSHOWABLE.sub(_spelled, text if most is None else text[:most])
    return text if most is None else text[:most]


def cleaned_json(document: Any) -> Any:
    """Clean all texts of a JSON document, names of fields included, so that PostgreSQL accepts it as JSON."""
    if isinstance(document, str):
        return cleaned(document)
    if isinstance(document, Mapping):
        return {cleaned(str(name)): cleaned_json(part) for name, part in document.items()}
    if isinstance(document, (list, tuple)):
        return [cleaned_json(part) for part in document]
    return document


def _spelled(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode()
