"""A copy against the consume and produce operators of Airflow's Kafka provider: tuned, and as they come."""

from __future__ import annotations

from dataclasses import replace

from bench.contestants.airflow_kafka import AIRFLOW_KAFKA, AIRFLOW_KAFKA_TUNED
from bench.contestants.kpipe import AT_LEAST_ONCE, EXACTLY_ONCE
from bench.work import Records, Work

OPERATORS = Work(
    name="operators",
    about="a copy, against Airflow's Kafka operators",
    records=Records(300_000),
    warm=(EXACTLY_ONCE, AT_LEAST_ONCE, AIRFLOW_KAFKA_TUNED),
)
OPERATORS_AS_THEY_COME = replace(
    OPERATORS,
    name="operators as they come",
    # The operators wait for each record's acknowledgement before they send the next one.
    records=Records(10_000),
    warm=(EXACTLY_ONCE, AT_LEAST_ONCE, AIRFLOW_KAFKA),
)
