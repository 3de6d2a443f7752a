"""Kafka's own tools in the terminal."""

from __future__ import annotations

import pytest

from airflow_provider_kpipe.sandbox import tools


def test_a_tool_that_is_not_there_is_refused_with_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert tools.main(["kafka-nonsense"]) == 2
    said = capsys.readouterr().err
    assert "'kafka-nonsense' is none of Kafka's tools here" in said
    assert "kafka-topics" in said
