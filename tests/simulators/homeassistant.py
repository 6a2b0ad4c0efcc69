"""Home Assistant's REST API with one sensor: our own, as far as the meter needs it.

As the real one (issue 181392 of home-assistant/core), it stores the answer of `/api/states` until
the value changes, and only `/api/template` shows when an unchanged value was last reported. It
evaluates the template with Jinja2, as the real one does.
"""

import json
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, Self

import jinja2

TOKEN = "eyJ.token.x"


class FakeHomeAssistant:
    """`report` is what the device's integration does. With `clock` it has another time."""

    def __init__(
        self,
        unit: str | None = "W",
        *,
        admin: bool = True,
        knows_reports: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.unit, self.admin, self.knows_reports = unit, admin, knows_reports
        self.clock = clock
        self.requests: list[str] = []
        self.garbage: bytes | None = None
        self._value, self._changed_s, self._reported_s = "unknown", clock(), clock()
        self._stored: bytes | None = None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def report(self, value: object) -> None:
        self._reported_s = self.clock()
        if str(value) != self._value:
            self._value, self._changed_s, self._stored = str(value), self._reported_s, None

    def state(self) -> bytes:
        """Stored at the first request after a change."""
        if self._stored is None:
            state: dict[str, Any] = {
                "entity_id": "sensor.server_power",
                "state": self._value,
                "attributes": self._attributes(),
                "last_changed": _time(self._changed_s).isoformat(),
                "last_updated": _time(self._changed_s).isoformat(),
            }
            if self.knows_reports:
                state["last_reported"] = _time(self._reported_s).isoformat()
            self._stored = json.dumps(state).encode()
        return self._stored

    def rendered(self, template: str) -> bytes:
        """Raises jinja2.TemplateError."""
        state = SimpleNamespace(state=self._value, attributes=self._attributes())
        if self.knows_reports:
            state.last_reported = _time(self._reported_s)
        environment = jinja2.Environment(autoescape=False, undefined=jinja2.StrictUndefined)
        environment.filters["to_json"] = json.dumps
        sensors = SimpleNamespace(server_power=state)
        states = SimpleNamespace(sensor=sensors)
        return environment.from_string(template).render(states=states).encode()

    def _attributes(self) -> dict[str, str]:
        return {"device_class": "power"} | (
            {} if self.unit is None else {"unit_of_measurement": self.unit}
        )

    def answer(self, method: str, path: str, token: str, body: bytes) -> tuple[int, bytes]:
        if token != f"Bearer {TOKEN}":
            return 401, b"401: Unauthorized"
        if self.garbage is not None:
            return 200, self.garbage
        if (method, path) == ("GET", "/api/states/sensor.server_power"):
            return 200, self.state()
        if (method, path) != ("POST", "/api/template"):
            return 404, b'{"message": "Entity not found."}'
        if not self.admin:
            return 401, b"401: Unauthorized"
        try:
            return 200, self.rendered(json.loads(body)["template"])
        except jinja2.TemplateError as error:
            return 400, json.dumps({"message": f"Error rendering template: {error}"}).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16

            def handle_one(self) -> None:
                outer.requests.append(f"{self.command} {self.path}")
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                token = self.headers.get("Authorization", "")
                status, answer = outer.answer(self.command, self.path, token, body)
                self.send_response_only(status)
                self.send_header("Date", formatdate(int(outer.clock()), usegmt=True))
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = handle_one  # noqa: N815
            do_POST = handle_one  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:
                """Tests want a quiet server."""

        return Handler


def _time(time_s: float) -> datetime:
    return datetime.fromtimestamp(time_s, UTC)
