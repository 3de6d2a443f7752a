from __future__ import annotations

import base64
from pathlib import Path

import pytest

from airflow_provider_kpipe.sandbox import process
from airflow_provider_kpipe.sandbox import storage as module
from airflow_provider_kpipe.sandbox.errors import SandboxError
from airflow_provider_kpipe.sandbox.storage import format_storage, new_cluster_id, read_cluster_id


def test_a_new_cluster_has_an_id_of_its_own_in_kafkas_format() -> None:
    made = [new_cluster_id() for _ in range(50)]
    assert len(set(made)) == 50
    assert {len(base64.urlsafe_b64decode(f"{each}==")) for each in made} == {16}
    assert {len(each) for each in made} == {22}


def test_the_id_of_a_formatted_folder_is_read(tmp_path: Path) -> None:
    identity = tmp_path / "meta.properties"
    identity.write_text("#\nnode.id=1\ncluster.id=kU3OEVBNTcwNTJENDM2Qg\nversion=1\n")
    assert read_cluster_id(identity) == "kU3OEVBNTcwNTJENDM2Qg"


def test_a_folder_without_an_id_is_damaged(tmp_path: Path) -> None:
    identity = tmp_path / "meta.properties"
    identity.write_text("node.id=1\n")
    with pytest.raises(SandboxError, match=r"meta\.properties has no cluster\.id: the folder is damaged"):
        read_cluster_id(identity)


def test_kafkas_own_tool_formats_and_its_refusal_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    outcomes = [(0, ""), (2, "Invalid value many for num.partitions")]

    def run(command: list[str], *, folder: Path, timeout: float) -> tuple[int, str]:
        commands.append(command)
        return outcomes.pop(0)

    monkeypatch.setattr(process, "run", run)
    monkeypatch.setattr(module, "new_cluster_id", lambda: "-dash")
    settings = tmp_path / "server.properties"
    format_storage(Path("java"), [Path("a.jar")], settings)
    assert commands[0][-5:] == ["kafka.tools.StorageTool", "format", "--cluster-id=-dash", "--config", str(settings)]
    with pytest.raises(SandboxError, match=r"(?s)exit code 2.*check the broker's overrides.*num\.partitions"):
        format_storage(Path("java"), [Path("a.jar")], settings)
