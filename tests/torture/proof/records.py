"""Anomalies of records: what lies in the topics is changed."""

from __future__ import annotations

from tests.torture.proof.kept import Kept
from tests.torture.proof.places import EXACTLY, again, change, drop, first_live_output, letter, run_of, with_header


def lost_output(kept: Kept) -> None:
    drop(kept, *first_live_output(kept))


def lost_output_of_a_copy(kept: Kept) -> None:
    drop(kept, *first_live_output(kept, tells_run=False))


def lost_output_at_least_once(kept: Kept) -> None:
    drop(kept, *first_live_output(kept, delivery="at_least_once"))


def lost_letter(kept: Kept) -> None:
    topic, at = letter(kept)
    drop(kept, topic, at)


def doubled_output(kept: Kept) -> None:
    again(kept, *first_live_output(kept))


def doubled_output_of_a_copy(kept: Kept) -> None:
    again(kept, *first_live_output(kept, tells_run=False))


def doubled_by_two_runs(kept: Kept) -> None:
    """Each of them has handled it once, and the later one as if it had it in its plan."""
    topic, at = first_live_output(kept)
    row = kept.rows[topic][at]
    earlier = next(each for each in kept.of("planned", run=run_of(row)))
    later = next(each for each in kept.of("planned", pipeline=earlier["pipeline"], kind="live") if each != earlier)
    later["ranges"] = {partition: [0, end] for partition, (_, end) in later["ranges"].items()}
    again(kept, topic, at, headers=with_header(row, "torture-run", later["run"]))


def doubled_letter(kept: Kept) -> None:
    again(kept, *letter(kept))


def swapped_outputs(kept: Kept) -> None:
    """Two neighbours in one partition, of one partition of the source."""
    topic, at = first_live_output(kept)
    rows = kept.rows[topic]
    source = {row.key: row.partition for row in kept.rows[kept.pipeline(**EXACTLY)["source"]]}
    first = next(
        index
        for index in range(at, len(rows) - 1)
        if rows[index].partition == rows[index + 1].partition
        and source[rows[index].key] == source[rows[index + 1].key]
        and run_of(rows[index]) == run_of(rows[index + 1]) == run_of(rows[at])
    )
    one, two = rows[first], rows[first + 1]
    rows[first], rows[first + 1] = two._replace(offset=one.offset), one._replace(offset=two.offset)


def aborted_record_read(kept: Kept) -> None:
    topic, at = first_live_output(kept)
    aborted = kept.aborted[kept.pipeline(**EXACTLY)["source"]][0]
    again(kept, topic, at, key=aborted.key)


def letter_with_other_bytes(kept: Kept) -> None:
    topic, at = letter(kept)
    change(kept, topic, at, digest="0123456789abcdef")


def letter_with_other_header(kept: Kept) -> None:
    topic, at = letter(kept)
    change(kept, topic, at, headers=with_header(kept.rows[topic][at], "torture", "something else"))


def letter_without_header(kept: Kept) -> None:
    topic, at = letter(kept)
    change(kept, topic, at, headers=kept.rows[topic][at].headers[1:])


def letter_of_another_offset(kept: Kept) -> None:
    topic, at = letter(kept)
    row = kept.rows[topic][at]
    elsewhere = str(int(row.header("kpipe-source-offset") or 0) + 1)
    change(kept, topic, at, headers=with_header(row, "kpipe-source-offset", elsewhere))


def letter_of_another_time(kept: Kept) -> None:
    topic, at = letter(kept)
    change(kept, topic, at, timestamp=1)


def filtered_record_came_out(kept: Kept) -> None:
    topic, at = first_live_output(kept)
    source, kinds = kept.pipeline(**EXACTLY)["source"], kept.kinds()
    filtered = kept.rows[source][kept.index(source, lambda row: kinds[int(row.key or 0)] == "filtered")]
    again(kept, topic, at, key=filtered.key, digest=filtered.digest)


def good_record_became_a_letter(kept: Kept) -> None:
    topic, at = letter(kept)
    output, good = first_live_output(kept)
    again(kept, topic, at, key=kept.rows[output][good].key)


def altered_output(kept: Kept) -> None:
    topic, at = first_live_output(kept)
    change(kept, topic, at, digest="0123456789abcdef")


def output_without_header(kept: Kept) -> None:
    topic, at = first_live_output(kept)
    change(kept, topic, at, headers=kept.rows[topic][at].headers[1:])


def output_of_nothing(kept: Kept) -> None:
    again(kept, *first_live_output(kept), key="99999999")


def output_without_key(kept: Kept) -> None:
    again(kept, *first_live_output(kept), key=None)


def output_of_an_unknown_run(kept: Kept) -> None:
    topic, at = first_live_output(kept)
    change(kept, topic, at, headers=with_header(kept.rows[topic][at], "torture-run", "nobody's"))


def redriven_again(kept: Kept) -> None:
    """By another redrive, which counts it properly."""
    planned = next(kept.of("planned", kind="redrive"))
    topic = next(kept.of("declared", pipeline=planned["pipeline"]))["destination"]
    at = kept.index(topic, lambda row: run_of(row) == planned["run"])
    kept.events.insert(kept.events.index(planned) + 1, {**planned, "run": "one more"})
    again(kept, topic, at, headers=with_header(kept.rows[topic][at], "torture-run", "one more"))


def source_gone(kept: Kept) -> None:
    topic = kept.pipeline(**EXACTLY)["source"]
    drop(kept, topic, 0)
