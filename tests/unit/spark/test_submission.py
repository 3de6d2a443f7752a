from __future__ import annotations

import contextlib
import json
import stat
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_kpipe.contract.job import Job, KafkaSettings, unpack
from airflow_provider_kpipe.contract.job_file import take_job
from airflow_provider_kpipe.exceptions import ConnectionSettingsError
from airflow_provider_kpipe.spark.application import application_file
from airflow_provider_kpipe.spark.properties import DEFAULTS, FORCED, LOCAL_DEFAULTS
from airflow_provider_kpipe.spark.submission import KpipeSubmitHook, Submission

HUSH = "hush-hush"
KAFKA = KafkaSettings({"bootstrap.servers": "broker:9092", "sasl.password": HUSH}, {"sasl.password": HUSH})


class FakeProcess:
    """Stands in for spark-submit: notes how it was started, and what its folder held then."""

    started: list[FakeProcess]
    pid = 0

    def __init__(self, command: list[str], **options: Any) -> None:
        self.command, self.options = command, options
        self.stdout = iter(())
        after = dict(pairwise(command))
        self.properties = Path(after["--properties-file"])
        self.text = self.properties.read_text()
        self.application, self.job_file, *self.removed = map(Path, command[-3:])
        private = (self.properties.parent, self.properties, self.job_file)
        self.modes = [stat.S_IMODE(path.stat().st_mode) for path in private]
        self.job, self.settings = map(unpack, take_job(self.job_file))
        self.shipped = [Path(each) for each in after["--py-files"].split(",")]
        self.there = [path.is_file() for path in self.shipped]
        self.started.append(self)

    def wait(self) -> int:
        return 0

    def poll(self) -> int:
        return 0


OPTIONS: dict[str, Any] = {
    "conn_id": "spark_default",
    "name": "x",
    "spark_conf": {},
    "py_files": [],
    "submit_options": {},
}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[FakeProcess]:
    monkeypatch.setattr(FakeProcess, "started", [], raising=False)
    monkeypatch.setattr(subprocess, "Popen", FakeProcess)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[2]"}')
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", f'{{"conn_type": "kafka", "password": "{HUSH}"}}')
    return FakeProcess.started


Submit = Callable[..., FakeProcess]


@pytest.fixture
def submit(job: Job, started: list[FakeProcess]) -> Submit:
    def run(**submit_options: Any) -> FakeProcess:
        own = {"name": "kpipe orders", "spark_conf": {"spark.hadoop.key": HUSH}, "submit_options": submit_options}
        with Submission(job, KAFKA, **{**OPTIONS, **own}) as submission:
            submission.run()
        return started[-1]

    return run


