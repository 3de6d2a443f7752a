"""Each kind of anomaly, planted once in a kept folder: a checker that does not say it by its name is blind to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.torture.checker.dump import Commit, Row
from tests.torture.kept import Kept

Plant = Callable[[Kept], None]
EXACTLY = {"delivery": "exactly_once", "tells_run": True, "ordered": True}


def first_live_output(kept: Kept, **like: Any) -> tuple[str, int]:
    """Topic and index of an output in the midst of the topic, of a record that has only this one."""
    declared = kept.pipeline(**(like or EXACTLY))
    topic = declared["destination"]
    live = {each["run"] for each in kept.of("planned", pipeline=declared["pipeline"], kind="live")}
    keys = [row.key for row in kept.rows[topic]]
    return topic, kept.index(
        topic, lambda row: keys.count(row.key) == 1 and (not declared["tells_run"] or run_of(row) in live)
    )


def run_of(row: Row) -> str | None:
    return row.header("torture-run")


def letter(kept: Kept) -> tuple[str, int]:
    declared = kept.pipeline(**EXACTLY)
    return declared["dead_letter"], kept.index(declared["dead_letter"], lambda row: True)


def drop(kept: Kept, topic: str, at: int) -> None:
    del kept.rows[topic][at]


def again(kept: Kept, topic: str, at: int, **changed: Any) -> None:
    """At the end of its partition."""
    row = kept.rows[topic][at]
    end = kept.cluster.ends[topic][row.partition].high
    last = max(index for index, each in enumerate(kept.rows[topic]) if each.partition == row.partition)
    kept.rows[topic].insert(last + 1, row._replace(offset=end, **changed))


def change(kept: Kept, topic: str, at: int, **changed: Any) -> None:
    kept.rows[topic][at] = kept.rows[topic][at]._replace(**changed)


def with_header(row: Row, name: str, value: str | None) -> list[tuple[str, str | None]]:
    return [(each, value if each == name else old) for each, old in row.headers]


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


def commit_ahead(kept: Kept) -> None:
    """A checkpoint that has gone beyond what was stored, just before what was stored caught up."""
    group = kept.pipeline(**EXACTLY)["group"]
    at, commit = next(
        (at, each)
        for at, each in enumerate(kept.cluster.commits)
        if each.group == group and each.metadata and each.offset
    )
    commits = list(kept.cluster.commits)
    commits.insert(at, replace(commit, offset=(commit.offset or 0) - 1, time=0))
    kept.cluster = replace(kept.cluster, commits=commits)


def commit_back(kept: Kept) -> None:
    group = kept.pipeline(**EXACTLY)["group"]
    last = [each for each in kept.cluster.commits if each.group == group and each.metadata][-1]
    _commit(kept, replace(last, offset=(last.offset or 0) - 1))


def commit_without_mark(kept: Kept) -> None:
    group = kept.pipeline(**EXACTLY)["group"]
    last = [each for each in kept.cluster.commits if each.group == group][-1]
    _commit(kept, replace(last, metadata=""))


def group_gone(kept: Kept) -> None:
    group = kept.pipeline(**EXACTLY)["group"]
    last = [each for each in kept.cluster.commits if each.group == group][-1]
    _commit(kept, replace(last, offset=None, metadata=""))


def group_seen_back(kept: Kept) -> None:
    last = _last_seen(kept)
    partition, offset = next(iter(last["committed"].items()))
    kept.events.append({**last, "committed": {**last["committed"], partition: offset - 1}})


def group_seen_beyond(kept: Kept) -> None:
    last = _last_seen(kept)
    partition, offset = next(iter(last["committed"].items()))
    kept.events.append({**last, "committed": {**last["committed"], partition: offset + 1}})


def _last_seen(kept: Kept) -> dict[str, Any]:
    group = kept.pipeline(**EXACTLY)["group"]
    last = [each for each in kept.of("group_seen", group=group) if each["stored"] is not None][-1]
    later = kept.events[-1]["at"] + 1_000
    return {**last, "at": later, "looked": later}


def _commit(kept: Kept, commit: Commit) -> None:
    kept.cluster = replace(kept.cluster, commits=[*kept.cluster.commits, commit])


def _told(kept: Kept, **like: Any) -> dict[str, Any]:
    name = kept.pipeline(**EXACTLY)["pipeline"]
    kinds = {each["run"]: each["kind"] for each in kept.of("planned", pipeline=name)}
    for told in kept.of("checkpoint_told", pipeline=name, green=True):
        for each in told["partitions"]:
            if kinds[told["run"]] == like.get("kind", "live") and each["complete"] and each["read"]:
                return {"told": told, "partition": each}
    raise LookupError(f"no checkpoint has told of anything like {like}")


def counted_once_more(kept: Kept) -> None:
    partition = _told(kept)["partition"]
    partition["read"] += 1
    partition["written"] += 1


def counted_as_another(kept: Kept) -> None:
    partition = _told(kept)["partition"]
    partition["written"] -= 1
    partition["filtered"] += 1


def backfill_not_counted(kept: Kept) -> None:
    partition = _told(kept, kind="backfill")["partition"]
    partition["read"] -= 1
    partition["written"] -= 1


def redrive_counted_wrong(kept: Kept) -> None:
    told = next(kept.of("redrive_told"))
    told["written"] += 1


def green_and_incomplete(kept: Kept) -> None:
    _told(kept)["partition"]["complete"] = False


def green_and_behind(kept: Kept) -> None:
    _told(kept)["partition"]["committed"] -= 1


def green_and_untold(kept: Kept) -> None:
    found = _told(kept)
    found["told"]["partitions"].remove(found["partition"])


def redriven_again(kept: Kept) -> None:
    """By another redrive, which counts it properly."""
    planned = next(kept.of("planned", kind="redrive"))
    topic = next(kept.of("declared", pipeline=planned["pipeline"]))["destination"]
    at = kept.index(topic, lambda row: run_of(row) == planned["run"])
    kept.events.insert(kept.events.index(planned) + 1, {**planned, "run": "one more"})
    again(kept, topic, at, headers=with_header(kept.rows[topic][at], "torture-run", "one more"))


def held_after_a_failure(kept: Kept) -> None:
    """From before a run failed until three seconds after it."""
    topic, hold = kept.pipeline(**EXACTLY)["destination"], {"stable": {"0": 0}, "ends": {"0": 1}}
    name = kept.pipeline(**EXACTLY)["pipeline"]
    last = kept.events[-1]["at"] + 1_000
    task = {"pipeline": name, "run": "held", "task": "run", "attempt": 1}
    planned = next(kept.of("planned", pipeline=name, kind="live"))
    kept.events += [
        {**planned, "at": last, "run": "held"},
        {"event": "task_begun", "at": last, **task},
        {"event": "stable_seen", "at": last + 1, "topic": topic, "looked": last + 1, **hold},
        {"event": "task_ended", "at": last + 2, **task, "outcome": "failed", "error": None},
        {"event": "stable_seen", "at": last + 5, "topic": topic, "looked": last + 5, **hold},
    ]


def held_in_the_end(kept: Kept) -> None:
    topic = kept.pipeline(**EXACTLY)["destination"]
    ends = dict(kept.cluster.ends[topic])
    ends[0] = replace(ends[0], high=ends[0].stable + 1)
    kept.cluster = replace(kept.cluster, ends={**kept.cluster.ends, topic: ends})


def not_drained(kept: Kept) -> None:
    declared = kept.pipeline(**EXACTLY)
    held = dict(kept.cluster.committed[declared["group"]][declared["source"]])
    held[0] -= 3
    committed = {**kept.cluster.committed, declared["group"]: {declared["source"]: held}}
    kept.cluster = replace(kept.cluster, committed=committed)


def source_gone(kept: Kept) -> None:
    topic = kept.pipeline(**EXACTLY)["source"]
    drop(kept, topic, 0)


PLANTED: Mapping[Plant, str] = {
    lost_output: "lost",
    lost_output_of_a_copy: "lost",
    lost_output_at_least_once: "lost",
    lost_letter: "lost",
    doubled_output: "doubled",
    doubled_output_of_a_copy: "doubled",
    doubled_by_two_runs: "doubled",
    doubled_letter: "doubled",
    swapped_outputs: "reordered",
    aborted_record_read: "aborted_read",
    letter_with_other_bytes: "letter_mismatch",
    letter_with_other_header: "letter_mismatch",
    letter_without_header: "letter_mismatch",
    letter_of_another_offset: "letter_mismatch",
    letter_of_another_time: "letter_mismatch",
    filtered_record_came_out: "wrong_fate",
    good_record_became_a_letter: "wrong_fate",
    altered_output: "altered",
    output_without_header: "altered",
    output_of_nothing: "no_source",
    output_without_key: "no_source",
    output_of_an_unknown_run: "no_run",
    commit_ahead: "committed_beyond_stored",
    group_seen_beyond: "committed_beyond_stored",
    commit_back: "committed_backwards",
    commit_without_mark: "committed_backwards",
    group_gone: "committed_backwards",
    group_seen_back: "committed_backwards",
    counted_once_more: "counts",
    counted_as_another: "counts",
    backfill_not_counted: "counts",
    redrive_counted_wrong: "counts",
    green_and_incomplete: "incomplete_under_green",
    green_and_behind: "incomplete_under_green",
    green_and_untold: "incomplete_under_green",
    redriven_again: "redriven_twice",
    held_after_a_failure: "held_up",
    held_in_the_end: "held_up",
    not_drained: "not_drained",
    source_gone: "unreadable",
}
