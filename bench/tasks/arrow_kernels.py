"""The task of `per_record.change` for a whole column at once, without a Python object for each record."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from per_record import TAX_PERCENT

_BEFORE, _BEHIND = '"amount": ', ", "


def change(values: pa.Array) -> pa.Array:
    """Change a whole column; raise if it holds a value in another format."""
    orders = values.cast(pa.string())
    if not pc.all(pc.ends_with(orders, "}")).as_py():
        raise ValueError("not every value is an order to its end")
    head, rest = _parted(orders, _BEFORE)
    amount, tail = _parted(rest, _BEHIND)
    amount = pc.multiply(amount.cast(pa.int64()), TAX_PERCENT).cast(pa.string())
    return pc.binary_join_element_wise(head, _BEFORE, amount, _BEHIND, tail, "").cast(pa.binary())


def _parted(values: pa.Array, mark: str) -> tuple[pa.Array, pa.Array]:
    """Split each value at the mark, which is much quicker than with a regular expression."""
    parts = pc.split_pattern(values, mark, max_splits=1)
    if pc.any(pc.less(pc.list_value_length(parts), 2)).as_py():
        raise ValueError(f"{mark!r} is not in every value")
    return pc.list_element(parts, 0), pc.list_element(parts, 1)
