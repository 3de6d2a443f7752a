"""The consume and the produce operator of Airflow's Kafka provider, one after the other.

It runs in the peers' environment, and calls the operators' own `execute()`.
"""

from __future__ import annotations

import json
import logging
import marshal
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from serve import Run, serve


def keep(between: str, messages: list[Any]) -> None:
    """Write records to a file for the next task, in the quickest format there is."""
    with Path(between).open("ab") as file:
        marshal.dump([(message.key(), message.value()) for message in messages], file)


def kept(between: str) -> Iterator[tuple[bytes, bytes]]:
    with Path(between).open("rb") as file:
        end = os.fstat(file.fileno()).st_size
        while file.tell() < end:
            yield from marshal.load(file)


def refuse_to_lose(error: Any, _message: Any) -> None:
    """Raise on an error. The operator's own callback logs every record, and only logs an error too."""
    if error is not None:
        raise RuntimeError(f"a record did not arrive: {error}")


def open_session() -> Run:
    from airflow.providers.apache.kafka.operators.consume import ConsumeFromTopicOperator
    from airflow.providers.apache.kafka.operators.produce import ProduceToTopicOperator

    # The log of a real task goes to a file; here, a line for each record would take most of the measured time.
    logging.disable(logging.INFO)

    def run(request: dict[str, Any]) -> dict[str, Any]:
        name, between = request["output"].replace("-", "_"), request["between"]
        connection = {"conn_type": "kafka", "extra": request["connection"]}
        os.environ[f"AIRFLOW_CONN_{name.upper()}"] = json.dumps(connection)
        try:
            ConsumeFromTopicOperator(
                task_id="consume",
                kafka_config_id=name,
                topics=[request["source"]],
                apply_function_batch=keep,
                apply_function_args=[between],
                **request["consume"],
            ).execute({})
            ProduceToTopicOperator(
                task_id="produce",
                kafka_config_id=name,
                topic=request["output"],
                producer_function=kept,
                producer_function_args=[between],
                delivery_callback=f"{__name__}.refuse_to_lose",
                **request["produce"],
            ).execute({})
        finally:
            Path(between).unlink(missing_ok=True)
        return {}

    return run


if __name__ == "__main__":
    serve(open_session)
