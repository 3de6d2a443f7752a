from __future__ import annotations

from pathlib import Path

from airflow_provider_kpipe.sandbox.server_properties import NODE_ID, server_properties, to_text


def test_the_node_listens_on_loopback_alone() -> None:
    made = server_properties(Path("/data"), 1111, 2222, {})
    assert made["listeners"] == "PLAINTEXT://127.0.0.1:1111,CONTROLLER://127.0.0.1:2222"
    assert made["advertised.listeners"] == "PLAINTEXT://127.0.0.1:1111"
    assert made["controller.quorum.voters"] == f"{NODE_ID}@127.0.0.1:2222"
    assert made["log.dirs"] == "/data"


def test_overrides_win_and_the_rest_stays() -> None:
    plain = server_properties(Path("/data"), 1, 2, {})
    made = server_properties(Path("/data"), 1, 2, {"auto.create.topics.enable": "true", "own.setting": "x"})
    assert {name: value for name, value in made.items() if plain.get(name) != value} == {
        "auto.create.topics.enable": "true",
        "own.setting": "x",
    }


def test_a_backslash_is_written_as_java_reads_it() -> None:
    assert to_text({"a": "1", "path": r"C:\data"}) == "a=1\npath=C:\\\\data\n"
