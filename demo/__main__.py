"""`python -m demo`: a real Kafka, Airflow and Spark, and the orders pipeline on them."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.sandbox.broker import SandboxBroker
from airflow_provider_kpipe.sandbox.errors import SandboxError, tail
from demo import orders
from demo.airflow_api import FINISHED, DagRun
from demo.airflow_server import SandboxAirflow
from demo.airflow_settings import LOCAL_SPARK, kafka_connection
from demo.outputs import read_back
from demo.progress import Stage
from demo.report import differences, table, verdict

DAGS = Path(__file__).parents[1] / "dags"
DAG_ID, BACKFILL_DAG_ID = "kpipe_orders", "kpipe_orders_backfill"
PIPELINE = "orders"
RUN_SECONDS = 300.0
LOOK_SECONDS = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return 0 if every number is as seeded."""
    parser = argparse.ArgumentParser(
        prog="python -m demo",
        description="Start Kafka and Airflow here, run the orders pipeline on Spark, and check every number.",
    )
    parser.add_argument("--once", action="store_true", help="end after the report, with exit code 1 if a number is off")
    options = parser.parse_args(arguments)

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    stage = Stage(sys.stdout)
    try:
        with tempfile.TemporaryDirectory(prefix="kpipe-demo-") as folder:
            return _demo(stage, Path(folder), once=options.once)
    except KeyboardInterrupt:
        return 130
    except SandboxError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _demo(stage: Stage, folder: Path, *, once: bool) -> int:
    broker = SandboxBroker(folder / "kafka")
    airflow = SandboxAirflow(
        DAGS,
        connections={"spark_default": LOCAL_SPARK},
        wait_for=(DAG_ID, BACKFILL_DAG_ID),
        home=folder / "airflow",
    )
    with ExitStack() as stack:
        stack.callback(broker.stop)
        stack.callback(airflow.stop)
        seeds = _bring_up(stage, broker, airflow)
        run = airflow.api.trigger(DAG_ID, run_id="demo")
        stage.say(f"DAG {DAG_ID} is triggered: {run.page}")
        state = _follow(stage, run, broker.bootstrap_servers)
        stage.say(f"the DAG run has ended: {state}. Reading what it left in Kafka")
        if state != "success":
            _show_failures(stage, run)
        outcome = read_back(broker.bootstrap_servers, PIPELINE, state, run.xcom(f"{PIPELINE}.checkpoint", "checkpoint"))
        stage.show(table(outcome))
        stage.show(verdict(seeds, outcome))
        if not once:
            _keep_up(stage, broker, run)
        stage.say("stopping Airflow and Kafka")
    stage.say("everything is stopped and removed")
    return 1 if differences(seeds, outcome) else 0


def _bring_up(stage: Stage, broker: SandboxBroker, airflow: SandboxAirflow) -> tuple[orders.PartitionSeed, ...]:
    """Start both; Airflow takes longest, so Kafka is started and filled meanwhile."""
    stage.say("starting Airflow and Kafka")
    airflow.launch()
    broker.start()
    stage.say(f"Kafka is up at {broker.bootstrap_servers}")
    orders.create_order_topics(broker.bootstrap_servers)
    seeds = orders.seed(broker.bootstrap_servers)
    stage.say(
        f"{sum(each.records for each in seeds):,} orders are in topic {orders.TOPIC!r}, "
        f"{sum(each.poison for each in seeds):,} of them poison"
    )
    airflow.wait_until_ready()
    airflow.api.add_connection("kafka_default", kafka_connection(broker.bootstrap_servers))
    stage.say(f"Airflow is up at {airflow.url}")
    return seeds


def _follow(stage: Stage, run: DagRun, bootstrap_servers: str) -> str:
    """Print the progress until the run has ended; return its final state."""
    deadline = time.monotonic() + RUN_SECONDS
    plan: Plan | None = None
    before: dict[str, str | None] = {}
    with Positions({"bootstrap.servers": bootstrap_servers}) as positions:
        while (state := run.state()) not in FINISHED:
            if time.monotonic() > deadline:
                raise SandboxError(f"the DAG run is still {state!r} after {RUN_SECONDS:.0f} s: see {run.page}")
            states = run.task_states()
            for task_id, task_state in states.items():
                if task_state not in (before.get(task_id), None, "scheduled", "queued"):
                    stage.say(f"task {task_id}: {task_state}")
            before = states
            if plan is None and states.get(f"{PIPELINE}.plan") == "success":
                plan = Plan.from_json(run.xcom(f"{PIPELINE}.plan"))
            if plan is not None and states.get(f"{PIPELINE}.run") == "running":
                stage.progress(positions.progress(plan))
            time.sleep(LOOK_SECONDS)
        if plan is not None:
            stage.progress(positions.progress(plan))
    return state


def _show_failures(stage: Stage, run: DagRun) -> None:
    for task_id, state in run.task_states().items():
        if state == "failed":
            stage.show(f"the end of the log of {task_id}:\n{tail(run.log(task_id))}")


def _keep_up(stage: Stage, broker: SandboxBroker, run: DagRun) -> None:
    noon, one = "2026-01-01T12:00:00+00:00", "2026-01-01T13:00:00+00:00"
    stage.show(
        f"Airflow        {run.page}\n"
        f"Kafka          {broker.bootstrap_servers} (topics {orders.TOPIC}, {orders.ENRICHED}, {orders.DEAD}; "
        f"group {PIPELINE})\n\n"
        f"Try next: {run.api.url}/dags/{BACKFILL_DAG_ID}, Trigger, From {noon}, Until {one}:\n"
        f"an hour of orders again, under a group of its own; tick 'Only plan' to see what it would read.\n\n"
        "Ctrl-C stops everything."
    )
    try:
        broker.wait()
    except KeyboardInterrupt:
        stage.show("")


if __name__ == "__main__":
    sys.exit(main())
