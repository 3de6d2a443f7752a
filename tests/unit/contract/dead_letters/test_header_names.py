from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_kpipe.contract.dead_letters.header_names import check_header_name


@pytest.mark.parametrize("name", ["", "a", "\x1b", "帳", "😀" * 10_000])
def test_any_text_that_utf_8_encodes_is_a_name(name: str) -> None:
    check_header_name(name)


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        (b"a", TypeError, "named by a bytes"),
        (None, TypeError, "named by a NoneType"),
        (10**5_000, TypeError, "named by a int"),
        ("\ud800", UnicodeEncodeError, "surrogates not allowed"),
        ("a\0b", ValueError, r"the header name 'a\\x00b' holds NUL"),
    ],
    ids=["bytes", "none", "huge", "half a pair", "nul"],
)
def test_a_name_that_would_arrive_as_another_one_is_refused(name: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        check_header_name(name)
