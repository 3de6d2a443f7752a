"""The params of a DAG run as a user filled them in, and the fields that the author of the DAG offers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from airflow.sdk import Param

from airflow_provider_kpipe.forms.fields import FormError, refuse_unknown

_VALUES = (str, int, float, list, dict)


def filled_in(params: Mapping[str, Any], declared: Collection[str], fields: tuple[str, ...]) -> dict[str, Any]:
    """Return a form's fields among a run's params; the DAG may have declared others, and not all of the form's."""
    known = [name for name in fields if name in declared]
    # Airflow adds everything in the run's conf; the operator's own params are the declared ones.
    undeclared = sorted(set(params) - set(declared))
    if undeclared:
        raise FormError(
            f"The field {undeclared[0]!r} is not known. Known are: {', '.join(known) or 'none'}. "
            "The params of the DAG declare them."
        )
    return {name: params[name] for name in known if name in params}


def start_of_form(params: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    """Return the defaults of a form's params, before a user fills them in; leave out params without a default."""
    start = {name: param.value for name, param in params.items() if name in fields}
    # If there is no default, Airflow has a marker object in its place.
    return {name: value for name, value in start.items() if value is None or isinstance(value, _VALUES)}


def with_fixed(form: dict[str, Param], fixed: Mapping[str, Any] | None) -> dict[str, Param]:
    """Return the form with fields fixed to a value: Airflow hides each, and refuses a run with another value."""
    if fixed is not None and not isinstance(fixed, Mapping):
        raise FormError(f"fixed={fixed!r}: use a dictionary of fields and their values, such as {{'dry_run': True}}.")
    refuse_unknown(fixed or {}, tuple(form))
    return {**form, **{name: _fixed(form[name], value) for name, value in (fixed or {}).items()}}


def _fixed(param: Param, value: Any) -> Param:
    made = Param(value, description=param.description, **{**param.schema, "const": value})
    made.resolve()
    return made
