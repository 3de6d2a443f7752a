from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.check_subject import faults

SCRIPT = Path(__file__).parents[3] / "scripts" / "check_subject.py"


@pytest.mark.parametrize(
    "subject",
    [
        "feat: read what was planned",
        "fix(engine)!: process a record once",
        "test(kit): wait for the end of processes without opening them",
        'Revert "feat: read what was planned"',
    ],
)
def test_one_that_says_what_the_commit_does_is_taken(subject: str) -> None:
    assert faults(f"{subject}\n\nLonger than that: {'x' * 80}\n") == []


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        (f"fix: {'x' * 68}", "has 73 characters"),
        ("read what was planned", "is not 'type: words'"),
        ("feature: read what was planned", "the types are bench, build"),
        ("feat: reads what was planned", "begins with 'reads'"),
        ("feat: added a reader", "begins with 'added'"),
        ("docs: Say more", "in lower case"),
        ("docs: say more.", "ends in a period"),
    ],
)
def test_any_other_is_refused_with_what_to_do(subject: str, said: str) -> None:
    (found,) = faults(subject)
    assert said in found


def test_the_hook_refuses_the_message_of_a_file(tmp_path: Path) -> None:
    message = tmp_path / "COMMIT_EDITMSG"
    message.write_text("docs: Say more.\n")
    ended = subprocess.run([sys.executable, SCRIPT, message], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 2
