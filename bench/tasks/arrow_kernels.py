"""What `per_record.change` does, for a whole column at once and without a Python object for any record."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from per_record import TAX_PERCENT

# No part can be read in two ways, so that the value is gone through once.
_PARTS = r'^(?P<head>\{"id": \d+, "customer": "[^"]*", "amount": )(?P<amount>\d+)(?P<tail>, .*\})$'


def change(values: pa.Array) -> pa.Array:
    """Raises if there is a value that it cannot take apart."""
    parts = pc.extract_regex(values.cast(pa.string()), _PARTS)
    if parts.null_count > values.null_count:
        raise ValueError("no order as it should be")
    head, amount, tail = parts.flatten()
    amount = pc.multiply(amount.cast(pa.int64()), TAX_PERCENT)
    return pc.binary_join_element_wise(head, amount.cast(pa.string()), tail, "").cast(pa.binary())
