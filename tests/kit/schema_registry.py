"""A small schema registry: as much of Confluent's as its client asks for, over real HTTP and behind a password."""

from __future__ import annotations

import base64
import json
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

Answer = tuple[int, dict[str, Any]]

UNKNOWN_SUBJECT = (404, {"error_code": 40401, "message": "Subject not found"})
UNKNOWN_SCHEMA = (404, {"error_code": 40403, "message": "Schema not found"})


class Registry:
    """Schemas by id, and the ids of each subject's versions."""

    def __init__(self) -> None:
        self.password = uuid.uuid4().hex
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.asked: list[str] = []
        self.failing: Answer | None = None
        self.url = ""

    @property
    def settings(self) -> dict[str, str]:
        """As segments get them."""
        return {"url": self.url, "basic.auth.user.info": f"kpipe:{self.password}", "max.retries": "0"}

    def register(self, subject: str, schema: str, kind: str = "AVRO") -> int:
        return int(
            self.answer("POST", f"/subjects/{subject}/versions", {"schema": schema, "schemaType": kind})[1]["id"]
        )

    def answer(self, method: str, path: str, body: dict[str, Any]) -> Answer:
        if found := re.fullmatch(r"/schemas/ids/(\d+)", path):
            known = 0 < int(found[1]) <= len(self.schemas)
            return (200, self.schemas[int(found[1]) - 1]) if known else UNKNOWN_SCHEMA
        if found := re.fullmatch(r"/subjects/([^/]+)/versions/latest", path):
            subject = unquote(found[1])
            return self._version(subject, self.subjects[subject][-1]) if subject in self.subjects else UNKNOWN_SUBJECT
        if method == "POST" and (found := re.fullmatch(r"/subjects/([^/]+)(/versions)?", path)):
            return self._posted(unquote(found[1]), body, register=bool(found[2]))
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _posted(self, subject: str, body: dict[str, Any], register: bool) -> Answer:
        schema: dict[str, Any] = {
            "schemaType": "AVRO",
            **{name: body[name] for name in ("schema", "schemaType") if name in body},
        }
        if register and schema not in self.schemas:
            self.schemas.append(schema)
        known = self.schemas.index(schema) + 1 if schema in self.schemas else 0
        ids = self.subjects.setdefault(subject, []) if register else self.subjects.get(subject, [])
        if register and known not in ids:
            ids.append(known)
        return self._version(subject, known) if known in ids else UNKNOWN_SCHEMA

    def _version(self, subject: str, schema_id: int) -> Answer:
        version = self.subjects[subject].index(schema_id) + 1
        return 200, {"subject": subject, "id": schema_id, "version": version, **self.schemas[schema_id - 1]}


@contextmanager
def running_registry() -> Iterator[Registry]:
    registry = Registry()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def log_message(self, *_: Any) -> None:
            """Nothing: what was asked is in `asked`."""

        def _answer(self, body: dict[str, Any]) -> None:
            path = urlsplit(self.path).path
            registry.asked.append(f"{self.command} {path}")
            wanted = base64.b64encode(f"kpipe:{registry.password}".encode()).decode()
            if self.headers.get("Authorization") != f"Basic {wanted}":
                status, answer = 401, {"error_code": 401, "message": "Unauthorized"}
            else:
                status, answer = registry.failing or registry.answer(self.command, path, body)
            text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    registry.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
