"""A plug or a BMC on a loopback port: paths and what they answer, with the faults of real ones."""

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Answer = Callable[[], Any]


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the game."""


class FakeHttp:
    """Answers GETs with JSON.

    `answers` maps a path (with its query) to what it answers: a value, or a function that gives
    one. Bytes are sent as they are. While `flowing` is cleared the server says nothing.
    """

    def __init__(self, answers: Mapping[str, Any], authorization: str | None = None) -> None:
        self.answers = dict(answers)
        self.authorization = authorization
        self.requests: list[str] = []
        """Method and path of each request."""
        self.flowing = threading.Event()
        self.flowing.set()
        self._server = _QuietServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._serve, name="fake-http", daemon=True)

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.flowing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self) -> None:
        self._server.serve_forever(poll_interval=0.01)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # One packet an answer: two would wait for the other side to acknowledge the first.
            wbufsize = 1 << 16

            def do_GET(self) -> None:
                outer.requests.append(f"{self.command} {self.path}")
                outer.flowing.wait()
                if outer.authorization not in (None, self.headers.get("Authorization")):
                    self._send(401, b"{}")
                elif self.path not in outer.answers:
                    self._send(404, b"{}")
                else:
                    answer = outer.answers[self.path]
                    answer = answer() if callable(answer) else answer
                    raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                    self._send(200, raw)

            def _send(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Tests want a quiet server."""

        return Handler


def redfish(power_w: Answer, *, environment_metrics: bool = False) -> dict[str, Any]:
    """The paths of a BMC with one chassis that has no power and one that has."""
    chassis = "/redfish/v1/Chassis"
    paths: dict[str, Any] = {
        chassis: {
            "Members": [{"@odata.id": f"{chassis}/Enclosure"}, {"@odata.id": f"{chassis}/Self"}]
        },
        f"{chassis}/Enclosure/Power": {"PowerControl": []},
    }
    if environment_metrics:
        paths[f"{chassis}/Self/EnvironmentMetrics"] = lambda: {
            "PowerWatts": {"Reading": power_w()},
            "EnergykWh": {"Reading": 325675},
        }
    else:
        paths[f"{chassis}/Self/Power"] = lambda: {
            "PowerControl": [{"MemberId": "0", "PowerConsumedWatts": power_w()}]
        }
    return paths


def shelly(power_w: Answer, energy_wh: Answer = lambda: 1234.567) -> dict[str, Any]:
    """The path of a second generation plug."""
    return {
        "/rpc/Switch.GetStatus?id=0": lambda: {
            "id": 0,
            "output": True,
            "apower": power_w(),
            "voltage": 230.1,
            "aenergy": {"total": energy_wh(), "by_minute": [0, 0, 0], "minute_ts": 1},
        }
    }


def shelly_first_generation(power_w: Answer) -> dict[str, Any]:
    """The path of a first generation plug."""
    return {"/status": lambda: {"meters": [{"power": power_w(), "is_valid": True, "total": 12}]}}


def tasmota(power_w: Answer, path: str = "/cm?cmnd=Status%208") -> dict[str, Any]:
    """The path of a Tasmota plug."""
    return {
        path: lambda: {
            "StatusSNS": {
                "Time": "2026-01-31T12:00:00",
                "ENERGY": {"Total": 1.234, "Power": power_w(), "Voltage": 230, "Factor": 0.9},
            }
        }
    }
