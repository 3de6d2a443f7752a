"""The setting of kpipe that lets the records of one partition overtake each other."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_kpipe.contract.pipeline.scaling import PartitionScaling
from bench.work import Work


def relaxed(work: Work, in_flight: int) -> Work:
    """Make the same work in relaxed mode, without the peers.

    Records in flight are for segments that wait. Segments that take a core gain by the pieces of the long partition:
    threads that want the same core would only take turns.
    """
    scaling = PartitionScaling(execution_mode="relax_ordering_within_partition", max_in_flight_per_partition=in_flight)
    return replace(
        work,
        name=f"{work.name}, relaxed",
        about=f"{work.about}, in relaxed mode",
        warm=tuple(name for name in work.warm if name.startswith("kpipe")),
        pipeline={**work.pipeline, "partitions": scaling},
    )
