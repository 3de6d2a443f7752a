"""The model of Kafka answers as a real broker does, to random calls. `make conform` makes many more."""

from __future__ import annotations

import warnings

import pytest

from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.simulation.conformance import run, told


@pytest.mark.parametrize("seed", range(503, 507))
def test_random_calls_get_the_answers_of_a_broker(broker: SandboxBroker, seed: int) -> None:
    with warnings.catch_warnings():
        # A producer that was fenced says that it cannot abort as it is closed.
        warnings.simplefilter("ignore", RuntimeWarning)
        answers = run(seed, broker.bootstrap_servers)
    last = answers[-1]
    assert last.is_same or last.reason, f"seed {seed}: {told(answers)}"