def test_the_clusters_defaults_count_beside_the_properties(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_OTHER", '{"conn_type": "spark", "host": "spark://host", "port": 7077}')
    hook = KpipeSubmitHook(conn_id="spark_other", properties_file="/private/kpipe.properties")
    command = hook._build_spark_submit_command("/app/kpipe_run.py")
    assert hook.master == "spark://host:7077"
    assert "--load-spark-defaults" in command
    assert command.index("--load-spark-defaults") < command.index("/app/kpipe_run.py")
    assert command[command.index("--properties-file") + 1] == "/private/kpipe.properties"


@pytest.mark.parametrize(
    ("extra", "options"),
    [({"deploy-mode": "cluster"}, {}), ({}, {"deploy_mode": "cluster"})],
    ids=["connection", "task"],
)
def test_a_driver_on_the_cluster_is_refused(
    monkeypatch: pytest.MonkeyPatch, extra: dict[str, str], options: dict[str, str]
) -> None:
    connection = {"conn_type": "spark", "host": "yarn", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_OTHER", json.dumps(connection))
    with pytest.raises(ConnectionSettingsError, match="'spark_other' or submit_options says deploy mode 'cluster'"):
        KpipeSubmitHook(conn_id="spark_other", **options)


def test_the_error_names_the_provider_that_kubernetes_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_OTHER", '{"conn_type": "spark", "host": "k8s://https://host"}')
    monkeypatch.setitem(sys.modules, "airflow.providers.cncf.kubernetes", None)
    with pytest.raises(
        ConnectionSettingsError, match=r"k8s:// master.*pip install apache-airflow-providers-cncf-kubernetes"
    ):
        KpipeSubmitHook(conn_id="spark_other")


def test_no_secret_shows_in_the_arguments_or_the_environment(submit: Submit) -> None:
    process = submit()
    assert [part for part in process.command if HUSH in part] == []
    assert [name for name, value in process.options["env"].items() if HUSH in value or name.startswith("AIRFLOW")] == []


def test_kafkas_settings_are_no_properties_of_spark(submit: Submit) -> None:
    names = {line.partition("=")[0] for line in submit().text.splitlines()}
    assert names == {*DEFAULTS, *LOCAL_DEFAULTS, *FORCED, "spark.hadoop.key"}


def test_variables_of_the_users_are_added_and_airflows_stay_with_airflow(submit: Submit) -> None:
    environment = submit(env_vars={"MY_SETTING": "x"}).options["env"]
    assert environment["MY_SETTING"] == "x"
    assert [name for name, value in environment.items() if HUSH in value or name.startswith("AIRFLOW")] == []


def test_a_job_is_submitted_with_its_private_folder(job: Job, submit: Submit) -> None:
    process = submit()
    assert "spark-submit" in process.command
    assert process.application == application_file()
    assert process.modes == [0o700, 0o600, 0o600]
    assert process.job_file.parent == process.properties.parent
    assert Job.from_json(process.job) == job
    assert KafkaSettings.from_json(process.settings) == KAFKA
    assert process.removed == [process.properties]
    assert [path.name for path in process.shipped] == ["kpipe_engine.zip"]
    assert process.there == [True]


def test_the_options_of_the_user_reach_the_hook(submit: Submit) -> None:
    command = submit(executor_memory="2g", num_executors=3).command
    assert command[command.index("--executor-memory") + 1] == "2g"
    assert command[command.index("--num-executors") + 1] == "3"


def test_nothing_is_left_behind(submit: Submit) -> None:
    assert not submit().properties.parent.exists()


def test_nothing_is_left_behind_after_an_error(job: Job) -> None:
    submission = Submission(job, KAFKA, **OPTIONS)
    with contextlib.suppress(RuntimeError), submission:
        folder = submission._folder
        assert folder.is_dir()
        raise RuntimeError
    assert not folder.exists()


class Sleeper(subprocess.Popen[str]):
    """Runs on in place of spark-submit; whoever reads what it says is interrupted, as by the end of the task's time."""

    started: list[Sleeper]

    def __init__(self, command: list[str], **options: Any) -> None:
        forever = [sys.executable, "-c", "import signal; signal.pause()"]
        super().__init__(forever, start_new_session=options["start_new_session"])
        self.stdout = self.interrupted()
        self.started.append(self)

    @staticmethod
    def interrupted() -> Any:
        raise TimeoutError("the task's time is up")
        yield


def test_a_task_that_fails_takes_its_job_with_it(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[2]"}')
    monkeypatch.setattr(Sleeper, "started", [], raising=False)
    monkeypatch.setattr(subprocess, "Popen", Sleeper)
    with pytest.raises(TimeoutError), Submission(job, KAFKA, **OPTIONS) as submission:
        submission.run()
    (process,) = Sleeper.started
    was_running = process.poll() is None
    process.kill()
    process.wait()
    assert not was_running


def test_the_secrets_of_a_submission_that_was_killed_are_gone_when_the_next_one_starts(
    submit: Submit, temp_folder: Path
) -> None:
    abandoned = temp_folder / "kpipe-run-killed"
    abandoned.mkdir()
    for name in ("lock", "kpipe.properties", "kpipe.job"):
        (abandoned / name).touch()
    submit()
    assert list(temp_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("application_args", ["mine"], "remove it"),
        ("conf", {"spark.speculation": "true"}, "spark_conf"),
        ("conn_id", "spark_other", "conn_id of the operator"),
        ("name", "mine", "remove it"),
        ("properties_file", "my.properties", "spark_conf"),
        ("py_files", "segments.py", "py_files of the operator"),
    ],
)
def test_an_option_that_goes_past_kpipes_own_is_refused_before_anything_starts(
    submit: Submit, started: list[FakeProcess], temp_folder: Path, name: str, value: Any, instead: str
) -> None:
    with pytest.raises(ValueError, match=f"^submit_options sets '{name}', which kpipe sets itself: .*{instead}"):
        submit(**{name: value})
    assert started == []
    assert list(temp_folder.iterdir()) == []


def test_a_job_that_never_started_is_killed_without_ado(job: Job) -> None:
    submission: Any = Submission(job, KAFKA, **OPTIONS)
    assert submission.kill() is None


def test_a_spark_connection_that_is_not_there_is_named_instead_of_going_to_yarn() -> None:
    with pytest.raises(
        ConnectionSettingsError, match=r"no Airflow connection 'no_such_spark': create it .* local\[2\]"
    ):
        KpipeSubmitHook(conn_id="no_such_spark")
