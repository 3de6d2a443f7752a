"""What the README and the guide show is there: their code runs, their arguments are taken, their links lead on."""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest
from docs_kit import (
    GUIDE,
    MARKDOWN,
    PAGES,
    QUICKSTART,
    README,
    ROOT,
    all_arguments,
    anchors,
    links,
    prose,
    python_blocks,
    rows,
)

import airflow_provider_kpipe
from airflow_provider_kpipe.contract.dead_letters.dead_letter import LARGEST_COUNT, MESSAGE_BYTES, STACKTRACE_BYTES
from airflow_provider_kpipe.contract.faults.causes import MOST_CAUSES
from airflow_provider_kpipe.contract.kafka_names import MOST_WRITERS
from airflow_provider_kpipe.contract.pipeline.policies import DeadLetterBudget
from airflow_provider_kpipe.kafka.connection import client_settings
from airflow_provider_kpipe.operators.backfill_plan import backfill_params
from airflow_provider_kpipe.operators.redrive import KpipeRedriveOperator, redrive_params
from airflow_provider_kpipe.planning.letter_room import STORY_BYTES
from airflow_provider_kpipe.redriving.preview import SAMPLES
from airflow_provider_kpipe.redriving.retention import ENOUGH_LETTERS
from airflow_provider_kpipe.running.progress_log import MOST_SHOWN
from airflow_provider_kpipe.sensors.partitions_drained import KpipePartitionsDrainedSensor
from airflow_provider_kpipe.task_group import kpipe_backfill_task_group, kpipe_task_group
from kpipe_engine.chunk_filler import RECORDS_PER_READ
from kpipe_engine.client_settings import QUEUE_KBYTES
from kpipe_engine.supervision.crash_cases import MOST_DEATHS, MOST_DEATHS_OVER_NOTHING
from kpipe_engine.supervision.task_layout import MOST_AT_ONCE_IN_A_TASK

