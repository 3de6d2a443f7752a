"""One spark-submit, from a private folder, that does not outlive the task that started it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException

from airflow_provider_kpipe.contract.job import TASK_GRACES, Job, KafkaSettings
from airflow_provider_kpipe.contract.job_file import write_job
from airflow_provider_kpipe.exceptions import ConnectionSettingsError, OverdueJobError
from airflow_provider_kpipe.spark.application import application_file, ship, write_engine_archive
from airflow_provider_kpipe.spark.environment import submit_environment
from airflow_provider_kpipe.spark.private_folder import PrivateFolder
from airflow_provider_kpipe.spark.properties import spark_properties, write_properties
from airflow_provider_kpipe.spark.submit_options import check_submit_options

_LAUNCHER = Path(__file__).parent.with_name("die_with_parent.py")


class KpipeSubmitHook(SparkSubmitHook):
    """The Spark provider's hook, which also keeps the cluster's defaults beside kpipe's properties file."""

    def __init__(self, conn_id: str, **options: Any) -> None:
        try:
            # If the connection is missing, the provider's hook would only log it, and use YARN.
            connection = self.get_connection(conn_id)
        except AirflowNotFoundException as error:
            raise ConnectionSettingsError(
                f"there is no Airflow connection {conn_id!r}: create it (type spark, with the master, such as local[2] "
                "or spark://host:7077, as its host), or give the run task another conn_id"
            ) from error
        if str(connection.host).startswith("k8s://"):
            _check_kubernetes(conn_id)
        super().__init__(conn_id=conn_id, **options)
        if self._connection["deploy_mode"] == "cluster":
            # The file with the driver's job is on this machine only, and a driver on another machine would outlive a
            # task that is killed outright.
            raise ConnectionSettingsError(
                f"the Spark connection {conn_id!r} or submit_options says deploy mode 'cluster', and kpipe's driver "
                "runs beside its Airflow task: remove it, or say 'client'"
            )

    @property
    def master(self) -> str:
        return str(self._connection["master"])

    def _get_spark_binary_path(self) -> list[str]:
        # A task that is killed outright runs no handler: without this, its job would run on beside the next try.
        launcher = [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid())]
        return [*launcher, *super()._get_spark_binary_path()]

    def _build_spark_common_args(self) -> list[str]:
        # Without this, spark-submit reads the properties file instead of spark-defaults.conf, not above it.
        return [*super()._build_spark_common_args(), "--load-spark-defaults"]


class Submission:
    """A context manager: after the block, its private folder is removed, and a job that still runs is killed."""

    def __init__(
        self,
        job: Job,
        kafka: KafkaSettings,
        *,
        conn_id: str,
        name: str,
        spark_conf: Mapping[str, str],
        py_files: Sequence[str],
        submit_options: Mapping[str, Any],
    ) -> None:
        check_submit_options(submit_options)
        self._job, self._kafka = job, kafka
        self._conn_id, self._name = conn_id, name
        self._spark_conf, self._py_files = spark_conf, py_files
        # The provider's hook would add Airflow's whole environment to the variables of the user.
        self._variables = dict(submit_options.get("env_vars") or {})
        self._submit_options = {name: value for name, value in submit_options.items() if name != "env_vars"}
        self._hook: KpipeSubmitHook | None = None
        self._private_folder = PrivateFolder()

    def __enter__(self) -> Self:
        self._folder = self._private_folder.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.kill()
        self._private_folder.__exit__(kind, error, trace)

    def run(self) -> None:
        """Submit and wait; the hook raises if Spark fails."""
        master = KpipeSubmitHook(conn_id=self._conn_id).master
        properties = str(
            write_properties(self._folder / "kpipe.properties", spark_properties(master, self._spark_conf))
        )
        archive = write_engine_archive(self._folder / "kpipe_engine.zip")
        self._hook = KpipeSubmitHook(
            conn_id=self._conn_id,
            name=self._name,
            properties_file=properties,
            py_files=",".join([str(archive), *ship(self._py_files, self._folder)]),
            # The driver removes both files: a task that is killed outright cleans up nothing.
            application_args=[str(write_job(self._folder / "kpipe.job", self._job, self._kafka)), properties],
            **self._submit_options,
        )
        with self._ending_when_overdue():
            self._hook.submit(
                str(application_file()),
                env={**submit_environment(os.environ, master, self._folder), **self._variables},
                # Signals to the task's process group do not reach the job: `kill` decides its end.
                start_new_session=True,
            )

    @contextlib.contextmanager
    def _ending_when_overdue(self) -> Iterator[None]:
        """Kill a driver that is overdue. Normally it ends by itself before."""
        if self._job.deadline is None:
            yield
            return
        ended = threading.Event()

        def end() -> None:
            ended.set()
            self.kill()

        timer = threading.Timer(self._job.overdue_after(TASK_GRACES) - time.time(), end)
        timer.start()
        try:
            yield
        except AirflowException as failure:
            if ended.is_set():
                late = TASK_GRACES * self._job.grace_seconds
                raise OverdueJobError(
                    f"Spark's driver had not come to its end {late:.0f} s after max_run_time, and was killed: look at "
                    "its log above, and at the executors'"
                ) from failure
            raise
        finally:
            timer.cancel()

    @property
    def is_running(self) -> bool:
        process = self._hook._submit_sp if self._hook else None
        return process is not None and process.poll() is None

    def kill(self) -> None:
        """End the job, wherever it runs."""
        if self._hook is None:
            return
        process = self._hook._submit_sp
        self._hook.on_kill()
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _check_kubernetes(conn_id: str) -> None:
    try:
        # The Spark provider's hook needs it, without naming it in an error.
        from airflow.providers.cncf.kubernetes import kube_client  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as error:
        raise ConnectionSettingsError(
            f"the Spark connection {conn_id!r} has a k8s:// master, which needs more of Airflow: "
            "pip install apache-airflow-providers-cncf-kubernetes"
        ) from error
