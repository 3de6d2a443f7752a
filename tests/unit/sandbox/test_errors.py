from __future__ import annotations

from airflow_provider_kpipe.sandbox.errors import tail


def test_only_the_last_lines_are_quoted() -> None:
    assert tail("one\ntwo\nthree\n\n", lines=2) == "    two\n    three"


def test_a_program_that_wrote_nothing_is_quoted_as_such() -> None:
    assert tail(" \n") == "    (it wrote nothing)"
