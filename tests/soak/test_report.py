"""The report says every miss, and the figures hold what the table shows."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.soak.fit import fit
from tests.soak.peaks import KEPT, Judged
from tests.soak.report import HAVE_TO_BE_SEEN, Outcome, figures, table, verdict

FLAT = fit([10.0] * 20, 0.5)
LEAK = fit([10.0 + run for run in range(20)], 0.5)
NOISY = fit([10.0 + 7.0 * (run * run % 11) for run in range(12)], 0.5)

SOUND = Outcome(
    commit="0123456789ab",
    minutes=15.02,
    runs=45,
    redrives=11,
    every_seconds=20.04,
    fates={"produced": 1_000, "written": 980, "dead-lettered": 5, "filtered": 15},
    judged=[Judged(role, "groups" if role == KEPT else "handles", FLAT) for role in HAVE_TO_BE_SEEN],
)


def test_a_sound_soak_has_no_miss() -> None:
    assert SOUND.misses == []
    assert verdict(SOUND) == (
        "15.0 minutes, 45 runs, one every 20 s, and 11 redrives beside them.\n"
        "Records: 1,000 produced, 980 written, 5 dead-lettered, 15 filtered.\n"
        "No leak is found, nothing is left, and everything adds up."
    )


def test_a_leak_is_a_miss_with_its_role_and_how_much_it_is() -> None:
    leaking = replace(SOUND, judged=[*SOUND.judged, Judged("triggerer", "threads", LEAK)])
    assert leaking.misses == ["triggerer: threads grow by 1.00 a run (at least 1.00), and may by 0.50"]
    assert "1 MISSES:\n  triggerer: threads grow" in verdict(leaking)


def test_a_noisy_series_is_named_and_is_no_miss() -> None:
    noisy = replace(SOUND, judged=[*SOUND.judged, Judged("jvm", "memory", NOISY)])
    assert noisy.misses == []
    assert "\nToo noisy to be called flat: jvm: memory grow by " in verdict(noisy)
    kept = json.loads(figures(noisy))
    assert (kept["flat"], len(kept["too noisy to be called flat"])) == (len(SOUND.judged), 1)


def test_a_miss_of_another_check_counts() -> None:
    assert replace(SOUND, other_misses=["lag of the group = 0: 7 and 0"]).misses == ["lag of the group = 0: 7 and 0"]


def test_a_role_that_was_not_seen_long_enough_is_a_miss() -> None:
    short = [Judged("jvm", "handles", fit([1.0], 0.5)) if each.role == "jvm" else each for each in SOUND.judged]
    said = ["jvm: seen in too few runs after the warm-up to say anything: soak for longer"]
    assert replace(SOUND, judged=short).misses == said
    assert replace(SOUND, judged=[each for each in SOUND.judged if each.role != "jvm"]).misses == said


def test_the_table_has_a_row_for_each_series() -> None:
    rows = table([Judged("scheduler", "handles", FLAT), Judged("jvm", "threads", LEAK)]).splitlines()
    assert [row.split() for row in rows[1:]] == [
        ["scheduler", "handles", "10.0", "10.0", "+0.000", "(0.50)", "+0.000", "flat"],
        ["jvm", "threads", "11.0", "28.0", "+1.000", "(0.50)", "+1.000", "leak"],
    ]
    assert table([Judged("jvm", "threads", fit([], 0.5))]).splitlines()[1].split() == [
        *("jvm", "threads", "0.0", "0.0", "too", "short"),
    ]


def test_the_figures_are_json_with_all_that_counts() -> None:
    kept = json.loads(figures(replace(SOUND, other_misses=["a miss"])))
    assert kept["commit"] == "0123456789ab"
    assert kept["records"] == SOUND.fates
    assert kept["misses"] == ["a miss"]
    assert kept["grows by run"]["jvm"]["handles"] == {
        "first": 10.0,
        "last": 10.0,
        "slope": 0.0,
        "at most": 0.0,
        "bound": 0.5,
        "verdict": "flat",
    }
