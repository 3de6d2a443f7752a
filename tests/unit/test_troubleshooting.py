"""The page for troubleshooting quotes messages as they stand in the code."""

from __future__ import annotations

import pytest
from docs_kit import ROOT, rows

PAGE = ROOT / "docs" / "operations" / "troubleshooting.md"
FRAGMENTS = [message.strip("`") for message, _cause, _remedy in rows(PAGE.read_text())]
LINES = {
    line
    for folder in ("airflow_provider_kpipe", "spark_jobs")
    for file in (ROOT / folder).rglob("*.py")
    for line in file.read_text().splitlines()
}


def test_it_has_the_messages_that_users_meet() -> None:
    assert len(FRAGMENTS) >= 40


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_a_message_is_found_in_the_code_as_it_is_quoted(fragment: str) -> None:
    assert any(fragment in line for line in LINES)
