"""The operator's arguments for spark-submit, checked while the DAG is parsed."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

# Arguments become options of spark-submit, which override the properties file, with the values that kpipe forces.
NOT_SUBMIT_OPTIONS: Mapping[str, str] = {
    "application_args": "remove it, the application is kpipe's own",
    "conf": "put its properties into spark_conf",
    "conn_id": "name the Spark connection by the conn_id of the operator (spark_conn_id of the task group)",
    "name": "remove it, the job is named after its pipeline",
    "properties_file": "put its properties into spark_conf",
    "py_files": "name the modules by py_files of the operator",
}


def check_submit_options(submit_options: Any) -> None:
    if not isinstance(submit_options, Mapping):
        raise ValueError(f"submit_options={submit_options!r}: use a dictionary, such as {{'executor_memory': '2g'}}")
    for name, instead in NOT_SUBMIT_OPTIONS.items():
        if name in submit_options:
            raise ValueError(f"submit_options sets {name!r}, which kpipe sets itself: {instead}")
    taken = inspect.signature(SparkSubmitHook).parameters
    known = taken.keys() - NOT_SUBMIT_OPTIONS.keys()
    for name, value in submit_options.items():
        if name not in known:
            raise ValueError(
                f"submit_options sets {name!r}, which the Spark provider's SparkSubmitHook does not take. It takes: "
                f"{', '.join(sorted(known))}"
            )
        _check_value(name, value, str(taken[name].annotation).split(" | "))
    if submit_options.get("deploy_mode") == "cluster":
        raise ValueError(
            "submit_options sets deploy_mode='cluster', and kpipe's driver runs beside its Airflow task: remove it, or "
            "say 'client'"
        )
    if submit_options.get("deploy_mode") not in (None, "client"):
        raise ValueError(
            f"submit_options sets deploy_mode={submit_options['deploy_mode']!r}: use 'client', or remove it"
        )
    variables = submit_options.get("env_vars")
    if variables is not None and not isinstance(variables, Mapping):
        raise ValueError(f"submit_options sets env_vars={variables!r}: use a dictionary of variables and their values")


def _check_value(name: str, value: Any, kinds: Collection[str]) -> None:
    """Refuse a value of another type than the hook's signature names, for its simple types."""
    if value is None:
        return
    if "int" in kinds and not (str(value).isdecimal() and int(value) > 0):
        raise ValueError(f"submit_options sets {name}={value!r}: use a whole number from 1")
    if "str" in kinds and not isinstance(value, str):
        raise ValueError(f"submit_options sets {name}={value!r}: use a text")
    if "bool" in kinds and not isinstance(value, bool):
        raise ValueError(f"submit_options sets {name}={value!r}: use True or False")


def check_py_files(py_files: Any) -> None:
    if not isinstance(py_files, (list, tuple)) or not all(isinstance(each, str) and each for each in py_files):
        raise ValueError(f"py_files={py_files!r}: use a list of paths, each as a text")


def check_conn_id(conn_id: Any) -> None:
    if not isinstance(conn_id, str) or not conn_id.strip():
        raise ValueError(f"conn_id={conn_id!r}: use the name of a Spark connection, as a text")


def check_progress_interval(seconds: Any) -> None:
    if type(seconds) not in (int, float) or seconds <= 0:
        raise ValueError(f"progress_interval={seconds!r}: use seconds above 0")
