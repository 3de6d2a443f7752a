from __future__ import annotations

from docs_kit import OPERATIONS

from airflow_provider_kpipe.contract.permissions import PAGE, forbidden


def test_an_error_names_the_page_by_its_title() -> None:
    title = (OPERATIONS / "permissions.md").read_text().splitlines()[0].removeprefix("# ")
    assert f"the page {title!r} of kpipe's documentation" == PAGE
    assert PAGE in forbidden("topic", "orders", "Broker: Topic authorization failed")
