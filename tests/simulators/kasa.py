"""Kasa's first generation on a local port, and a Tapo plug behind python-kasa's transport: our own.

The answers have the fields of devices' answers that python-kasa publishes (HS110 v1, KP115, HS300,
P110); their values are made up.
"""

import base64
import json
import socketserver
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

DEVICE_ID = "80060000000000000000000000000000000000AA"


def code(data: bytes, *, decrypt: bool) -> bytes:
    """The cipher, written once more: each byte is combined with the encrypted one before."""
    result, before = bytearray(), 0xAB
    for byte in data:
        result.append(byte ^ before)
        before = byte if decrypt else result[-1]
    return bytes(result)


class FakeKasa:
    """A plug, or with `outlets` a strip. `power_w` gets the place of the outlet, 0 of a plug."""

    def __init__(
        self,
        power_w: Callable[[int], Any] = lambda _: 87.5,
        *,
        outlets: Sequence[str] = (),
        old_fields: bool = False,
        meters: bool = True,
        short_ids: bool = False,
        port: int = 0,
    ) -> None:
        self.power_w, self.outlets = power_w, outlets
        self.old_fields, self.meters, self.short_ids = old_fields, meters, short_ids
        self.requests: list[Any] = []
        self.raw: bytes | None = None
        """Sent instead of an answer; empty: the connection is ended."""
        self.byte_s = 0.0
        """If it is not 0: the time between two bytes of an answer."""
        self.flowing = threading.Event()
        self.flowing.set()
        self.connections = 0
        self._open: list[Any] = []
        socketserver.ThreadingTCPServer.allow_reuse_address = True
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.flowing.set()
        self._server.shutdown()
        self.drop()
        self._server.server_close()
        self._thread.join()

    def drop(self) -> None:
        """Ends all connections, as a plug does that loses its power or its patience."""
        for request in self._open:
            self._server.shutdown_request(request)
        self._open.clear()

    def _ids(self) -> list[str]:
        prefix = "" if self.short_ids else DEVICE_ID
        return [f"{prefix}{k:02d}" for k in range(len(self.outlets))]

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        if "system" in request:
            info: dict[str, Any] = {
                "alias": "rack", "deviceId": DEVICE_ID, "err_code": 0, "feature": "TIM:ENE",
                "model": "HS300(US)" if self.outlets else "HS110(EU)",
                "sw_ver": "1.0.12 Build 220121 Rel.175814",
            }  # fmt: skip
            if self.outlets:
                info["child_num"] = len(self.outlets)
                info["children"] = [
                    {"alias": name, "id": outlet, "state": 1, "on_time": 7}
                    for name, outlet in zip(self.outlets, self._ids(), strict=True)
                ]
            return {"system": {"get_sysinfo": info}}
        if not self.meters:
            return {"emeter": {"err_code": -1, "err_msg": "module not support"}}
        outlet = 0
        if self.outlets:
            (wanted,) = request["context"]["child_ids"]
            outlet = [f"{DEVICE_ID}{k:02d}" for k in range(len(self.outlets))].index(wanted)
        power_w = self.power_w(outlet)
        if self.old_fields:
            now = {"current": 0.014937, "voltage": 231.067823, "power": power_w, "total": 55.139}
        else:
            power_mw = round(power_w * 1000) if isinstance(power_w, float) else power_w
            now = {"current_ma": 6, "voltage_mv": 231067, "power_mw": power_mw, "total_wh": 62}
        return {"emeter": {"get_realtime": {**now, "err_code": 0}}}

    def _handler(self) -> type[socketserver.BaseRequestHandler]:
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                outer.connections += 1
                outer._open.append(self.request)
                try:
                    while head := self.request.recv(4):
                        size = int.from_bytes(head, "big")
                        body = json.loads(code(self.request.recv(size), decrypt=True))
                        raw = outer.raw
                        if raw is None:
                            answer = json.dumps(outer.answer(body)).encode()
                            raw = len(answer).to_bytes(4, "big") + code(answer, decrypt=False)
                        outer.flowing.wait()
                        if not raw:
                            return
                        if outer.byte_s == 0.0:
                            self.request.sendall(raw)
                            continue
                        for byte in raw:
                            self.request.sendall(bytes([byte]))
                            time.sleep(outer.byte_s)
                except OSError:
                    """The other side ended it."""

        return Handler


class FakeTapo:
    """Answers of a P110 by method, for python-kasa's SmartDevice above its encryption."""

    def __init__(self, power_w: Callable[[], Any] = lambda: 87.5, *, meters: bool = True) -> None:
        self.power_w, self.meters = power_w, meters
        self.fails: Exception | None = None
        self.methods: list[str] = []
        self.closed = False

    def result(self, method: str) -> dict[str, Any] | None:
        components = [("device", 2), ("energy_monitoring", 2)][: 2 if self.meters else 1]
        power_w = self.power_w()
        results: dict[str, dict[str, Any]] = {
            "component_nego": {
                "component_list": [{"id": name, "ver_code": code} for name, code in components]
            },
            "get_device_info": {
                "device_id": DEVICE_ID, "device_on": True, "fw_ver": "1.2.3", "hw_ver": "1.0",
                "mac": "48-22-54-00-00-00", "model": "P110", "type": "SMART.TAPOPLUG",
                "nickname": base64.b64encode(b"rack").decode(), "ssid": "", "rssi": -42,
            },
            "get_connect_cloud_state": {"status": 1},
            "get_energy_usage": {
                "current_power": power_w if power_w is None else round(power_w * 1000),
                "today_energy": 46, "month_energy": 430,
            },
            "get_current_power": {"current_power": 87},
        }  # fmt: skip
        return results.get(method)

    async def send(self, request: str) -> dict[str, Any]:
        if self.fails is not None:
            raise self.fails
        body = json.loads(request)
        if body["method"] != "multipleRequest":
            return self._response(body["method"])
        responses = [self._response(each["method"]) for each in body["params"]["requests"]]
        return {"error_code": 0, "result": {"responses": responses}}

    def _response(self, method: str) -> dict[str, Any]:
        self.methods.append(method)
        result = self.result(method)
        if result is None:
            return {"method": method, "error_code": -1002}  # unknown method
        return {"method": method, "error_code": 0, "result": result}
