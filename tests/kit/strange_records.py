"""Records and dead letters of every shape, as somebody may have put them into a topic, for runs of a whole worker."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from itertools import product
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.dead_letters.dialects import DIALECTS
from airflow_provider_kpipe.contract.dead_letters.messages import read_dead_letter, write_envelope
from airflow_provider_kpipe.contract.documents import OtherVersionError
from tests.kit.letters import LETTER, STRANGE_BYTES, STRANGE_JSON, STRANGE_NAMES, letters, strange_messages
from tests.kit.topics import Sent

HOME = "HOME"
"""Stands in a letter for the source topic, whose name no strategy knows."""

_DIGITS = b"9" * 4_300
_DEEP = b"[" * 50_000
_PARTS = st.one_of(
    STRANGE_BYTES,
    st.sampled_from([_DIGITS, b"-" + _DIGITS, b"1e5000", b"NaN", _DEEP, b'{"a": "\\ud800"}', b"\xff\xfe\x00"]),
)
_LARGE = st.integers(0, 9).map(lambda digit: b"%d" % digit * 32_768)
_HEADERS = st.lists(st.tuples(STRANGE_NAMES, st.one_of(STRANGE_BYTES, STRANGE_BYTES, _LARGE)), max_size=6)
_TIMESTAMPS = st.sampled_from([0, 1, 1_700_000_000_000])


def whole_runs(examples: int) -> settings:
    """Few examples of many records each; `EXAMPLES=…` in the environment tries more, and others each time."""
    more = os.environ.get("EXAMPLES")
    return settings(
        max_examples=int(more or examples),
        derandomize=more is None,
        database=None,
        deadline=None,
        print_blob=True,
        # Each step of a reduction would be a run of its own.
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )


@st.composite
def _plain(draw: Callable[..., Any]) -> Sent:
    headers = draw(_HEADERS)
    twice = headers[:1] if draw(st.booleans()) else []
    return Sent(draw(_PARTS), draw(_PARTS), headers=[*headers, *twice], timestamp=draw(_TIMESTAMPS))


@st.composite
def _letter_like(draw: Callable[..., Any]) -> Sent:
    key, value, headers = draw(strange_messages())
    return Sent(value, key, headers=list(headers), timestamp=draw(_TIMESTAMPS))


@st.composite
def _home_letter(draw: Callable[..., Any]) -> Sent:
    """One in an envelope that fits nothing, or nearly something: fields are missing, there twice, or something else."""
    key, value, headers = write_envelope(draw(letters()), DIALECTS["kpipe"])
    document = json.loads(value)
    document["source"] = {**document["source"], "topic": HOME, "partition": 0}
    for path in draw(st.lists(st.sampled_from(_FIELDS), max_size=2)):
        part = document
        for field in path[:-1]:
            part = part.get(field) if isinstance(part, dict) else None
        if isinstance(part, dict):
            part[path[-1]] = draw(STRANGE_JSON)
            if draw(st.booleans()):
                del part[path[-1]]
    text = json.dumps(document).encode()
    spoilt = draw(st.sampled_from(_SPOILT))
    return Sent(spoilt(text), key, headers=draw(st.sampled_from([list(headers), list(headers[-1:])])))


def _field(name: bytes, raw: bytes) -> Callable[[bytes], bytes]:
    """Said once more, and so: the last one counts."""
    return lambda text: text[:-1] + b', "' + name + b'": ' + raw + b"}"


_DOCUMENT = json.loads(write_envelope(LETTER, DIALECTS["kpipe"]).value)
_FIELDS = [
    *([name] for name in _DOCUMENT),
    *([part, name] for part in ("source", "fault") for name in _DOCUMENT[part]),
]
_VALUES = (
    _DEEP,
    b"[" * 900 + b"]" * 900,
    _DIGITS,
    b"1e5000",
    b"NaN",
    b"-Infinity",
    b'"\\ud800"',
    b"null",
    b"[[null, null]]",
    b'[["a\\u0000b", null]]',
)
_SPOILT: list[Callable[[bytes], bytes]] = [
    *[bytes] * 6,
    lambda text: text[: len(text) // 2],
    lambda text: text[::-1],
    lambda text: b"\xff" + text,
    *map(_field, *zip(*product((b"attempt", b"value", b"extra", b"source", b"headers"), _VALUES), strict=True)),
]

RECORDS = st.one_of(_plain(), _plain(), _letter_like(), _home_letter())


def _is_readable(record: Sent) -> bool:
    try:
        read_dead_letter(record.key, record.value, record.headers)
    except OtherVersionError:
        return False
    return True


# A letter that only another version can open stops a redrive in front of it: that is another test's.
LETTERS = st.one_of(_home_letter(), _home_letter(), _letter_like(), _plain()).filter(_is_readable)


def at_home(record: Sent, topic: str) -> Sent:
    """The same, of a source topic of this name."""
    home, name = HOME.encode(), topic.encode()
    headers = [(each, None if raw is None else raw.replace(home, name)) for each, raw in record.headers]
    value = None if record.value is None else record.value.replace(home, name)
    return Sent(value, record.key, headers=headers, timestamp=record.timestamp)
