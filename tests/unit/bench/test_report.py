from __future__ import annotations

import json

import pytest

from bench.bars import Bar, Entry
from bench.report import (
    MemoryPeak,
    Results,
    Step,
    Timing,
    TypicalStep,
    compare,
    judge,
    summarise,
    timeline,
    to_json,
    to_markdown,
)

WORK, OURS, PEER = "copy", "ours", "theirs"
US, THEM = Entry(WORK, OURS), Entry(WORK, PEER)


def warm(contestant: str, *seconds: float, records: int = 1_000) -> list[Timing]:
    """The first is the warm-up."""
    return [Timing(WORK, contestant, "warm", number, records, each) for number, each in enumerate(seconds)]


def results(timings: list[Timing], *bars: Bar, memory: tuple[MemoryPeak, ...] = ()) -> Results:
    return Results({"seed": 1, "machine": {"cores": 2, "cpu": "fast"}}, timings, bars, memory, 350)


def test_a_summary_has_the_median_the_spread_and_the_rate_of_the_median() -> None:
    (summary,) = summarise(warm(OURS, 9.0, 2.0, 4.0, 1.0))
    assert (summary.work, summary.contestant, summary.mode, summary.rounds) == (WORK, OURS, "warm", 3)
    assert (summary.median_seconds, summary.fastest_seconds, summary.slowest_seconds) == (2.0, 1.0, 4.0)
    assert summary.records_per_second == 500


def test_the_quickest_of_a_work_comes_first() -> None:
    summaries = summarise([*warm(PEER, 9.0, 4.0), *warm(OURS, 9.0, 2.0)])
    assert [each.contestant for each in summaries] == [OURS, PEER]


def test_the_warm_up_alone_makes_no_summary() -> None:
    assert summarise(warm(OURS, 9.0)) == []


def test_works_and_modes_are_kept_apart() -> None:
    others = [Timing(WORK, OURS, "cold", 1, 1_000, 8.0), Timing("json", OURS, "warm", 1, 1_000, 3.0)]
    summaries = summarise([*warm(OURS, 9.0, 2.0), *others])
    assert [(each.work, each.mode, each.median_seconds) for each in summaries] == [
        (WORK, "warm", 2.0),
        (WORK, "cold", 8.0),
        ("json", "warm", 3.0),
    ]


def test_a_ratio_is_that_of_the_medians_and_spreads_over_the_rounds() -> None:
    ratio = compare([*warm(OURS, 1.0, 2.0, 2.0, 4.0), *warm(PEER, 99.0, 4.0, 6.0, 4.0)], THEM, US, "warm")
    assert ratio is not None
    assert (ratio.by_medians, ratio.lowest, ratio.highest) == (2.0, 1.0, 3.0)


def test_only_rounds_that_both_have_are_compared_singly() -> None:
    ratio = compare([*warm(OURS, 1.0, 2.0, 1.0), *warm(PEER, 1.0, 4.0)], THEM, US, "warm")
    assert ratio is not None
    assert (ratio.lowest, ratio.highest) == (2.0, 2.0)


def test_works_of_different_sizes_are_compared_by_record() -> None:
    ratio = compare([*warm(OURS, 1.0, 2.0), *warm(PEER, 1.0, 2.0, records=500)], THEM, US, "warm")
    assert ratio is not None
    assert ratio.by_medians == pytest.approx(2.0)


def test_an_unmeasured_work_has_no_ratio_and_no_verdict() -> None:
    assert compare(warm(OURS, 1.0, 2.0), THEM, US, "warm") is None
    assert judge(results(warm(OURS, 1.0, 2.0), Bar(THEM, US, at_least=1.5))) == []


@pytest.mark.parametrize(("at_least", "met"), [(1.9, True), (2.0, True), (2.1, False)])
def test_a_bar_for_speed_is_met_from_its_ratio_on(at_least: float, met: bool) -> None:
    timings = [*warm(OURS, 1.0, 2.0), *warm(PEER, 1.0, 4.0)]
    (verdict,) = judge(results(timings, Bar(THEM, US, at_least=at_least)))
    assert (verdict.measured, verdict.met) == ("2.00 x (2.00 to 2.00)", met)
    assert verdict.bar == f"ours at copy, warm: at least {at_least:g} x as fast as theirs at copy"


@pytest.mark.parametrize(("at_most", "met"), [(1.1, False), (1.25, True), (1.3, True)])
def test_a_bar_for_cost_is_met_up_to_its_ratio(at_most: float, met: bool) -> None:
    timings = [*warm(OURS, 1.0, 5.0), *warm(PEER, 1.0, 4.0)]
    (verdict,) = judge(results(timings, Bar(US, THEM, at_most=at_most)))
    assert verdict.met is met
    assert verdict.bar == f"ours at copy, warm: at most {at_most:g} x the time of theirs at copy"


@pytest.mark.parametrize(("megabytes", "met"), [(350.0, True), (350.1, False)])
def test_memory_may_reach_its_bar(megabytes: float, met: bool) -> None:
    (verdict,) = judge(results([], memory=(MemoryPeak(OURS, 5_000_000, megabytes),)))
    assert verdict.met is met
    assert "5,000,000 records" in verdict.bar


def test_the_json_holds_the_raw_numbers_and_what_was_made_of_them() -> None:
    timings = [*warm(OURS, 9.0, 2.0), *warm(PEER, 9.0, 4.0)]
    document = json.loads(json.dumps(to_json(results(timings, Bar(THEM, US, at_least=1.5)))))
    assert document["schema_version"] == 2
    assert document["machine"]["cores"] == 2
    assert [each["seconds"] for each in document["timings"]] == [9.0, 2.0, 9.0, 4.0]
    assert [each["median_seconds"] for each in document["summaries"]] == [2.0, 4.0]
    assert [each["met"] for each in document["bars"]] == [True]


def test_the_table_shows_a_missed_bar() -> None:
    timings = [*warm(OURS, 9.0, 2.0), *warm(PEER, 9.0, 2.0)]
    table = to_markdown(results(timings, Bar(THEM, US, at_least=1.5)))
    assert "| copy, warm | ours | 2.00 s | 2.00 to 2.00 s | 1 | 1,000 | 500 |" in table
    assert "| 1.00 x (1.00 to 1.00) | **missed** |" in table
    assert "- machine: cores 2, cpu fast" in table
    assert table.endswith("|\n")


def test_tables_that_would_be_empty_are_left_out() -> None:
    assert "|" not in to_markdown(results([]))


def test_a_timeline_has_medians_of_each_moment_in_the_order_of_the_tasks() -> None:
    rounds = [(0, 9.0), (1, 1.0), (2, 2.0), (3, 6.0)]
    steps = [
        Step(OURS, number, task, seconds, seconds + 1, seconds + ran)
        for number, seconds in rounds
        for task, ran in (("run", 4), ("plan", 2))
    ]
    assert timeline(steps) == [TypicalStep(OURS, 3, "plan", 2.0, 3.0, 4.0), TypicalStep(OURS, 3, "run", 2.0, 3.0, 6.0)]
    shown = to_markdown(Results({}, [], (), steps=steps))
    assert "| ours | plan | 2.00 s | 3.00 s | 4.00 s |" in shown


def test_without_a_small_run_there_is_no_timeline() -> None:
    assert "trigger" not in to_markdown(results(warm(OURS, 9.0, 2.0)))
