"""The tasks as a user of kpipe writes them."""

from __future__ import annotations

from typing import Any

import per_record

from airflow_provider_kpipe import batch_segment


def change(record: Any) -> Any:
    record.value = per_record.change(record.value)
    return record


class Change:
    """The same task as a class that gets a context, and never uses it."""

    def open(self, context: Any) -> None:
        self.context = context

    def process(self, record: Any) -> Any:
        record.value = per_record.change(record.value)
        return record


def keep(record: Any) -> Any:
    return record if per_record.keep(record.value) is not None else None


def burn(record: Any) -> Any:
    record.value = per_record.burn(record.value)
    return record


def wait(record: Any) -> Any:
    record.value = per_record.wait(record.value)
    return record


@batch_segment
def change_batch(batch: Any) -> Any:
    # Only this segment needs Arrow: the others run without it.
    from arrow_kernels import change

    return batch.set_column(batch.schema.get_field_index("value"), "value", change(batch["value"]))
