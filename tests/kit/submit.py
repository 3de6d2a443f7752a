"""Submits one job from a specification on standard input, with the package's own Submission."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from airflow_provider_kpipe.contract.job import Job, KafkaSettings
from airflow_provider_kpipe.spark.submission import Submission

SEGMENTS = Path(__file__).parents[1] / "segments"
PY_FILES = ("deadly_kit.py", "orders_kit.py", "waiting_kit.py", "whereabouts_kit.py")


def main() -> None:
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
    spec = json.load(sys.stdin)
    kafka = KafkaSettings(spec["settings"], spec["settings"], spec["registry"], spec["registry"])
    with Submission(
        Job.from_json(spec["job"]),
        kafka,
        conn_id="spark_test",
        name="kpipe test",
        spark_conf=spec["spark_conf"],
        py_files=[str(SEGMENTS / name) for name in PY_FILES],
        submit_options={},
    ) as submission:
        submission.run()


if __name__ == "__main__":
    main()
