from __future__ import annotations

import json
from collections import Counter

import pytest

from bench.bars import BARS, SMALL, Bar
from bench.sizes import MEMORY, PARTS, SMALL_RUN, choose_sizes
from bench.tasks.per_record import TASKS
from bench.work import BenchError, Job, Records, Work
from bench.works import HEATS
from bench.works.json import JSON

WORKS = {work.name: work for heat in HEATS for work in heat.works}


def test_a_message_is_json_unless_it_is_poison() -> None:
    records = Records(100, poison_percent=10)
    poison = [record_id for record_id in range(100) if records.is_poison(record_id)]
    assert len(poison) == 10
    for record_id in range(100):
        message = records.message(record_id)
        assert message.key == str(record_id).encode()
        if record_id in poison:
            with pytest.raises(ValueError, match="line 1 column"):
                json.loads(message.value)
        else:
            assert json.loads(message.value)["id"] == record_id


def test_records_are_dealt_out_in_turn_or_most_of_them_to_the_first_partition() -> None:
    assert Counter(map(Records(400).partition_of, range(400))) == dict.fromkeys(range(4), 100)
    heavy = Counter(map(Records(1_000, partitions=8, heavy_percent=80).partition_of, range(1_000)))
    assert heavy[0] == 800
    assert set(heavy) == set(range(8))


def test_the_same_records_are_seeded_once_and_others_apart() -> None:
    topics = {work.records: work.records.topic for work in WORKS.values()}
    assert len(set(topics.values())) == len(topics)


@pytest.mark.parametrize("name", WORKS)
def test_a_peer_does_what_kpipe_has_to_do(name: str) -> None:
    work = WORKS[name]
    if work.task in TASKS and work.task != "wait":
        for record_id in filter(work.expects, range(40)):
            sent = work.records.message(record_id)
            assert TASKS[work.task](sent.value) == work.expected(record_id).value
        dropped = [record_id for record_id in range(40) if not work.passes(record_id)]
        assert all(TASKS[work.task](work.records.message(each).value) is None for each in dropped)


def test_poison_has_a_topic_of_its_own() -> None:
    poison = Work("poison", "", Records(10, poison_percent=10), warm=())
    assert Job(poison, "broker:9092", "out").written_topics == ("out", "out-dead")
    assert Job(JSON, "broker:9092", "out").written_topics == ("out",)


@pytest.mark.parametrize("bar", BARS, ids=str)
def test_a_bar_compares_what_is_measured_side_by_side(bar: Bar) -> None:
    entries = (bar.slower, bar.faster)
    if entries[0].work == SMALL:
        return
    heats = [heat for heat in HEATS for work in heat.works if work.name == entries[0].work]
    assert all(entry.work in [work.name for work in heats[0].works] for entry in entries)
    for entry in entries:
        work = WORKS[entry.work]
        assert entry.contestant in (work.warm if bar.mode == "warm" else work.cold)


def test_a_whole_run_has_every_part_and_a_quick_one_only_some_works() -> None:
    assert choose_sizes().heats == list(HEATS)
    assert list(choose_sizes().extras) == [MEMORY, SMALL_RUN]
    quick = choose_sizes(quick=True)
    assert [work.name for heat in quick.heats for work in heat.works] == ["copy", "json", "arrow"]
    assert not quick.extras


def test_a_part_is_chosen_by_its_name_or_by_a_work_of_it() -> None:
    assert [heat.name for heat in choose_sizes("poison").heats] == ["json"]
    assert [heat.name for heat in choose_sizes("copy").heats] == ["copy"]
    assert choose_sizes(SMALL_RUN).extras == [SMALL_RUN]
    with pytest.raises(BenchError, match=f"no part 'jsn': choose one of {', '.join(PARTS)}"):
        choose_sizes("jsn")


def test_every_work_can_be_made_small() -> None:
    sizes = choose_sizes(records=50)
    assert {work.records.count for heat in sizes.heats for work in heat.works} == {50}
    assert sizes.memory_records == (50, 250)


@pytest.mark.parametrize("name", WORKS)
def test_a_work_wants_the_records_that_it_expects(name: str) -> None:
    work = WORKS[name].with_records(200)
    assert [bool(each) for each in work.wanted()] == [work.expects(record_id) for record_id in range(200)]
