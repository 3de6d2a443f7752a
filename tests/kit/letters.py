"""Dead letters of every shape, for property tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from airflow_provider_kpipe.contract.dead_letters.dead_letter import LARGEST_COUNT, Coordinates, DeadLetter, FirstFault
from airflow_provider_kpipe.contract.dead_letters.dialects import DIALECTS, FAULT_HEADERS
from airflow_provider_kpipe.contract.dead_letters.messages import write_envelope, write_raw
from airflow_provider_kpipe.contract.faults.fault import FailedTry, Fault

FAULT = Fault(
    component="orders_pipeline:parse",
    kind="segment",
    exception_class="json.decoder.JSONDecodeError",
    message="no amount",
    stacktrace="Traceback ...",
    attempts=1,
    occurred_at="2026-01-31T12:00:01.000+00:00",
)
LETTER = DeadLetter(
    key=b"k",
    value=b"\x00\xff",
    headers=(("a", b"1"), ("b", None), ("a", b"\xff\x00")),
    source=Coordinates("orders", 3, 5, 1_700_000_000_000, "create_time"),
    fault=FAULT,
    pipeline="orders",
    group="orders-v2",
    run_key="dag/run/plan",
)

# What UTF-8 can encode; the other code points are halves of a pair.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
ANY_TEXTS = st.text(max_size=40)
BYTES = st.none() | st.binary(max_size=40)
# The client reads a name up to its first NUL.
_NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
NAMES = _NAMES.filter(lambda name: name not in FAULT_HEADERS)
HEADERS = st.lists(st.tuples(NAMES, BYTES), max_size=5).map(tuple)
# A record may come with names that dead letters use.
ANY_HEADERS = st.lists(st.tuples(NAMES | st.sampled_from(sorted(FAULT_HEADERS)), BYTES), max_size=5).map(tuple)
PARTITIONS = st.integers(0, 2**31 - 1)
OFFSETS = st.integers(0, 2**63 - 1)
TRIES = st.builds(FailedTry, st.integers(1, 9), TEXTS, TEXTS, st.floats(0, 60))


@st.composite
def faults(draw: Callable[..., Any], texts: st.SearchStrategy[str] = TEXTS) -> Fault:
    return Fault(
        component=draw(texts),
        kind=draw(st.sampled_from(["source", "segment", "destination"])),
        exception_class=draw(texts),
        message=draw(texts),
        stacktrace=draw(texts),
        attempts=draw(st.integers(1, LARGEST_COUNT)),
        occurred_at=draw(TEXTS),
        retries=tuple(draw(st.lists(TRIES, max_size=3))),
    )


@st.composite
def letters(draw: Callable[..., Any], texts: st.SearchStrategy[str] = TEXTS) -> DeadLetter:
    first = draw(st.none() | st.builds(FirstFault, TEXTS, PARTITIONS, OFFSETS, texts, texts, TEXTS))
    return DeadLetter(
        key=draw(BYTES),
        value=draw(BYTES),
        headers=draw(ANY_HEADERS),
        source=Coordinates(
            draw(TEXTS),
            draw(PARTITIONS),
            draw(OFFSETS),
            draw(st.integers(-1, 2**63 - 1)),
            draw(st.sampled_from(["unknown", "create_time", "log_append_time"])),
        ),
        fault=draw(faults(texts)),
        pipeline=draw(texts),
        group=draw(texts),
        run_key=draw(texts),
        attempt=draw(st.integers(1, LARGEST_COUNT)),
        first=first,
    )


# What somebody may have put where a number, a word or a document of ours is looked for.
STRANGE_BYTES = st.one_of(
    st.none(),
    st.binary(max_size=12),
    st.binary(min_size=4, max_size=4),
    st.binary(min_size=8, max_size=8),
    st.integers(-(2**70), 2**70).map(lambda number: b"%d" % number),
    st.integers(1, 6_000).map(lambda digits: b"9" * digits),
    st.sampled_from([b"", b"0", b"-1", b" 1", b"1_0", b"nan", b"[]", b"[{}]", b"null", b"\x00", b"\x1b[2J", b"\xff"]),
    TEXTS.map(str.encode),
)
STRANGE_NAMES = _NAMES | st.sampled_from(sorted(FAULT_HEADERS))
STRANGE_HEADERS = st.lists(st.tuples(STRANGE_NAMES, STRANGE_BYTES), max_size=6)
STRANGE_JSON = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(1, 4_300).map(lambda digits: 10**digits - 1),
    st.floats(),
    ANY_TEXTS,
    st.sampled_from([[], [[]], [["a"]], [[None, None]], {}, {"": None}]).map(deepcopy),
)


@st.composite
def strange_messages(draw: Callable[..., Any]) -> tuple[bytes | None, bytes | None, list[Any]]:
    """Letters of ours and of others in which some headers, and some fields of an envelope, are something else."""
    dialect = draw(st.sampled_from(list(DIALECTS.values())))
    write = draw(st.sampled_from([write_raw, write_envelope]))
    written = write(draw(letters()), dialect)
    headers, value = list(written.headers), written.value
    for at in draw(st.lists(st.integers(0, len(headers) - 1), max_size=3)):
        headers[at] = (headers[at][0], draw(STRANGE_BYTES))
    # A record's own header may say so too.
    if write is write_envelope:
        document = json.loads(value)
        for fields in draw(st.lists(st.sampled_from(_ENVELOPE_PARTS), max_size=3)):
            part = document
            for field in fields:
                part = part.get(field) if isinstance(part, dict) else None
            if isinstance(part, dict):
                part[draw(st.sampled_from(sorted({*part, "extra"})))] = draw(STRANGE_JSON)
        value = json.dumps(document).encode(errors="replace")
    own = draw(STRANGE_HEADERS)
    return draw(BYTES), draw(st.sampled_from([value, value, b"{", None])), [*own, *headers, *draw(STRANGE_HEADERS)]


_ENVELOPE_PARTS: list[list[str]] = [[], ["source"], ["fault"], ["first"]]
