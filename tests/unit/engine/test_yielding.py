from __future__ import annotations

import time

from kpipe_engine.yielding import YieldOrders


def test_without_an_order_there_is_no_reason() -> None:
    assert YieldOrders().reason is None
    assert YieldOrders(deadline=time.time() + 3_600).reason is None


def test_a_deadline_that_has_passed_is_a_reason() -> None:
    orders = YieldOrders(deadline=time.time() - 1)
    assert orders.reason == "the run has reached its max_run_time"
    assert orders.given


def test_who_asks_says_why() -> None:
    orders = YieldOrders()
    orders.ask("somebody stopped the task")
    assert (orders.reason, orders.given) == ("somebody stopped the task", True)


def test_nobody_sleeps_through_an_order() -> None:
    orders = YieldOrders()
    orders.ask("enough")
    before = time.monotonic()
    orders.wait(3_600)
    YieldOrders(deadline=time.time() - 1).wait(3_600)
    assert time.monotonic() - before < 3_600
