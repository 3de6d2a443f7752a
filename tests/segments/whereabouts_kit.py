"""A segment that says where it ran, and where its module was found."""

from __future__ import annotations

import os
from typing import Any


def says_where(record: Any) -> Any:
    record.headers.append(("ran-in", os.getcwd().encode()))
    record.headers.append(("came-from", __file__.encode()))
    return record
