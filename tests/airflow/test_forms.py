"""Forms of which a DAG's author has left fields out, or fixed some: a run's conf cannot bring them back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_kpipe.sandbox import SandboxBroker
from demo.airflow_api import AirflowApiError
from demo.airflow_server import SandboxAirflow
from tests.kit.pipelines import Bench
from tests.kit.topics import fill, numbered

RUN_SECONDS = 120
DAG_OF = """
from airflow.sdk import DAG
from airflow_provider_kpipe import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.operators.backfill_plan import KpipeBackfillPlanOperator, backfill_params

form = backfill_params(fixed={{"max_records": 3}})
del form["publish"]
with DAG({name!r}, schedule=None, params=form):
    KpipeBackfillPlanOperator(
        task_id="plan", pipeline=KafkaPipeline({name!r}, KafkaSource({topic!r}), KafkaDestination({output!r}))
    )
"""


@pytest.fixture(scope="module")
def dag_id(broker: SandboxBroker, add_dag: Callable[[str, str], None]) -> str:
    bench = Bench.make(broker.bootstrap_servers)
    fill(bench.bootstrap, bench.topic, numbered(10))
    name = Path(__file__).stem
    add_dag(name, DAG_OF.format(name=name, topic=bench.topic, output=bench.output))
    return name


def test_a_field_that_was_left_out_is_refused_and_nothing_is_planned(airflow: SandboxAirflow, dag_id: str) -> None:
    run = airflow.api.trigger(dag_id, {"start_offsets": {"0": 0}, "publish": True})
    assert run.wait(RUN_SECONDS) == "failed"
    assert run.tries("plan") == 1
    assert "The field 'publish' is not known. Known are: window_start," in run.log("plan")
    assert run.xcom("plan") is None


@pytest.mark.parametrize("lifted", [None, "", 4, "3"])
def test_a_field_that_is_fixed_cannot_be_lifted(airflow: SandboxAirflow, dag_id: str, lifted: object) -> None:
    with pytest.raises(AirflowApiError, match="3 was expected"):
        airflow.api.trigger(dag_id, {"start_offsets": {"0": 0}, "max_records": lifted})


def test_a_field_that_is_fixed_counts_where_nothing_is_said(airflow: SandboxAirflow, dag_id: str) -> None:
    run = airflow.api.trigger(dag_id, {"start_offsets": {"0": 0}})
    assert run.wait(RUN_SECONDS) == "success", run.log("plan")
    (planned,) = run.xcom("plan")["ranges"]
    assert (planned["start"], planned["end"]) == (0, 3)
