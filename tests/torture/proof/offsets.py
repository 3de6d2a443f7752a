"""Anomalies of offsets, of counts and of readers: what was seen and told is changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.torture.checker.dump import Commit
from tests.torture.proof.kept import Kept
from tests.torture.proof.places import EXACTLY


def commit_ahead(kept: Kept) -> None:
    """A checkpoint that has gone beyond what was stored, just before what was stored caught up."""
    group = kept.pipeline(**EXACTLY)["group"]
    marked = [at for at, each in enumerate(kept.cluster.commits) if each.group == group and each.metadata]
    at, commit = marked[-1], kept.cluster.commits[marked[-1]]
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


def told_of_an_offset(kept: Kept) -> None:
    _told(kept)["partition"]["committed"] += 1


def green_and_untold(kept: Kept) -> None:
    found = _told(kept)
    found["told"]["partitions"].remove(found["partition"])


def held_after_a_failure(kept: Kept) -> None:
    """From before a run failed until three seconds after it."""
    topic, hold = kept.pipeline(**EXACTLY)["destination"], {"stable": {"0": 0}, "ends": {"0": 1}}
    name = kept.pipeline(**EXACTLY)["pipeline"]
    last = kept.events[-1]["at"] + 1_000
    task = {"pipeline": name, "run": "held", "task": "run", "attempt": 1}
    planned = next(kept.of("planned", pipeline=name, kind="live"))
    looks = [
        {"event": "stable_seen", "at": last + at / 2, "topic": topic, "looked": last + at / 2, **hold}
        for at in range(2, 14)
    ]
    kept.events += [
        {**planned, "at": last, "run": "held"},
        {"event": "task_begun", "at": last, **task},
        *looks[:3],
        {"event": "task_ended", "at": last + 2.1, **task, "outcome": "failed", "error": None},
        *looks[3:],
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
