"""What `per_record.change` does, for a whole column at once and without a Python object for any record."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from per_record import TAX_PERCENT

_BEFORE, _BEHIND = '"amount": ', ", "


def change(values: pa.Array) -> pa.Array:
    """Raises if there is a value that it cannot take apart."""
    orders = values.cast(pa.string())
    if not pc.all(pc.ends_with(orders, "}")).as_py():
        raise ValueError("not every value is an order to its end")
    head, rest = _parted(orders, _BEFORE)
    amount, tail = _parted(rest, _BEHIND)
    amount = pc.multiply(amount.cast(pa.int64()), TAX_PERCENT).cast(pa.string())
    return pc.binary_join_element_wise(head, _BEFORE, amount, _BEHIND, tail, "").cast(pa.binary())


def _parted(values: pa.Array, mark: str) -> tuple[pa.Array, pa.Array]:
    """What stands before the mark and behind it: quicker than a regular expression by far."""
    parts = pc.split_pattern(values, mark, max_splits=1)
    if pc.any(pc.less(pc.list_value_length(parts), 2)).as_py():
        raise ValueError(f"{mark!r} is not in every value")
    return pc.list_element(parts, 0), pc.list_element(parts, 1)
