"""Outputs that segments made of one record: all of them are written, or none."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_provider_kpipe.contract.faults.fault import Fault
from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import Record, SourceMessage
from kpipe_engine.errors import ChunkFailedError, UnwritableRecordError
from kpipe_engine.writing.destination import Destination


def write_outputs(
    destination: Destination, message: SourceMessage, records: Iterable[Record], counts: Counts, taken: int = 0
) -> Fault | None:
    """Write outputs; return the fault of a record that cannot be written. `taken` of them are on their way already."""
    written = taken
    for record in records:
        try:
            destination.write(record, message)
        except UnwritableRecordError as error:
            fault = error.fault("destination")
            if not written:
                return fault
            # Some of the outputs are on their way already: only a new try leaves them out.
            raise ChunkFailedError(str(fault), {message.offset(): fault}) from error
        written += 1
    counts.written += written
    counts.filtered += not written
    return None
