"""The metrics of Grid'5000's REST API for one node: our own. A value looks as published ones do.

`power_w` gives the power at a time. Values arrive `late_s` after they were measured.
"""

import json
import math
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

PARIS = timezone(timedelta(hours=1))


def value_of(
    time_s: float, power_w: Any, node: str = "taurus-11", metric: str = "wattmetre_power_watt",
    ports: Sequence[str] = ("wattmetre1-port33",),
) -> dict[str, Any]:  # fmt: skip
    return {
        "timestamp": datetime.fromtimestamp(time_s, UTC).astimezone(PARIS).isoformat(),
        "device_id": node,
        "metric_id": metric,
        "value": power_w,
        "labels": {"_device_orig": list(ports)},
    }


class FakeKwollect:
    """`clock` is the server's: Unix s."""

    def __init__(
        self,
        clock: Callable[[], float],
        power_w: Callable[[float], float | None] = lambda _: 87.5,
        *,
        period_s: float = 1.0,
        late_s: float = 0.0,
        authorization: str | None = None,
    ) -> None:
        self.clock, self.power_w = clock, power_w
        self.period_s, self.late_s = period_s, late_s
        self.authorization = authorization
        self.metric = "wattmetre_power_watt"
        self.more: list[dict[str, Any]] = []
        """Other values in each answer."""
        self.garbage: bytes | None = None
        self.ends_s = math.inf
        """When the wattmeter fails."""
        self.requests: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/stable"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def values(self, start_s: float, end_s: float) -> list[dict[str, Any]]:
        last_s = min(end_s, self.clock() - self.late_s, self.ends_s)
        first = math.ceil(start_s / self.period_s - 1e-9)
        return [
            value_of(k * self.period_s, self.power_w(k * self.period_s), metric=self.metric)
            for k in range(first, math.floor(last_s / self.period_s + 1e-9) + 1)
        ]

    def answer(self, path: str, authorization: str | None) -> tuple[int, bytes]:
        if self.authorization not in (None, authorization):
            return 401, b"{}"
        if self.garbage is not None:
            return 200, self.garbage
        parts = urlsplit(path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if parts.path != "/stable/sites/lyon/metrics":
            return 404, b"{}"
        if (query["nodes"], query["metrics"]) != ("taurus-11", self.metric):
            return 200, b"[]"
        values = self.values(float(query["start_time"]), float(query["end_time"]))
        return 200, json.dumps([*values, *self.more]).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16

            def do_GET(self) -> None:
                outer.requests.append(self.path)
                status, answer = outer.answer(self.path, self.headers.get("Authorization"))
                self.send_response_only(status)
                self.send_header("Date", formatdate(math.floor(outer.clock()), usegmt=True))
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:
                """Tests want a quiet server."""

        return Handler
