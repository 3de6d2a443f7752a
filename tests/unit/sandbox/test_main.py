"""The command that runs a broker."""

from __future__ import annotations

import argparse

import pytest

from airflow_provider_kpipe.sandbox.__main__ import Topic


@pytest.mark.parametrize(("text", "topic"), [("orders", Topic("orders", 1)), ("orders:4", Topic("orders", 4))])
def test_a_topic_is_named_with_its_partitions(text: str, topic: Topic) -> None:
    assert Topic.from_text(text) == topic


@pytest.mark.parametrize("text", ["", ":4", "orders:", "orders:many", "orders:0", "orders:-1"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="such as orders:4"):
        Topic.from_text(text)
