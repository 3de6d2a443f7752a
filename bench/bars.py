"""The bars: speed ratios to reach between contestants. They are reported as met or missed, never asserted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from bench.contestants.airflow_kafka import AIRFLOW_KAFKA, AIRFLOW_KAFKA_TUNED
from bench.contestants.confluent import PLAIN, PLAIN_TRANSACTIONS
from bench.contestants.kpipe import AT_LEAST_ONCE, EXACTLY_ONCE
from bench.contestants.spark_arrow import SPARK_ARROW
from bench.contestants.spark_batch import SPARK_BATCH

DagMode: TypeAlias = Literal["warm", "cold", "dag"]

SMALL, KPIPE_DAG, PEER_DAG = "small run", "kpipe's DAG", "SparkSubmitOperator's DAG"
MEMORY_MEGABYTES = 350


@dataclass(frozen=True, slots=True)
class Entry:
    """One contestant at one work."""

    work: str
    contestant: str

    def __str__(self) -> str:
        return f"{self.contestant} at {self.work}"


@dataclass(frozen=True, slots=True)
class Bar:
    """Bar for a record: `slower` has to take `at_least`, or may take `at_most`, this many times as long as `faster`."""

    slower: Entry
    faster: Entry
    at_least: float | None = None
    at_most: float | None = None
    mode: DagMode = "warm"

    def __str__(self) -> str:
        if self.at_least is not None:
            return f"{self.faster}, {self.mode}: at least {self.at_least:g} x as fast as {self.slower}"
        return f"{self.slower}, {self.mode}: at most {self.at_most:g} x the time of {self.faster}"

    def met_by(self, ratio: float) -> bool:
        return ratio >= self.at_least if self.at_least is not None else ratio <= (self.at_most or 0)


def _kpipe(work: str, contestant: str = EXACTLY_ONCE) -> Entry:
    return Entry(work, contestant)


_SPARK_COPY, _SPARK_THOUSAND = Entry("copy", SPARK_BATCH), Entry("1,000 partitions", SPARK_BATCH)

BARS = (
    Bar(_SPARK_COPY, _kpipe("copy"), at_least=1.25),
    Bar(_SPARK_COPY, _kpipe("copy", AT_LEAST_ONCE), at_least=1.35),
    Bar(_SPARK_COPY, _kpipe("copy"), at_least=1.6, mode="cold"),
    Bar(_kpipe("copy"), _kpipe("copy", AT_LEAST_ONCE), at_most=1.05),
    Bar(Entry("copy", PLAIN), _kpipe("copy", AT_LEAST_ONCE), at_least=1.3),
    Bar(Entry("copy", PLAIN_TRANSACTIONS), _kpipe("copy"), at_least=1.3),
    Bar(Entry("json", SPARK_ARROW), _kpipe("json"), at_least=1.4),
    Bar(Entry("json", SPARK_ARROW), _kpipe("json"), at_least=1.4, mode="cold"),
    Bar(Entry("json", PLAIN), _kpipe("json", AT_LEAST_ONCE), at_least=1.8),
    Bar(Entry("json", PLAIN_TRANSACTIONS), _kpipe("json"), at_least=1.8),
    Bar(_kpipe("json"), _kpipe("arrow"), at_least=2),
    Bar(_kpipe("poison"), _kpipe("json"), at_most=1.15),
    Bar(_kpipe("poison"), _kpipe("json"), at_most=1.15, mode="cold"),
    # "Nothing measurable": within the spread of the same work from round to round.
    Bar(_kpipe("unused"), _kpipe("json"), at_most=1.03),
    Bar(Entry("operators as they come", AIRFLOW_KAFKA), _kpipe("operators as they come"), at_least=10),
    Bar(Entry("operators", AIRFLOW_KAFKA_TUNED), _kpipe("operators"), at_least=10),
    Bar(_SPARK_THOUSAND, _kpipe("1,000 partitions", AT_LEAST_ONCE), at_least=1),
    Bar(_kpipe("1,000 partitions"), _SPARK_THOUSAND, at_most=1.5),
    Bar(_kpipe("skew"), _kpipe("skew, relaxed"), at_least=1.6),
    Bar(_kpipe("waiting"), _kpipe("waiting, relaxed"), at_least=20),
    Bar(Entry(SMALL, KPIPE_DAG), Entry(SMALL, PEER_DAG), at_most=0.8, mode="dag"),
)
