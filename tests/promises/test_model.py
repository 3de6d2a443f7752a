"""The checker by itself: what it takes for an anomaly, and what not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tests.promises.comparison import check as compared
from tests.promises.model import Found, Kind, Model, Run, Told
from tests.promises.properties import Anomaly

ALTHOUGH = "although all was read to its end"
TEN = {number: (0, number) for number in range(10)}


def fate(number: int) -> int | None:
    return {3: None, 5: 0, 6: 2}.get(number, 1)


def handled(numbers: Sequence[int]) -> tuple[list[int], list[int]]:
    """Outputs and letters."""
    made = [(each, fate(each)) for each in numbers]
    return [each for each, times in made for _ in range(times or 0)], [each for each, times in made if times is None]


def make(exactly_once: bool = True) -> Model:
    model = Model(exactly_once, True, fate)
    model.add_partition(0)
    return model


def plan(model: Model, key: str, start: int = 0, end: int = 10, kind: Kind = "live") -> Run:
    return model.plan(key, kind, {0: (start, end)})


def check(model: Model, runs: Mapping[str, Sequence[int]], redriven: Sequence[int] = ()) -> list[Anomaly]:
    made = {key: handled(numbers) for key, numbers in runs.items()}
    outputs, letters = ({key: both[side] for key, both in made.items()} for side in (0, 1))
    return compared(model, Found(TEN, outputs, letters, {"redrive": redriven}))


def told(run: Run, counts: tuple[int, int, int, int], complete: bool = True) -> Told:
    return Told(run, 0, complete, *counts, newer=False, alone=True)


def test_runs_that_share_the_records_are_no_anomaly() -> None:
    model = make()
    first, second = plan(model, "r0"), plan(model, "r1", 4)
    model.checkpoint(first, {}, {0: 4})
    model.checkpoint(second, {0: 4}, {0: 10})
    # The second has inherited nothing, or all.
    model.told += [told(second, (6, 6, 0, 1)), told(second, (10, 9, 1, 1))]
    model.drained = model.redriven_all = True
    assert check(model, {"r0": range(4), "r1": range(4, 10)}, [3]) == []


@pytest.mark.parametrize("again", [0, 3, 6])
def test_a_record_that_two_runs_have_handled(again: int) -> None:
    model = make()
    plan(model, "r0"), plan(model, "r1")
    (said,) = check(model, {"r0": range(10), "r1": [again]})
    assert f"record {again} " in said
    assert "r0 1, r1 1" in said


def test_a_record_that_a_run_has_handled_twice_or_by_half() -> None:
    model = make()
    plan(model, "r0")
    assert "r0 has handled record 1 (partition 0, offset 1) 2 times" in check(model, {"r0": [0, 1, 1]})[0]
    model = make()
    plan(model, "r0")
    assert "0.5 times" in compared(model, Found(TEN, {"r0": [6]}, {}))[0]


def test_a_duplicate_in_at_least_once_is_no_violation() -> None:
    model = make(exactly_once=False)
    plan(model, "r0"), plan(model, "r1")
    model.drained = True
    assert check(model, {"r0": [*range(10), 1], "r1": range(10)}) == []
    assert "record 4 (partition 0, offset 4) was never handled" in check(model, {"r0": range(4), "r1": range(5, 10)})[0]


def test_a_reset_asks_for_records_again() -> None:
    model = make()
    first = plan(model, "r0")
    model.checkpoint(first, {}, {0: 10})
    model.move(0, 2)
    plan(model, "r1", 2)
    model.drained = True
    assert check(model, {"r0": range(10), "r1": range(2, 10)}) == []
    assert "record 9 (partition 0, offset 9) was never handled" in check(model, {"r0": range(10), "r1": range(2, 9)})[0]


def test_a_backfill_has_its_window_and_what_it_publishes_counts() -> None:
    model = make()
    plan(model, "r0", 0, 5)
    model.checkpoint(plan(model, "r1", 0, 10, "published"), {0: 5}, {0: 10})
    model.drained = True
    assert check(model, {"r0": range(5), "r1": range(10)}) == []
    model = make()
    plan(model, "r0", 2, 4, "backfill")
    assert "record 4 (partition 0, offset 4), which is not in its plan" in check(model, {"r0": [2, 3, 4]})[0]


@pytest.mark.parametrize("asked_again", [False, True])
def test_a_backfill_counts_only_where_it_was_published_and_until_somebody_asks_again(asked_again: bool) -> None:
    model = make()
    backfill = plan(model, "r0", 0, 10, "published")
    if asked_again:
        model.checkpoint(backfill, {}, {0: 10})
        model.move(0, 2)
        plan(model, "r1", 2)
    model.drained = True
    said = check(model, {"r0": range(10)})
    assert said[0] == f"record {2 * asked_again} (partition 0, offset {2 * asked_again}) was never handled, {ALTHOUGH}"


@pytest.mark.parametrize("kind", ["backfill", "published"])
@pytest.mark.parametrize("exactly_once", [True, False])
def test_counts_of_a_backfill_are_those_of_its_window(kind: Kind, exactly_once: bool) -> None:
    for counts in ((4, 3, 1, 0), (4, 4, 1, 0), (5, 4, 1, 0), (3, 3, 0, 0)):
        model = make(exactly_once)
        model.told.append(told(plan(model, "r0", 1, 5, kind), counts))
        said = check(model, {"r0": range(1, 5)})
        wrong = [f"the checkpoint of r0 counts {counts} in partition 0, of (4, 3, 1, 0)"]
        assert said == (wrong if counts != (4, 3, 1, 0) else [])


def test_a_plan_that_begins_below_its_group() -> None:
    cases: list[tuple[Kind, int, int]] = [("live", 5, 0), ("live", 4, 1), ("backfill", 0, 0), ("published", 0, 0)]
    for kind, start, said in cases:
        model = make()
        model.plan("r0", kind, {0: (start, 10)}, {0: 5})
        assert len(model.anomalies) == said


def test_a_checkpoint_that_says_more_than_there_is() -> None:
    model = make()
    run = plan(model, "r0")
    model.checkpoint(run, {}, {0: 10})
    model.told.append(told(run, (9, 9, 1, 1)))
    said = check(model, {"r0": range(9)})
    assert "the checkpoint of r0 is complete, and record 9 (partition 0, offset 9) was not handled" in said
    assert "the group is at 10 after the checkpoint of r0: record 9 (partition 0, offset 9) lost" in said
    assert "no sum of records that follow each other" in said[1]


def test_a_checkpoint_that_takes_the_group_where_it_must_not() -> None:
    model = make()
    run, backfill = plan(model, "r0"), plan(model, "r1", 0, 10, "backfill")
    model.checkpoint(run, {0: 5}, {0: 4})
    model.checkpoint(backfill, {0: 4}, {0: 10})
    model.move(0, 1)
    model.checkpoint(run, {0: 1}, {0: 10})
    assert [said.split(",")[0] for said in model.anomalies] == [
        "the checkpoint of r0 took partition 0 back from 5 to 4",
        "the checkpoint of r1",
        "the checkpoint of r1",
        "the checkpoint of r0",
    ]


def test_counts_that_are_no_sum_of_what_was_handled() -> None:
    for counts in ((10, 9, 1, 0), (11, 9, 1, 1), (5, 4, 0, 1)):
        for exactly_once in (True, False):
            model = make(exactly_once)
            model.told.append(told(plan(model, "r0"), counts))
            assert any("counts" in said for said in check(model, {"r0": range(10)}))


@pytest.mark.parametrize(
    ("by_the_other", "said"), [(range(10), []), (range(2, 10), ["has handled (1, 1, 0, 0) itself"])]
)
def test_a_chunk_that_was_written_and_not_stored_counts_where_nobody_else_has_it(
    by_the_other: range, said: list[str]
) -> None:
    model = Model(False, False, fate)
    model.add_partition(0)
    plan(model, "r0")
    model.told.append(told(plan(model, "r1"), (0, 0, 0, 0)))
    found = [each for each in check(model, {"r0": by_the_other, "r1": [1]}) if "counts" in each]
    assert len(found) == len(said)
    assert all(words in each for words, each in zip(said, found, strict=True))


def test_counts_of_a_run_that_took_over_from_one_with_a_later_end() -> None:
    for reached, said in ((10, 0), (5, 1), (None, 1)):
        model = make()
        plan(model, "r0", 0, 10)
        short = plan(model, "r1", 0, 5)
        model.told.append(Told(short, 0, True, 10, 9, 1, 1, newer=False, alone=True, reached=reached))
        assert len(check(model, {"r0": range(10)})) == said


def test_letters_are_redriven_once() -> None:
    model = make()
    plan(model, "r0")
    assert "record 3 (partition 0, offset 3) was redriven 2 times" in check(model, {"r0": range(10)}, [3, 3])
    model.redriven_all = True
    assert "record 3 (partition 0, offset 3) was not redriven" in check(model, {"r0": range(10)})


def test_a_redrive_that_counts_what_it_has_not_brought_back() -> None:
    for redriven, said in (([3], []), ([], ["the redrive r1 counts 1 records, and has brought 0 back"])):
        model = make()
        plan(model, "r0")
        outputs, letters = handled(range(10))
        model.redriven_told["r1"] = 1
        assert compared(model, Found(TEN, {"r0": outputs}, {"r0": letters}, {"r1": redriven})) == said


def test_outputs_out_of_order() -> None:
    model = make()
    plan(model, "r0")
    assert "r0 wrote record 1 (partition 0, offset 1) behind offset 2" in check(model, {"r0": [0, 2, 1]})


def test_nobody_can_tell_a_reset_to_where_a_run_found_the_group() -> None:
    model = make()
    run = plan(model, "r0")
    assert not model.can_move(0, None)
    model.move(0, 4)
    assert not model.can_move(0, 4)
    model.checkpoint(plan(model, "r1", 4), {0: 4}, {0: 4})
    assert (model.can_move(0, 4), model.can_move(0, None)) == (True, False)
    assert run.lineages[0] != model.current(0)
