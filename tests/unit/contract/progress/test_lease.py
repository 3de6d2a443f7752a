from __future__ import annotations

from airflow_provider_kpipe.contract.progress.lease import Lease

EARLY, LATE = 7, 8


def test_the_later_plan_wins_then_the_later_attempt_then_the_later_task() -> None:
    leases = [Lease(EARLY, 1, 9), Lease(EARLY, 2, 0), Lease(EARLY, 2, 1), Lease(LATE, 1, 0)]
    assert sorted([leases[2], leases[0], leases[3], leases[1]]) == leases
