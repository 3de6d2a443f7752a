"""The reference says what is there: every argument with its default, and nothing else."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from docs_kit import REFERENCE, ROOT, own_arguments, rows, sections

import airflow_provider_kpipe
from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.kafka import connection as client_config
from airflow_provider_kpipe.operators.backfill_plan import backfill_params
from airflow_provider_kpipe.operators.checkpoint import KpipeCheckpointOperator
from airflow_provider_kpipe.operators.plan import KpipePlanOperator
from airflow_provider_kpipe.operators.redrive import KpipeRedriveOperator, redrive_params
from airflow_provider_kpipe.operators.run import KpipeRunOperator
from airflow_provider_kpipe.provider_info import get_provider_info
from airflow_provider_kpipe.record import Record, RecordMetadata
from airflow_provider_kpipe.segments import SegmentContext
from airflow_provider_kpipe.sensors.partitions_drained import KpipePartitionsDrainedSensor
from airflow_provider_kpipe.spark import submit_options
from airflow_provider_kpipe.spark.environment import submit_environment
from airflow_provider_kpipe.spark.properties import DEFAULTS, FORCED, LOCAL_DEFAULTS
from airflow_provider_kpipe.task_group import kpipe_backfill_task_group, kpipe_task_group

SECTIONS = sections(REFERENCE)
VALUES: dict[str, type] = {
    "KafkaPipeline": airflow_provider_kpipe.KafkaPipeline,
    "KafkaSource": airflow_provider_kpipe.KafkaSource,
    "KafkaDestination": airflow_provider_kpipe.KafkaDestination,
    "KafkaDeadLetter": airflow_provider_kpipe.KafkaDeadLetter,
    "RetryPolicy": airflow_provider_kpipe.RetryPolicy,
    "PartitionScaling": airflow_provider_kpipe.PartitionScaling,
    "SegmentContext": SegmentContext,
    "Fault": Fault,
    "DeadLetter": airflow_provider_kpipe.DeadLetter,
}
CALLED: dict[str, Callable[..., Any]] = {
    "RetryPolicy.fixed": airflow_provider_kpipe.RetryPolicy.fixed,
    "RetryPolicy.exponential": airflow_provider_kpipe.RetryPolicy.exponential,
    "KpipePlanOperator": KpipePlanOperator,
    "KpipeRunOperator": KpipeRunOperator,
    "KpipeCheckpointOperator": KpipeCheckpointOperator,
    "KpipeRedriveOperator": KpipeRedriveOperator,
    "KpipePartitionsDrainedSensor": KpipePartitionsDrainedSensor,
    "kpipe_task_group": kpipe_task_group,
    "kpipe_backfill_task_group": kpipe_backfill_task_group,
    "batch_segment": airflow_provider_kpipe.batch_segment,
    "read_dead_letter": airflow_provider_kpipe.read_dead_letter,
}
FORMS = {"backfill_params": backfill_params, "redrive_params": redrive_params}
NAMES_ONLY = {"Record", "RecordMetadata"}
NO_ARGUMENTS = {"OtherVersionError", "StopPartitionError"}
EXAMPLES = {
    "batch.*": "batch.size",
    "client.*": "client.id",
    "fetch.*": "fetch.min.bytes",
    "queue.buffering.*": "queue.buffering.max.ms",
    "sasl.*": "sasl.username",
    "socket.*": "socket.timeout.ms",
    "ssl.*": "ssl.ca.location",
}
SETTINGS = {"Kafka settings", "Spark properties", "Environment variables"}


def table(section: str) -> dict[str, str]:
    """The second cell of each row, by the first one."""
    found = [(cells[0].strip("`"), cells[1].strip("`") if len(cells) > 1 else "") for cells in rows(SECTIONS[section])]
    assert len(dict(found)) == len(found)
    return dict(found)


def evaluated(defaults: Mapping[str, str]) -> dict[str, str]:
    """Defaults as Python shows them, however they are written."""
    return {name: text and repr(eval(text, dict(VALUES))) for name, text in defaults.items()}


def fields_of(value: type) -> dict[str, str]:
    return {each.name: _default(each) for each in dataclasses.fields(value) if not each.name.startswith("_")}


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return repr(field.default_factory())
    return "" if field.default is dataclasses.MISSING else repr(field.default)


@pytest.mark.parametrize("name", VALUES)
def test_a_value_has_the_fields_of_its_table(name: str) -> None:
    assert evaluated(table(name)) == fields_of(VALUES[name])


@pytest.mark.parametrize("name", CALLED)
def test_a_callable_takes_the_arguments_of_its_table(name: str) -> None:
    taken = own_arguments(CALLED[name])
    shown = {each: "" if default is inspect.Parameter.empty else repr(default) for each, default in taken.items()}
    assert evaluated(table(name)) == shown


@pytest.mark.parametrize("name", FORMS)
def test_a_form_has_the_fields_of_its_table(name: str) -> None:
    assert evaluated(table(name)) == {field: repr(param.value) for field, param in FORMS[name]().items()}


def test_the_reference_has_all_fields_of_a_form() -> None:
    assert own_arguments(backfill_params) == {"fixed": None}
    starts = own_arguments(redrive_params)
    assert starts.pop("fixed") is None
    assert evaluated(table("redrive_params")).items() >= {name: repr(value) for name, value in starts.items()}.items()
    assert all(f"`{name}={value!r}`".replace("'", '"') in SECTIONS["redrive_params"] for name, value in starts.items())
    assert all("`fixed=" in SECTIONS[form] for form in FORMS)


def test_a_record_has_the_parts_of_its_table() -> None:
    slots = {name for name in Record.__slots__ if not name.startswith("_")}
    properties = {name for name, each in vars(Record).items() if isinstance(each, property)}
    # What stands behind `headers` and `metadata` is the engine's.
    assert table("Record").keys() == (slots | properties) - {"message", "own_headers"}
    assert table("RecordMetadata").keys() == {each.name for each in dataclasses.fields(RecordMetadata)}


def test_nothing_public_is_forgotten() -> None:
    documented = {*VALUES, *CALLED, *FORMS, *NAMES_ONLY, *NO_ARGUMENTS}
    assert SECTIONS.keys() == documented | SETTINGS
    assert set(airflow_provider_kpipe.__all__) - {"__version__"} <= documented


@pytest.mark.parametrize("kind", ["operators", "sensors"])
def test_no_operator_is_forgotten(kind: str) -> None:
    modules = [name for group in get_provider_info()[kind] for name in group["python-modules"]]
    for module in map(importlib.import_module, modules):
        named = {each for each, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
        for each in (name for name in named if name.startswith("Kpipe")):
            assert {f"`{each}`", f"`{module.__name__}`"} <= set(re.findall(r"`[\w.]+`", REFERENCE.read_text()))


def test_kafka_settings_that_the_pipeline_decides() -> None:
    assert table("Kafka settings").keys() == client_config._DECIDED_BY_PIPELINE


def test_kafka_settings_that_are_taken() -> None:
    named = re.findall(r"`([\w.*]+)`", SECTIONS["Kafka settings"].partition("The schema registry")[0])
    given = {EXAMPLES.get(name, name): "1" for name in named}
    taken = client_config.client_settings("kafka", host=None, port=None, login=None, password=None, extra=given)
    assert taken == given


def test_spark_properties() -> None:
    assert table("Spark properties") == {**DEFAULTS, **LOCAL_DEFAULTS, **FORCED}
    local = {cells[0].strip("`") for cells in rows(SECTIONS["Spark properties"]) if "local" in cells[2]}
    assert local == LOCAL_DEFAULTS.keys()
    assert all(f"`{name}`" in SECTIONS["Spark properties"] for name in submit_options.NOT_SUBMIT_OPTIONS)


def test_environment_variables(tmp_path: Path) -> None:
    values = table("Environment variables")
    submitted = {**submit_environment({}, "yarn", tmp_path), **submit_environment({}, "local[2]", tmp_path)}
    read = {
        name
        for file in (ROOT / "airflow_provider_kpipe" / "sandbox").glob("*.py")
        for name in re.findall(r'environ\.get\("(\w+)"', file.read_text())
    }
    assert values.keys() == (submitted.keys() | read) - {"PATH"}
    assert values["SPARK_LAUNCHER_OPTS"] == submitted["SPARK_LAUNCHER_OPTS"]
    assert values["SPARK_LOCAL_IP"] == submitted["SPARK_LOCAL_IP"]
