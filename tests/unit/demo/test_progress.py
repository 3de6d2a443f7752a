from __future__ import annotations

import io

import pytest

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.progress.progress import Counts, PartitionProgress
from demo.progress import Stage, progress_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at(partition: int, next_offset: int, stopped: str | None = None) -> PartitionProgress:
    counts = Counts(read=next_offset - 1_000, dead_lettered=3)
    return PartitionProgress(PartitionRange(partition, 1_000, 3_000, None), next_offset, counts, reason=stopped)


@pytest.mark.parametrize(
    ("progress", "filled", "said"),
    [
        (at(0, 1_000), 0, "  0%        0 of 2,000, 3 dead letters, running"),
        (at(0, 2_000), 15, " 50%    1,000 of 2,000, 3 dead letters, running"),
        (at(0, 3_000), 30, "100%    2,000 of 2,000, 3 dead letters, complete"),
        (at(0, 2_000, "no space"), 15, " 50%    1,000 of 2,000, 3 dead letters, no space"),
    ],
    ids=["begun", "half", "complete", "stopped"],
)
def test_a_line_says_how_far_a_partition_is(progress: PartitionProgress, filled: int, said: str) -> None:
    bar = "█" * filled + "·" * (30 - filled)
    assert progress_line(progress).strip() == f"partition 0 {bar} {said}"


def test_elsewhere_than_on_a_terminal_only_what_changed_is_written() -> None:
    out = io.StringIO()
    stage = Stage(out)
    stage.progress([at(0, 1_000), at(1, 1_000)])
    stage.progress([at(0, 1_000), at(1, 2_000)])
    assert out.getvalue().splitlines() == [
        progress_line(at(0, 1_000)),
        progress_line(at(1, 1_000)),
        progress_line(at(1, 2_000)),
    ]


def test_on_a_terminal_the_lines_are_written_over() -> None:
    out = Terminal()
    stage = Stage(out)
    stage.progress([at(0, 1_000), at(1, 1_000)])
    before = out.getvalue()
    stage.progress([at(0, 1_000), at(1, 1_000)])
    assert out.getvalue() == before, "nothing has changed"
    stage.progress([at(0, 1_000), at(1, 2_000)])
    assert out.getvalue().startswith(before + "\x1b[1A\x1b[2K" * 2)
    stage.say("something else")
    written = len(out.getvalue())
    stage.progress([at(0, 2_000), at(1, 2_000)])
    assert "\x1b" not in out.getvalue()[written:], "a line that was said stays"


def test_a_line_has_the_seconds_since_the_start() -> None:
    out = io.StringIO()
    stage = Stage(out)
    stage.say("up")
    stage.show("the\ntable")
    assert out.getvalue() == "  0.0 s  up\n\nthe\ntable\n"
