"""What the README shows is there: its code parses, its names resolve, its arguments are taken."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import airflow_provider_kpipe
from airflow_provider_kpipe.operators.redrive import KpipeRedriveOperator, redrive_params
from airflow_provider_kpipe.sensors.partitions_drained import KpipePartitionsDrainedSensor
from airflow_provider_kpipe.task_group import kpipe_task_group

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
OURS: dict[str, Callable[..., Any]] = {
    "KafkaPipeline": airflow_provider_kpipe.KafkaPipeline,
    "KafkaSource": airflow_provider_kpipe.KafkaSource,
    "KafkaDestination": airflow_provider_kpipe.KafkaDestination,
    "KafkaDeadLetter": airflow_provider_kpipe.KafkaDeadLetter,
    "PartitionScaling": airflow_provider_kpipe.PartitionScaling,
    "RetryPolicy.exponential": airflow_provider_kpipe.RetryPolicy.exponential,
    "RetryPolicy.fixed": airflow_provider_kpipe.RetryPolicy.fixed,
    "KpipePartitionsDrainedSensor": KpipePartitionsDrainedSensor,
    "kpipe_task_group": kpipe_task_group,
    "KpipeRedriveOperator": KpipeRedriveOperator,
    "redrive_params": redrive_params,
}


def calls(block: str) -> list[tuple[str, set[str]]]:
    """Names of ours that are called, and the arguments they are given by name."""
    # An ellipsis among the arguments stands for those that the reader knows.
    tree = ast.parse(re.sub(r"\(\s*\.\.\.,", "(", block))
    found = [(ast.unparse(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [(name, {each.arg for each in node.keywords if each.arg}) for name, node in found if name in OURS]


def test_there_are_blocks_and_they_call_what_is_ours() -> None:
    called = {name for block in BLOCKS for name, _ in calls(block)}
    assert {"KafkaPipeline", "kpipe_task_group", "KpipePartitionsDrainedSensor", "RetryPolicy.exponential"} <= called


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_arguments_in_the_readme_are_taken(block: str) -> None:
    for name, given in calls(block):
        taken = inspect.signature(OURS[name]).parameters
        if not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in taken.values()):
            assert given <= set(taken), name


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_names_in_the_readme_resolve(block: str) -> None:
    for line in re.findall(r"^(from airflow_provider_kpipe\S* import .*)$", block, re.MULTILINE):
        exec(line, {})  # noqa: S102  # our own README


def test_options_named_in_the_text_are_there() -> None:
    for name in re.findall(r"`Kafka(\w+)\(([\w_]+)=", README):
        parameters = inspect.signature(getattr(airflow_provider_kpipe, f"Kafka{name[0]}")).parameters
        assert name[1] in parameters


def test_commands_of_the_readme_are_targets() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`?make ([a-z]+)", README))
    assert {"demo", "test", "bench", "lint"} <= named <= targets


def test_links_of_the_readme_lead_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)", README) if "://" not in link]
    assert len(links) > 5
    assert [link for link in links if not (ROOT / link).exists()] == []
