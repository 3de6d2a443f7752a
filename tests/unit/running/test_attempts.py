from __future__ import annotations

import socket

import pytest

from airflow_provider_kpipe.exceptions import KafkaUnavailableError
from airflow_provider_kpipe.kafka.cluster import Cluster
from airflow_provider_kpipe.running import attempts
from airflow_provider_kpipe.running.attempts import begin_attempt
from tests.kit.plans import plan_of


def test_an_unreachable_cluster_is_named_before_a_number_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        _, port = server.getsockname()
    made = Cluster.__init__
    monkeypatch.setattr(Cluster, "__init__", lambda self, settings, **_: made(self, settings, answer_seconds=1.0))
    drawn: list[object] = []
    monkeypatch.setattr(attempts, "draw_number", lambda *asked, **above: drawn.append(asked))
    with pytest.raises(KafkaUnavailableError, match="about topic"):
        begin_attempt({"bootstrap.servers": f"127.0.0.1:{port}"}, plan_of())
    assert drawn == []
