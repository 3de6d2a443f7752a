from __future__ import annotations

from typing import Any, Literal

import pytest

from airflow_provider_kpipe.contract.pipeline.choices import check_choice


class NoSuchColourError(ValueError):
    pass


@pytest.mark.parametrize("value", ["blue", "", None, ["red"]], ids=repr)
def test_the_error_names_the_choices_for_any_other_value(value: Any) -> None:
    with pytest.raises(NoSuchColourError) as refused:
        check_choice("colour", value, Literal["red", "green"], NoSuchColourError)
    assert str(refused.value) == f"colour={value!r}: use one of 'red', 'green'"


def test_a_value_among_the_choices_is_taken() -> None:
    check_choice("colour", "green", Literal["red", "green"], NoSuchColourError)
