"""Pure functions that turn raw numbers into medians, ratios, verdicts on bars, and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from bench.bars import Bar, Entry

WARM_UP = 0


@dataclass(frozen=True, slots=True)
class Timing:
    """One job. Round 0 is the warm-up, which does not count."""

    work: str
    contestant: str
    mode: str
    round: int
    records: int
    seconds: float


@dataclass(frozen=True, slots=True)
class MemoryPeak:
    """The peak memory of a Python worker while it read a range of so many records."""

    contestant: str
    records: int
    megabytes: float


@dataclass(frozen=True, slots=True)
class Step:
    """One task of a small run: its queue, start and end times, in seconds after the trigger."""

    contestant: str
    round: int
    task: str
    queued: float
    started: float
    ended: float


@dataclass(frozen=True, slots=True)
class TypicalStep:
    """One task of a small run, over its rounds: the median of each moment."""

    contestant: str
    rounds: int
    task: str
    queued: float
    started: float
    ended: float


@dataclass(frozen=True, slots=True)
class Summary:
    """One contestant at one work, over its rounds."""

    work: str
    contestant: str
    mode: str
    rounds: int
    records: int
    median_seconds: float
    fastest_seconds: float
    slowest_seconds: float
    records_per_second: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """The time of one contestant for a record, divided by another's: of the medians, and of single rounds."""

    by_medians: float
    lowest: float
    highest: float

    def __str__(self) -> str:
        return f"{self.by_medians:.2f} x ({self.lowest:.2f} to {self.highest:.2f})"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A bar, the measured value, and the result: met or missed."""

    bar: str
    measured: str
    met: bool


@dataclass(frozen=True, slots=True)
class Results:
    """All results of a run of the benchmark."""

    about: Mapping[str, Any]
    timings: Sequence[Timing]
    bars: Sequence[Bar]
    memory: Sequence[MemoryPeak] = ()
    memory_bar_megabytes: float = 0
    steps: Sequence[Step] = ()


def summarise(timings: Sequence[Timing]) -> list[Summary]:
    """Summarise the timings in the order of the works, and within each work the quickest first."""
    summaries = []
    for work, mode in dict.fromkeys((each.work, each.mode) for each in timings):
        own = [each for each in timings if (each.work, each.mode) == (work, mode) and each.round != WARM_UP]
        found = [
            _summary(contestant, [each for each in own if each.contestant == contestant])
            for contestant in dict.fromkeys(each.contestant for each in own)
        ]
        summaries += sorted(found, key=lambda each: each.median_seconds)
    return summaries


def _summary(contestant: str, timings: Sequence[Timing]) -> Summary:
    seconds, first = [each.seconds for each in timings], timings[0]
    return Summary(
        work=first.work,
        contestant=contestant,
        mode=first.mode,
        rounds=len(seconds),
        records=first.records,
        median_seconds=median(seconds),
        fastest_seconds=min(seconds),
        slowest_seconds=max(seconds),
        records_per_second=first.records / median(seconds),
    )


def compare(timings: Sequence[Timing], slower: Entry, faster: Entry, mode: str) -> Ratio | None:
    """Return the ratio, or None if one of the two was not measured. Single ratios are of rounds that both have."""
    long, short = _per_record(timings, slower, mode), _per_record(timings, faster, mode)
    both = long.keys() & short.keys()
    if not both:
        return None
    single = [long[number] / short[number] for number in both]
    return Ratio(median(long.values()) / median(short.values()), min(single), max(single))


def judge(results: Results) -> list[Verdict]:
    """Return the verdict on each bar; leave out bars without measurements."""
    verdicts = []
    for bar in results.bars:
        ratio = compare(results.timings, bar.slower, bar.faster, bar.mode)
        if ratio is not None:
            verdicts.append(Verdict(str(bar), str(ratio), bar.met_by(ratio.by_medians)))
    limit = results.memory_bar_megabytes
    for peak in results.memory:
        text = f"{peak.contestant}, {peak.records:,} records in one range: at most {limit:g} MB for a worker"
        verdicts.append(Verdict(text, f"{peak.megabytes:.0f} MB", peak.megabytes <= limit))
    return verdicts


def to_json(results: Results) -> dict[str, Any]:
    return {
        "schema_version": 2,
        **results.about,
        "timings": [asdict(each) for each in results.timings],
        "summaries": [asdict(each) for each in summarise(results.timings)],
        "memory": [asdict(each) for each in results.memory],
        "timeline": [asdict(each) for each in timeline(results.steps)],
        "bars": [asdict(each) for each in judge(results)],
    }


def to_markdown(results: Results) -> str:
    lines = ["# Benchmark", "", *about_lines(results.about, "- "), ""]
    verdicts = [(each.bar, each.measured, "met" if each.met else "**missed**") for each in judge(results)]
    if verdicts:
        lines += [*_table(("bar", "measured: of medians (single rounds)", ""), verdicts), ""]
    rows = [
        (
            f"{each.work}, {each.mode}",
            each.contestant,
            f"{each.median_seconds:.2f} s",
            f"{each.fastest_seconds:.2f} to {each.slowest_seconds:.2f} s",
            str(each.rounds),
            f"{each.records:,}",
            f"{each.records_per_second:,.0f}",
        )
        for each in summarise(results.timings)
    ]
    if rows:
        lines += [*_table(("work", "contestant", "median", "spread", "rounds", "records", "records/s"), rows), ""]
    if results.steps:
        spans = [
            (each.contestant, each.task, *(f"{moment:.2f} s" for moment in (each.queued, each.started, each.ended)))
            for each in timeline(results.steps)
        ]
        lines += ["A small run, seconds after its trigger (medians):", ""]
        lines += [*_table(("DAG", "task", "queued", "started", "ended"), spans), ""]
    return "\n".join(lines)


def timeline(steps: Sequence[Step]) -> list[TypicalStep]:
    """Return the median moments of each task, in the order in which the tasks of a contestant end."""
    counted = [each for each in steps if each.round != WARM_UP]
    found = []
    for contestant, task in dict.fromkeys((each.contestant, each.task) for each in counted):
        own = [each for each in counted if (each.contestant, each.task) == (contestant, task)]
        moments = [median(getattr(each, name) for each in own) for name in ("queued", "started", "ended")]
        found.append(TypicalStep(contestant, len(own), task, *moments))
    return sorted(found, key=lambda each: (each.contestant, each.ended))


def about_lines(about: Mapping[str, Any], mark: str = "") -> list[str]:
    return [f"{mark}{name}: {_text(value)}" for name, value in about.items()]


def _per_record(timings: Sequence[Timing], entry: Entry, mode: str) -> dict[int, float]:
    return {
        each.round: each.seconds / each.records
        for each in timings
        if (each.work, each.contestant, each.mode) == (entry.work, entry.contestant, mode) and each.round != WARM_UP
    }


def _text(value: Any) -> str:
    return ", ".join(f"{name} {item}" for name, item in value.items()) if isinstance(value, Mapping) else str(value)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
