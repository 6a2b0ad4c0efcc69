"""A plug or a BMC on a loopback port: paths and what they answer, with the faults of real ones."""

import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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

    def __init__(
        self,
        answers: Mapping[str, Any],
        authorization: str | None = None,
        digest: tuple[str, str] | None = None,
    ) -> None:
        self.answers = dict(answers)
        self.authorization = authorization
        self.digest = digest
        """User and password, asked for as Shelly's second generation does."""
        self.nonce = "1716556501"
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

    def __exit__(self, *_: object) -> None:
        self.flowing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def challenge(self) -> str:
        """What Shelly's second generation answers with 401."""
        return (
            f'Digest qop="auth", realm="shelly1minig3-543204547478", nonce="{self.nonce}", '
            "algorithm=SHA-256"
        )

    def admits(self, authorization: str, path: str) -> bool:
        """Whether the Digest answer is right (RFC 7616, 3.4.1), computed here once more."""
        if self.digest is None:
            return True
        given = dict(re.findall(r'(\w+)="?([^",]*)', authorization.removeprefix("Digest ")))
        user, password = self.digest
        secret = _sha256(f"{user}:shelly1minig3-543204547478:{password}")
        target = _sha256(f"GET:{path}")
        parts = [secret, self.nonce, given.get("nc"), given.get("cnonce"), "auth", target]
        return given.get("response") == _sha256(":".join(map(str, parts)))

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
                elif not outer.admits(self.headers.get("Authorization", ""), self.path):
                    self._send(401, b"", outer.challenge)
                elif self.path not in outer.answers:
                    self._send(404, b"{}")
                else:
                    answer = outer.answers[self.path]
                    answer = answer() if callable(answer) else answer
                    raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                    self._send(200, raw)

            def _send(self, status: int, body: bytes, challenge: str | None = None) -> None:
                self.send_response(status)
                if challenge is not None:
                    self.send_header("WWW-Authenticate", challenge)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Tests want a quiet server."""

        return Handler


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def redfish(power_w: Answer, *, environment_metrics: bool = False) -> dict[str, Any]:
    """The paths of a BMC with one chassis that has no power and one that has."""
    chassis = "/redfish/v1/Chassis"
    paths: dict[str, Any] = {
        chassis: {
            "Members": [{"@odata.id": f"{chassis}/Enclosure"}, {"@odata.id": f"{chassis}/Self"}]
        },
        f"{chassis}/Enclosure": {"Id": "Enclosure", "ChassisType": "Enclosure"},
        f"{chassis}/Self": {"Id": "Self", "ChassisType": "RackMount"},
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


def redfish_of(
    chassis: Mapping[str, tuple[str, Any]], systems: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """The paths of a BMC: by name each chassis' type and its answer to EnvironmentMetrics (or, if
    that has a PowerControl, to Power); by name each system and the chassis that it links to."""
    root = "/redfish/v1"
    paths: dict[str, Any] = {
        f"{root}/{kind}": {"Members": [{"@odata.id": f"{root}/{kind}/{name}"} for name in names]}
        for kind, names in (("Chassis", chassis), ("Systems", systems))
    }
    for name, (kind, answer) in chassis.items():
        paths[f"{root}/Chassis/{name}"] = {"Id": name, "ChassisType": kind}
        if answer is not None:
            old = {"PowerControl", "PowerSupplies"} & answer.keys()
            place = "Power" if old else "EnvironmentMetrics"
            paths[f"{root}/Chassis/{name}/{place}"] = answer
    for name, linked in systems.items():
        links = [{"@odata.id": f"{root}/Chassis/{of}"} for of in linked]
        paths[f"{root}/Systems/{name}"] = {"Id": name, "Links": {"Chassis": links}}
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
