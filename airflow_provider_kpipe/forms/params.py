"""What a person filled in when starting a DAG run, and what the author of the DAG lets them fill in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from airflow.sdk import Param

from airflow_provider_kpipe.forms.fields import FormError, refuse_unknown

_VALUES = (str, int, float, list, dict)


def filled_in(params: Mapping[str, Any], declared: Collection[str], fields: tuple[str, ...]) -> dict[str, Any]:
    """The fields of a form among the params of a run; the DAG may have declared others, and fewer of ours."""
    known = [name for name in fields if name in declared]
    # Airflow adds whatever the run's conf holds; the operator's own params are those that were declared.
    undeclared = sorted(set(params) - set(declared))
    if undeclared:
        raise FormError(
            f"The field {undeclared[0]!r} is not known. Known are: {', '.join(known) or 'none'}. "
            "The params of the DAG declare them."
        )
    return {name: params[name] for name in known if name in params}


def start_of_form(params: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    """What the params of a DAG say before anyone fills them in; one without a default says nothing."""
    start = {name: param.value for name, param in params.items() if name in fields}
    # Where there is no default, Airflow has a mark of its own in its place.
    return {name: value for name, value in start.items() if value is None or isinstance(value, _VALUES)}


def with_fixed(form: dict[str, Param], fixed: Mapping[str, Any] | None) -> dict[str, Param]:
    """The form with fields that nobody can change: Airflow hides each, and refuses a run that says something else."""
    if fixed is not None and not isinstance(fixed, Mapping):
        raise FormError(f"fixed={fixed!r}: use a dictionary of fields and their values, such as {{'dry_run': True}}.")
    refuse_unknown(fixed or {}, tuple(form))
    return {**form, **{name: _fixed(form[name], value) for name, value in (fixed or {}).items()}}


def _fixed(param: Param, value: Any) -> Param:
    made = Param(value, description=param.description, **{**param.schema, "const": value})
    made.resolve()
    return made
