"""Options that are one of a few words."""

from __future__ import annotations

from typing import Any, get_args


def check_choice(name: str, value: Any, choices: Any, refusal: type[ValueError]) -> None:
    """Raise `refusal` for a value that is none of the choices.

    :param choices: the `Literal` that lists them
    """
    if value not in get_args(choices):
        raise refusal(f"{name}={value!r}: use one of {', '.join(map(repr, get_args(choices)))}")
