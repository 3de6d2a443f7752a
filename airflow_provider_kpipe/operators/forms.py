"""What a person filled in when starting a DAG run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from airflow_provider_kpipe.contract.form_fields import refuse_unknown


def filled_in(params: Mapping[str, Any], declared: Collection[str], fields: tuple[str, ...]) -> dict[str, Any]:
    """The fields of a form among the params of a run; the DAG may have declared others."""
    # Airflow adds whatever the run's conf holds; the operator's own params are those that were declared.
    refuse_unknown({name: value for name, value in params.items() if name not in declared}, fields)
    return {name: params[name] for name in fields if name in params}
