"""What a segment is told of a record, and what it tells of itself."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.letters import BYTES, HEADERS
from tests.kit.pipelines import Bench
from tests.kit.topics import Sent, fill, numbered, read_all


def test_counters_of_segments_are_in_the_checkpoint_exactly(broker: SandboxBroker) -> None:
    bench = Bench.make(
        broker.bootstrap_servers, partitions=2, segments=["faulty_kit:Counting", "orders_kit:second_too_large"]
    )
    # Record 5 makes its chunk fail once; what was counted then does not count.
    fill(bench.bootstrap, bench.topic, numbered(20, partitions=2))
    plan = bench.plan()
    bench.work(plan)
    checkpoint = bench.checkpoint(plan)
    named = [each.counts.named for each in checkpoint.partitions]
    assert named[0] == {"seen": 10, "ids": sum(range(0, 20, 2))}
    # The record that is known not to pass is not given to the segments again.
    assert named[1] == {"seen": 9, "ids": sum(range(1, 20, 2)) - 5}
    assert checkpoint.to_json()["partitions"][0]["counts"]["named"]["seen"] == 10


def test_a_correlation_id_comes_from_a_header_or_from_the_coordinates(broker: SandboxBroker) -> None:
    bench = Bench.make(
        broker.bootstrap_servers, segments=["faulty_kit:Counting"], source={"correlation_header": "request-id"}
    )
    records = [
        Sent(b'{"id": 0}', headers=[("request-id", b"abc-1")]),
        Sent(b'{"id": 1}', headers=[("request-id", None), ("request-id", b"abc-2")]),
        Sent(b'{"id": 2}'),
    ]
    fill(bench.bootstrap, bench.topic, records)
    bench.work(bench.plan())
    found = [record.header("correlation") for record in read_all(bench.bootstrap, bench.output)]
    assert found == ["abc-1", "abc-2", f"{bench.topic}-0-2"]


def test_header_rules_of_the_destination(broker: SandboxBroker) -> None:
    for segments in ([], ["orders_kit:parse"]):
        bench = Bench.make(
            broker.bootstrap_servers,
            segments=segments,
            destination={"drop_headers": ["trace"], "stamp_source": True},
        )
        fill(bench.bootstrap, bench.topic, [Sent(b'{"id": 0}', headers=[("trace", b"1"), ("kept", b"\xff")])])
        bench.work(bench.plan())
        (found,) = read_all(bench.bootstrap, bench.output)
        assert found.headers == [
            ("kept", b"\xff"),
            ("kpipe-source-topic", bench.topic.encode()),
            ("kpipe-source-partition", b"0"),
            ("kpipe-source-offset", b"0"),
        ]


def without_nul(headers: Sequence[tuple[str, bytes | None]]) -> list[tuple[str, bytes | None]]:
    """The client ends a header's name there, on either side."""
    return [(name.replace("\0", ""), value) for name, value in headers]


@given(
    sent=st.lists(
        st.builds(Sent, BYTES, BYTES, headers=HEADERS.map(without_nul), timestamp=st.integers(1, 1_700_000_000_000)),
        min_size=1,
        max_size=50,
    )
)
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_record_arrives_as_it_was_sent(broker: SandboxBroker, sent: list[Sent]) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["orders_kit:untouched"])
    fill(bench.bootstrap, bench.topic, sent)
    bench.work(bench.plan())
    found = read_all(bench.bootstrap, bench.output)
    assert [(each.key, each.value, each.headers, each.timestamp[1]) for each in found] == [
        (each.key, each.value, each.headers, each.timestamp) for each in sent
    ]
