"""A module that meets a fate each time that it is imported; only the first time, where that leaves a mark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from deadly_kit import meet

from airflow_provider_kpipe import batch_segment

mark = os.environ.get("KPIPE_TEST_IMPORT_MARK")
if mark is None or not Path(mark).exists():
    if mark is not None:
        Path(mark).touch()
    meet(os.environ.get("KPIPE_TEST_IMPORT_FATE", ""))


def one(record: Any) -> Any:
    return record


async def awaited(record: Any) -> Any:
    return record


@batch_segment
def many(batch: Any) -> Any:
    return batch
