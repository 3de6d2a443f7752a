from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from demo.airflow_api import AirflowApi, AirflowApiError

HEALTHY = 200, {"scheduler": {"status": "healthy"}}
LOCKED = 503, {"detail": "Database is locked. Backfill creation is not supported on SQLite under concurrent access."}
RETRIED = 500, {"detail": {"reason": "Database error"}}
DOWN = 503, {"detail": "The service is down"}


class Answers(HTTPServer):
    """Answers one request after the other as it is told."""

    def __init__(self, *answers: tuple[int, object]) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.left = list(answers)

    @property
    def api(self) -> AirflowApi:
        return AirflowApi(f"http://127.0.0.1:{self.server_port}")


class Answering(BaseHTTPRequestHandler):
    server: Answers

    def do_GET(self) -> None:
        status, body = self.server.left.pop(0)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_said: object) -> None:
        """Say nothing."""


@pytest.fixture
def answering(request: pytest.FixtureRequest) -> Iterator[Answers]:
    server = Answers(*request.param)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("answering", [(LOCKED, RETRIED, HEALTHY)], indirect=True)
def test_a_database_that_is_locked_is_asked_again(answering: Answers) -> None:
    assert answering.api.health() == {"scheduler": "healthy"}


@pytest.mark.parametrize("answering", [(LOCKED,) * 5, (DOWN, HEALTHY)], indirect=True)
def test_a_lasting_or_unknown_error_is_raised(answering: Answers) -> None:
    with pytest.raises(AirflowApiError, match="Airflow answered 503"):
        answering.api.health()
