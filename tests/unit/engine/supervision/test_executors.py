from __future__ import annotations

from collections.abc import Callable

import pytest

from kpipe_engine.supervision import executors
from kpipe_engine.supervision.executors import wait_for_executors
from tests.kit.clock import Clock

BOUND = 30.0


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> Callable[..., float]:
    """How many seconds are waited for executors that come when it is said."""
    clock = Clock()
    monkeypatch.setattr(executors, "time", clock)

    def wait(*coming: float, wanted: int = 0) -> float:
        begun = clock.now
        wait_for_executors(lambda: sum(begun + each <= clock.now for each in coming), wanted, BOUND)
        return clock.now - begun

    return wait


def test_as_many_as_are_wanted_are_waited_for_however_far_apart_they_come(waited: Callable[..., float]) -> None:
    assert waited(0.5, 8.0, 20.0, wanted=3) == pytest.approx(20.0, abs=0.2)


def test_nothing_is_waited_for_when_all_are_there(waited: Callable[..., float]) -> None:
    assert waited(0.0, 0.0, wanted=2) == 0


def test_more_than_are_wanted_are_welcome(waited: Callable[..., float]) -> None:
    assert waited(0.0, 0.0, 0.0, wanted=2) == 0


def test_fewer_than_are_wanted_have_to_do_in_the_end(waited: Callable[..., float]) -> None:
    assert waited(0.5, 8.0, wanted=3) == pytest.approx(BOUND, abs=0.2)


def test_executors_of_unknown_number_are_complete_when_none_follows(
    waited: Callable[..., float],
) -> None:
    assert waited(3.0, 3.8, 4.6, 20.0) == pytest.approx(4.6 + executors.SETTLED_SECONDS, abs=0.3)


def test_a_cluster_without_executors_is_not_waited_for_without_an_end(waited: Callable[..., float]) -> None:
    assert waited() == pytest.approx(BOUND, abs=0.2)
