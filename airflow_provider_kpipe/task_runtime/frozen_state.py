"""A task's decisions and results over retries: the first try decides, and completed work stays completed."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from airflow.sdk import NEVER_EXPIRE  # type: ignore[attr-defined]  # Airflow's stub has forgotten it

from airflow_provider_kpipe.contract.documents import Document, encode

if TYPE_CHECKING:
    from airflow.sdk import Context

T = TypeVar("T", bound=Document)

log = logging.getLogger(__name__)


def frozen(context: Context, key: str, kind: type[T], make: Callable[[], T]) -> T:
    """Return the same document on each try of a DAG run: make it once, and keep it in the task state.

    Unlike XCom, the task state outlives a retry and a clear. If Airflow's `[state_store] clear_on_success` is on, it is
    lost when a task that has succeeded is cleared.
    """
    store = context.get("task_state_store")
    document = store.get(key, default=None) if store is not None else None
    if document is not None:
        log.info("This DAG run has its %s already, from an earlier try", kind.__name__)
        return kind.from_json(document)
    made = make()
    if store is not None:
        # By default, Airflow deletes the state after a month, and a user may clear an older DAG run.
        store.set(key, made.to_json(), retention=NEVER_EXPIRE)
    return made


def recorded(context: Context, key: str, of: Document) -> dict[str, Any] | None:
    """Return the result of an earlier try that completed this very plan or order; None if there is none."""
    store = context.get("task_state_store")
    found = store.get(key, default=None) if store is not None else None
    if not isinstance(found, dict) or found.get("of") != _mark(of):
        return None
    log.info("An earlier try has completed this already: nothing is done again, and its result is returned")
    return cast("dict[str, Any]", found["result"])


def record(context: Context, key: str, of: Document, result: dict[str, Any]) -> None:
    """Keep the result of a try that completed the plan or order: later runs overwrite its traces in Kafka."""
    store = context.get("task_state_store")
    if store is not None:
        store.set(key, {"of": _mark(of), "result": result}, retention=NEVER_EXPIRE)


def _mark(document: Document) -> str:
    # The hash leaves out the version that wrote the document: its content is the same in the next version.
    return hashlib.sha256(json.dumps(encode(document), sort_keys=True).encode()).hexdigest()
