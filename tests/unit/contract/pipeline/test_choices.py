from __future__ import annotations

from typing import Any, Literal

import pytest

from airflow_provider_kpipe.contract.pipeline.choices import check_choice


class NoSuchColourError(ValueError):
    pass


@pytest.mark.parametrize("value", ["blue", "", None, ["red"]], ids=repr)
def test_what_is_not_among_the_choices_is_refused_and_they_are_named(value: Any) -> None:
    with pytest.raises(NoSuchColourError) as refused:
        check_choice("colour", value, Literal["red", "green"], NoSuchColourError)
    assert str(refused.value) == f"colour={value!r}: use one of 'red', 'green'"


def test_what_is_among_them_is_taken() -> None:
    check_choice("colour", "green", Literal["red", "green"], NoSuchColourError)
