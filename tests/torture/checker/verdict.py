"""Everything that a kept folder shows: the anomalies, and figures about how much was tried."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from tests.torture.checker.anomalies import Anomaly, by_kind
from tests.torture.checker.counts import Counts
from tests.torture.checker.dump import DUMP, HISTORY, Cluster, read_cluster_file
from tests.torture.checker.events import (
    Begun,
    FaultBegun,
    FaultEnded,
    GroupReset,
    LogStartMoved,
    TaskEnded,
    read_history,
)
from tests.torture.checker.groups import Groups
from tests.torture.checker.held import Held, check_held
from tests.torture.checker.known import Known, Pipeline
from tests.torture.checker.letters import check_letters
from tests.torture.checker.records import Records
from tests.torture.checker.redrives import check_redrives
from tests.torture.checker.sources import Sources
from tests.torture.checker.tally import Tally


@dataclass(frozen=True, slots=True)
class Verdict:
    anomalies: tuple[Anomaly, ...]
    figures: Mapping[str, Any]

    def as_json(self) -> str:
        return json.dumps({**self.figures, "anomalies": [asdict(each) for each in self.anomalies]}, indent=2)

    def lines(self) -> Iterator[str]:
        """For people."""
        for name, figure in self.figures.items():
            if isinstance(figure, Mapping):
                yield f"{name}:"
                yield from (f"    {kind:<28} {count}" for kind, count in figure.items())
            else:
                yield f"{name}: {figure}"
        yield f"anomalies: {len(self.anomalies)} {by_kind(self.anomalies) if self.anomalies else ''}"
        for each in self.anomalies:
            yield f"    {each.kind} of {each.pipeline}: {each.said}"
            yield from (f"        {name}: {value}" for name, value in each.evidence.items())


def check(folder: Path) -> Verdict:
    known = Known(read_history(folder / HISTORY))
    dump = folder / DUMP
    cluster = read_cluster_file(dump)
    sources = Sources.read(dump, cluster, known.sources, known.produced)
    held = check_held(known, cluster)
    tallies = {name: Tally.read(dump, pipeline, sources) for name, pipeline in known.pipelines.items()}
    anomalies = (
        *sources.anomalies,
        *_of_outputs_gone(known, cluster),
        *chain.from_iterable(
            _of_pipeline(known, pipeline, sources, tallies[name], cluster, dump)
            for name, pipeline in known.pipelines.items()
        ),
        *held.anomalies,
    )
    return Verdict(anomalies, _figures(known, sources, tallies, held))


def _of_pipeline(
    known: Known, pipeline: Pipeline, sources: Sources, tally: Tally, cluster: Cluster, dump: Path
) -> Iterator[Anomaly]:
    groups = Groups(known, pipeline, sources, cluster)
    yield from tally.anomalies
    yield from Records(pipeline, sources, tally).check(groups.required())
    yield from groups.check()
    yield from check_letters(dump, pipeline, sources)
    yield from Counts(known, pipeline, sources, tally).check()
    yield from check_redrives(pipeline, sources, tally)


def _of_outputs_gone(known: Known, cluster: Cluster) -> Iterator[Anomaly]:
    for name, pipeline in known.pipelines.items():
        for topic in (pipeline.declared.destination, pipeline.declared.dead_letter):
            for partition, ends in cluster.ends.get(topic or "", {}).items():
                if ends.low:
                    yield Anomaly("unreadable", name, f"{topic}-{partition} begins at {ends.low} by now")


def _figures(known: Known, sources: Sources, tallies: Mapping[str, Tally], held: Held) -> dict[str, Any]:
    begun = next(known.of(Begun), None)
    runs = Counter(run.kind for pipeline in known.pipelines.values() for run in pipeline.runs.values())
    tasks = Counter(f"{each.task} {each.outcome}" for each in known.of(TaskEnded))
    faults = _faults(known)
    return {
        **({"seed": begun.seed, "minutes": begun.minutes, "commit": begun.commit} if begun else {}),
        "records": sum(len(placed.offsets) for by in sources.topics.values() for placed in by.values()),
        "records aborted": len(sources.aborted),
        "outputs": sum(sum(each.values()) for tally in tallies.values() for each in tally.outputs.values()),
        "dead letters": sum(sum(each.values()) for tally in tallies.values() for each in tally.letters.values()),
        "records blamed for a crash": sum(len(tally.blamed) for tally in tallies.values()),
        "runs": dict(sorted(runs.items())),
        "tasks": dict(sorted(tasks.items())),
        "groups reset by hand": sum(1 for _ in known.of(GroupReset)),
        "log starts moved": sum(1 for _ in known.of(LogStartMoved)),
        "faults": sum(count for count, _ in faults.values()),
        "faults with an effect": sum(had for _, had in faults.values()),
        "faults by kind (with an effect)": {kind: f"{count} ({had})" for kind, (count, had) in faults.items()},
        "failed runs after which readers were watched": {
            "judged": held.judged,
            "excused by an outage": held.excused,
            "not seen": held.unseen,
        },
        "readers held up longest after a failed run, s": round(held.longest, 2),
    }


def _faults(known: Known) -> dict[str, tuple[int, int]]:
    effects = {each.fault for each in known.of(FaultEnded) if each.effect}
    kinds: dict[str, tuple[int, int]] = {}
    for each in known.of(FaultBegun):
        count, had = kinds.get(each.kind, (0, 0))
        kinds[each.kind] = count + 1, had + (each.fault in effects)
    return dict(sorted(kinds.items()))