WORDS = {3: "three", 8: "eight", 10: "ten"}
# What the guide says in numbers, and the numbers that it means.
NUMBERS: list[tuple[str, str, tuple[int, ...]]] = [
    ("faults.md", "Messages and stack traces are cut to {:,} and {:,} bytes", (MESSAGE_BYTES, STACKTRACE_BYTES)),
    ("faults.md", "the attempt goes up (to {:,},", (LARGEST_COUNT,)),
    ("faults.md", "is that share, from {} records on", (DeadLetterBudget.SMALLEST_SAMPLE,)),
    ("faults.md", "in the midst of one where {:,} more have faulted than it allows", (DeadLetterBudget.FLOOD,)),
    ("runs.md", "of more than {:,}, no more than it takes to find one that stays", (ENOUGH_LETTERS,)),
    ("runs.md", "(over more than {} partitions, at the end only)", (MOST_SHOWN,)),
    ("runs.md", "beside the {} MB that may be fetched ahead", (QUEUE_KBYTES // 1024,)),
    ("runs.md", "Of records of such a batch that are read together, up to {:,},", (RECORDS_PER_READ,)),
    ("partitions.md", "a topic with up to {} partitions is cut into pieces", (MOST_WRITERS,)),
]
IN_WORDS: list[tuple[str, str, int]] = [
    ("faults.md", "is looked for no longer than {} deaths", MOST_DEATHS),
    ("faults.md", "while they are imported or open stop its partitions after {}.", MOST_DEATHS_OVER_NOTHING),
    ("faults.md", "each partition that is worked on at once, up to {} in a task", MOST_AT_ONCE_IN_A_TASK),
    ("faults.md", "of which exception and pipeline, and the first {}. Nothing is written", SAMPLES),
    ("runs.md", "the {} most frequent kinds by themselves", MOST_CAUSES),
]

DOCS = ROOT / "docs"
DOCUMENTATION = sorted(DOCS.rglob("*.md"))
# A page names a module of the package or of the engine by its path there.
SOURCES = [ROOT, ROOT / "airflow_provider_kpipe", ROOT / "spark_jobs", ROOT / "spark_jobs" / "kpipe_engine"]

OURS: dict[str, Callable[..., Any]] = {
    "KafkaPipeline": airflow_provider_kpipe.KafkaPipeline,
    "KafkaSource": airflow_provider_kpipe.KafkaSource,
    "KafkaDestination": airflow_provider_kpipe.KafkaDestination,
    "KafkaDeadLetter": airflow_provider_kpipe.KafkaDeadLetter,
    "PartitionScaling": airflow_provider_kpipe.PartitionScaling,
    "RetryPolicy.exponential": airflow_provider_kpipe.RetryPolicy.exponential,
    "RetryPolicy.fixed": airflow_provider_kpipe.RetryPolicy.fixed,
    "KpipePartitionsDrainedSensor": KpipePartitionsDrainedSensor,
    "KpipeRedriveOperator": KpipeRedriveOperator,
    "backfill_params": backfill_params,
    "kpipe_backfill_task_group": kpipe_backfill_task_group,
    "kpipe_task_group": kpipe_task_group,
    "redrive_params": redrive_params,
}

each_page = pytest.mark.parametrize("name", PAGES)
with_blocks = pytest.mark.parametrize("name", [name for name, page in PAGES.items() if python_blocks(page)])


def calls(page: Path) -> list[tuple[str, set[str]]]:
    """Names of ours that are called, and the arguments they are given by name."""
    trees = [ast.parse(block) for block in python_blocks(page)]
    found = [(ast.unparse(node.func), node) for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [(name, {each.arg for each in node.keywords if each.arg}) for name, node in found if name in OURS]


def names_looked_up(code: CodeType) -> set[str]:
    """Names that are no local ones, also in functions that nobody has called yet."""
    found = {each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_NAME", "LOAD_GLOBAL")}
    return found.union(*(names_looked_up(each) for each in code.co_consts if isinstance(each, CodeType)))


@pytest.fixture
def shown(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the blocks of a page have made, one after the other; some pages show two files."""
    monkeypatch.setitem(sys.modules, "orders_pb2", made_by_protoc())
    page = ModuleType("orders_pipeline")
    page.__file__ = str(tmp_path / "page.py")
    if PAGES[name] in (README, QUICKSTART):
        monkeypatch.setitem(sys.modules, "orders_pipeline", page)
    for block in python_blocks(PAGES[name]):
        exec(compile(block, name, "exec", dont_inherit=True), page.__dict__)  # noqa: S102  # our own documentation
    return page.__dict__


def made_by_protoc() -> ModuleType:
    module = ModuleType("orders_pb2")
    module.Order = object  # type: ignore[attr-defined]
    return module


@with_blocks
def test_the_code_of_a_page_runs_and_looks_up_nothing_that_is_not_there(name: str, shown: dict[str, Any]) -> None:
    for block in python_blocks(PAGES[name]):
        unknown = (
            names_looked_up(compile(block, name, "exec", dont_inherit=True)) - shown.keys() - vars(builtins).keys()
        )
        # A class finds these in its own body.
        assert unknown <= {"__name__", "__module__", "__qualname__"}


@pytest.mark.parametrize("name", ["docs/guide/segments.md"])
def test_the_tests_that_a_page_shows_pass(shown: dict[str, Any]) -> None:
    tests = [each for name, each in shown.items() if name.startswith("test_")]
    assert len(tests) == 3
    for test in tests:
        test()


def test_all_that_is_ours_is_called_somewhere() -> None:
    called = {name for page in PAGES.values() for name, _ in calls(page)}
    assert called >= OURS.keys() - {"RetryPolicy.fixed"}


@with_blocks
def test_arguments_are_taken(name: str) -> None:
    for called, given in calls(PAGES[name]):
        assert given <= all_arguments(OURS[called]), called


def test_an_argument_that_nobody_takes_would_be_seen() -> None:
    for called in (kpipe_task_group, KpipePartitionsDrainedSensor, KpipeRedriveOperator):
        assert {"max_record", "untl", "parking"}.isdisjoint(all_arguments(called))
        assert any(each.kind is each.VAR_KEYWORD for each in inspect.signature(called).parameters.values())


def test_the_table_of_a_run_names_arguments_that_are_taken() -> None:
    (table,) = re.findall(r"## What a run reads\n(.*?)\n## ", (GUIDE / "runs.md").read_text(), re.DOTALL)
    named = {argument for cells in rows(table) for argument in re.findall(r"`(\w+)[=`]", cells[0])}
    assert {"start", "end", "max_records", "max_run_time"} <= named <= all_arguments(kpipe_task_group)


@each_page
def test_options_named_in_the_text_are_there(name: str) -> None:
    for called, option in re.findall(r"`(\w+)\((\w+)=", prose(PAGES[name])):
        assert option in all_arguments(OURS.get(called) or getattr(airflow_provider_kpipe, called)), called


@each_page
def test_names_to_import_are_there(name: str) -> None:
    for line in re.findall(r"^ *(from airflow_provider_kpipe\.\S* import .*)$", PAGES[name].read_text(), re.MULTILINE):
        exec(line, {})  # noqa: S102  # our own documentation


def test_connections_are_taken() -> None:
    documents = [json.loads(text) for page in PAGES.values() for text in connections(page)]
    kafka, spark = ([each for each in documents if each["conn_type"] == kind] for kind in ("kafka", "spark"))
    assert len(kafka) == len(spark) == 3
    assert all(urlsplit(each["host"]).scheme == "spark" or each["host"] == "local[2]" for each in spark)
    for each in kafka:
        given = {"host": None, "port": None, "login": None, "password": None, **each}
        del given["conn_type"]
        assert client_settings("kafka_default", **given).keys() >= each["extra"].keys()


def connections(page: Path) -> list[str]:
    return re.findall(
        r"airflow connections add \w+ --conn-json(?: \\\n)? *'(\{.*?\})'$", page.read_text(), re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize("name", MARKDOWN)
def test_links_lead_somewhere(name: str) -> None:
    for page, anchor in links(MARKDOWN[name]):
        assert page.exists(), page
        assert not anchor or anchor in anchors(page), f"{page}#{anchor}"


@pytest.mark.parametrize("page", DOCUMENTATION, ids=lambda page: str(page.relative_to(DOCS)))
def test_each_module_that_a_page_names_is_there(page: Path) -> None:
    named = set(re.findall(r"`((?:\w+/)+\w+\.py)", page.read_text()))
    assert [each for each in named if not any((root / each).is_file() for root in SOURCES)] == []


def test_all_pages_have_their_links_followed() -> None:
    folders = {str(page.parent.relative_to(ROOT)) for page in MARKDOWN.values()}
    assert {".", "bench", "docker", "docs", "docs/decisions", "docs/guide", "docs/operations"} <= folders
    assert PAGES.items() <= MARKDOWN.items()


def test_the_room_that_a_dead_letter_needs_is_as_it_is() -> None:
    (said,) = re.findall(
        r"([\d,]+) bytes more, or for an envelope a third and ([\d,]+) bytes more",
        " ".join((GUIDE / "faults.md").read_text().split()),
    )
    assert said == (f"{STORY_BYTES['raw']:,}", f"{STORY_BYTES['envelope']:,}")


@pytest.mark.parametrize(
    ("page", "said"),
    [
        *((page, said.format(*numbers)) for page, said, numbers in NUMBERS),
        *((page, said.format(WORDS[number])) for page, said, number in IN_WORDS),
    ],
)
def test_the_numbers_of_the_guide_are_as_they_are(page: str, said: str) -> None:
    assert said in " ".join((GUIDE / page).read_text().split())


def test_the_guide_is_linked_from_the_readme() -> None:
    linked = {page.resolve() for page, _ in links(README)}
    assert {page for page in PAGES.values() if page != README} <= linked


@each_page
def test_lines_are_short(name: str) -> None:
    lines = PAGES[name].read_text().splitlines()
    assert [line for line in lines if len(line) > 120 and not line.startswith("|")] == []


def test_no_cell_of_a_table_is_an_essay() -> None:
    cells = [cell for page in PAGES.values() if page != README for row in rows(page.read_text()) for cell in row]
    assert max(len(cell.split()) for cell in cells) <= 40
