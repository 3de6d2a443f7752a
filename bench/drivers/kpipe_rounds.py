"""A warm kpipe driver: it runs the jobs of kpipe_run.py again and again in one SparkContext."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext
from serve import Run, serve


def open_session() -> Run:
    context = SparkContext()
    # It is one of the py-files, which are on the path only now; the workers import it from there too.
    from kpipe_run import run_job

    def run(request: dict[str, Any]) -> dict[str, Any]:
        run_job(context, request["job"], request["settings"])
        return {}

    return run


if __name__ == "__main__":
    serve(open_session)
