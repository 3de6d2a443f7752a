"""The description of this provider that Airflow reads."""

from __future__ import annotations

from typing import Any

import airflow_provider_kpipe


def get_provider_info() -> dict[str, Any]:
    return {
        "package-name": "airflow-provider-kpipe",
        "name": "kpipe",
        "description": "Bounded, exactly-once Kafka-to-Kafka runs on Spark.",
        "versions": [airflow_provider_kpipe.__version__],
        "integrations": [{"integration-name": "kpipe", "tags": ["software"]}],
        "operators": [
            {
                "integration-name": "kpipe",
                "python-modules": [
                    "airflow_provider_kpipe.operators.plan",
                    "airflow_provider_kpipe.operators.backfill_plan",
                    "airflow_provider_kpipe.operators.run",
                    "airflow_provider_kpipe.operators.checkpoint",
                    "airflow_provider_kpipe.operators.redrive",
                ],
            }
        ],
        "sensors": [
            {"integration-name": "kpipe", "python-modules": ["airflow_provider_kpipe.sensors.partitions_drained"]}
        ],
        "hooks": [{"integration-name": "kpipe", "python-modules": ["airflow_provider_kpipe.hooks.kpipe"]}],
        "triggers": [
            {"integration-name": "kpipe", "python-modules": ["airflow_provider_kpipe.triggers.partitions_drained"]}
        ],
    }
