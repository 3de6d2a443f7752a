"""The work of json.py by a segment that gets a context and a retry policy, and needs neither."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_kpipe.contract.pipeline.policies import RetryPolicy
from bench.contestants.kpipe import EXACTLY_ONCE
from bench.works.json import JSON

UNUSED = replace(
    JSON,
    name="unused",
    about="the work of json, with a context and a retry policy that are not used",
    warm=(EXACTLY_ONCE,),
    cold=(),
    pipeline={"segments": ["kpipe_segments:Change"], "retry": RetryPolicy.fixed(5, delay_seconds=1.0)},
    quick_records=0,
)
