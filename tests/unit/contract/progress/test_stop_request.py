from __future__ import annotations

import pytest

from airflow_provider_kpipe.contract.progress.stop_request import StopRequest


def test_a_request_comes_back_from_the_metadata_of_an_offset() -> None:
    request = StopRequest(7, "the task was asked to stop")
    assert StopRequest.read_text(request.to_text()) == request


@pytest.mark.parametrize("metadata", [None, "", "{", "[]", "{}"])
def test_other_metadata_is_no_request(metadata: str | None) -> None:
    assert StopRequest.read_text(metadata) is None
