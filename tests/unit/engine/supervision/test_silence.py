from __future__ import annotations

import pytest

from airflow_provider_kpipe.contract.job import KafkaSettings
from kpipe_engine.supervision import silence
from kpipe_engine.supervision.silence import silent_clusters

# Nobody listens at either of them.
READ, WRITTEN = {"bootstrap.servers": "127.0.0.1:1"}, {"metadata.broker.list": "127.0.0.1:2"}


def test_each_cluster_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "ASK_SECONDS", 0.1)
    assert silent_clusters(KafkaSettings(READ, WRITTEN)) == ["127.0.0.1:1", "127.0.0.1:2"]
    assert silent_clusters(KafkaSettings(READ, {**READ, "batch.size": "1000"})) == ["127.0.0.1:1"]
