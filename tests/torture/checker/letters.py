"""Dead letters are the records that they name: bytes, headers, timestamp and coordinates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.torture.checker.anomalies import Anomaly, Gathered
from tests.torture.checker.dump import Row, committed_file, read_rows
from tests.torture.checker.known import Pipeline
from tests.torture.checker.sources import Place, Sources

ATTEMPT = "kpipe-dead-letter-attempt"
_OURS = "kpipe-"


def check_letters(folder: Path, pipeline: Pipeline, sources: Sources) -> Iterator[Anomaly]:
    """Reads the letters twice: to know which records of the source to keep, and to compare them."""
    topic = pipeline.declared.dead_letter
    if topic is None:
        return
    wanted = {row.id for row in read_rows(committed_file(folder, topic))}
    source = pipeline.declared.source
    records = {
        Place(source, row.partition, row.offset): row
        for row in read_rows(committed_file(folder, source))
        if row.id in wanted
    }
    yield from Letters(pipeline, sources, records).check(folder, topic)


class Letters:
    def __init__(self, pipeline: Pipeline, sources: Sources, records: dict[Place, Row]) -> None:
        self.pipeline, self.sources, self.records = pipeline, sources, records
        self.letters: dict[Place, tuple[int, int]] = {}
        """The id and the attempt."""
        self.anomalies = Gathered()

    def check(self, folder: Path, topic: str) -> Iterator[Anomaly]:
        for row in read_rows(committed_file(folder, topic)):
            if row.id is not None:
                self.letters[Place(topic, row.partition, row.offset)] = row.id, _whole(row.header(ATTEMPT))
        for row in read_rows(committed_file(folder, topic)):
            # Those of no record are told of by whoever counts them.
            if row.id is not None and self.sources.is_visible(row.id):
                for wrong in self._wrong(row, row.id):
                    example = [row.id, str(Place(topic, row.partition, row.offset))]
                    self.anomalies.add("letter_mismatch", self.pipeline.name, wrong, example)
        yield from self.anomalies

    def _wrong(self, row: Row, number: int) -> Iterator[str]:
        named = Place(
            row.header("kpipe-source-topic") or "",
            _whole(row.header("kpipe-source-partition")),
            _whole(row.header("kpipe-source-offset")),
        )
        if row.header("kpipe-pipeline") != self.pipeline.name:
            yield f"it names the pipeline {row.header('kpipe-pipeline')!r}"
        attempts = 0
        if named in self.letters:
            inside, attempts = self.letters[named]
            if inside != number:
                yield "it names a dead letter of another record"
        elif named not in self.sources.places(number):
            yield "it names another place than that of its record"
        record = self.records.get(named) or self.records.get(self.sources.place(number))
        if record is None:
            # It has left the log.
            return
        if not attempts:
            attempts = _whole(record.header(ATTEMPT), 0)
        if _whole(row.header(ATTEMPT)) != attempts + 1:
            yield f"it has attempt {row.header(ATTEMPT)}, after {attempts}"
        yield from _unlike(row, record)


def _unlike(row: Row, record: Row) -> Iterator[str]:
    own = [each for each in record.headers if not each[0].startswith(_OURS)]
    if list(row.headers[: len(own)]) != own:
        yield "its headers do not begin with those of its record"
    if any(not name.startswith(_OURS) for name, _ in row.headers[len(own) :]):
        yield "it has headers that its record has not"
    if row.digest != record.digest:
        yield "it has another value than its record"
    if row.timestamp != record.timestamp:
        yield "it has another timestamp than its record"


def _whole(text: str | None, otherwise: int = -1) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() else otherwise
