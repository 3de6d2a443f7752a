"""Dead letters of every shape, for property tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from airflow_provider_kpipe.contract.dead_letter import Coordinates, DeadLetter, FirstFault
from airflow_provider_kpipe.contract.dead_letter_dialects import FAULT_HEADERS
from airflow_provider_kpipe.contract.faults import FailedTry, Fault

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
NAMES = TEXTS.filter(lambda name: name not in FAULT_HEADERS)
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
        attempts=draw(st.integers(1, 2**31)),
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
        attempt=draw(st.integers(1, 10_000)),
        first=first,
    )
