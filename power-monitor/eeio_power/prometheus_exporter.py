"""Power and energy for Prometheus: its text format 0.0.4 or OpenMetrics 1.0.0, on loopback only."""

import ipaddress
import math
import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from eeio_power.errors import PowerError
from eeio_power.reading import EnergyReading
from eeio_power.sampler import MeterRates, Sampler

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text"
OPENMETRICS_TYPE = f"{OPENMETRICS}; version=1.0.0; charset=utf-8"
# Time without a valid reading is counted as unobserved after this time.
GIVE_UP_S = 60.0
# A connection takes this long at most, however its reader dawdles.
CONNECTION_S = 10.0
# Stored in memory for windows that are requested late.
KEEP_S = 2 * GIVE_UP_S


class Totals:
    """Energy since the start, added up window by window, so that memory does not grow.

    A window ends with each `collect`; one without a valid reading is joined to the next.
    """

    def __init__(self, sampler: Sampler, clock: Callable[[], float] = time.monotonic) -> None:
        self._sampler = sampler
        self._clock = clock
        self._lock = threading.Lock()
        self._since_s: dict[tuple[str, str], float] = {}
        self._begun_s = clock()
        self._energy_j: dict[tuple[str, str], float] = {}
        self._power_w: dict[tuple[str, str], float] = {}
        self._kinds: dict[tuple[str, str], str] = {}
        self._unseen_s: dict[tuple[str, str], float] = {}

    def collect(self, openmetrics: bool = False) -> str:
        """The page, up to now, in the text format of Prometheus or in that of OpenMetrics."""
        with self._lock:
            now_s = self._clock()
            # Meters differ in how far they were read: each starts where it ended.
            starts = sorted({self._begun_s, *self._since_s.values()})
            for start_s in starts:
                if start_s < now_s:
                    for reading in self._sampler.energy(start_s, now_s, wait=False):
                        self._add(reading, start_s, now_s)
            return self._render(self._sampler.rates(), openmetrics)

    def _add(self, reading: EnergyReading, start_s: float, now_s: float) -> None:
        key = (reading.meter, reading.domain)
        if self._since_s.get(key, self._begun_s) != start_s:
            return
        self._kinds[key] = reading.kind
        self._energy_j.setdefault(key, 0.0)
        self._unseen_s.setdefault(key, 0.0)
        self._since_s.setdefault(key, start_s)
        # The power of an earlier page is not this one's.
        self._power_w.pop(key, None)
        if reading.energy_j is not None and reading.power_w is not None:
            self._energy_j[key] += reading.energy_j
            self._power_w[key] = reading.power_w
            self._since_s[key] = now_s
        elif now_s - start_s > GIVE_UP_S:
            self._unseen_s[key] += now_s - start_s
            self._since_s[key] = now_s

    def _render(self, rates: Sequence[MeterRates], openmetrics: bool) -> str:
        lines: list[str] = []

        def family(
            name: str, kind: str, text: str, rows: list[tuple[str, float]], unit: str = ""
        ) -> None:
            suffix = ""
            if kind == "counter":
                suffix = "_total"
            # OpenMetrics names the family without the suffix of its samples.
            described = name
            if not openmetrics:
                described = f"{name}{suffix}"
            lines.append(f"# HELP {described} {text}")
            lines.append(f"# TYPE {described} {kind}")
            if openmetrics and unit:
                lines.append(f"# UNIT {described} {unit}")
            lines.extend(f"{name}{suffix}{{{labels}}} {_number(value)}" for labels, value in rows)

        def rows_of(values: dict[tuple[str, str], float]) -> list[tuple[str, float]]:
            return [
                (_labels(meter=key[0], domain=key[1], kind=self._kinds[key]), value)
                for key, value in sorted(values.items())
            ]

        family(
            "eeio_power_watts",
            "gauge",
            "Mean power since the previous page.",
            rows_of(self._power_w),
            "watts",
        )
        family(
            "eeio_energy_joules",
            "counter",
            "Energy since the exporter started.",
            rows_of(self._energy_j),
            "joules",
        )
        family(
            "eeio_unseen_seconds",
            "counter",
            "Time without a valid reading.",
            rows_of(self._unseen_s),
            "seconds",
        )
        family(
            "eeio_meter_reads",
            "counter",
            "Reads of the meter.",
            [(_labels(meter=rate.meter), rate.reads) for rate in rates],
        )
        family(
            "eeio_meter_failed_reads",
            "counter",
            "Reads in which a channel gave no value.",
            [(_labels(meter=rate.meter), rate.failed_reads) for rate in rates],
        )
        return "\n".join([*lines, *(["# EOF"] if openmetrics else [])]) + "\n"


def wants_openmetrics(accept: str) -> bool:
    """Whether an Accept header prefers OpenMetrics to the text format (RFC 9110, 12.5.1)."""
    shares: dict[str, float] = {}
    for part in accept.split(","):
        name, *parameters = (word.strip().lower() for word in part.split(";"))
        share = next((word[2:] for word in parameters if word.startswith("q=")), "1")
        try:
            shares[name] = max(shares.get(name, 0.0), float(share))
        except ValueError:
            continue
    if OPENMETRICS not in shares:
        return False
    other = next((shares[n] for n in ("text/plain", "text/*", "*/*") if n in shares), 0.0)
    return shares[OPENMETRICS] > 0 and shares[OPENMETRICS] >= other


def server(
    totals: Totals,
    address: str = "127.0.0.1",
    port: int = 9797,
    connection_s: float = CONNECTION_S,
) -> ThreadingHTTPServer:
    """A server of `/metrics`; the caller serves and closes it.

    Raises PowerError for an address that is not loopback, and if the port cannot be had.
    """
    try:
        loopback = ipaddress.ip_address(address).is_loopback
    except ValueError:
        loopback = False
    if not loopback or ":" in address:
        raise PowerError(
            f"{address}: this page is served on loopback only, such as 127.0.0.1; put a proxy with "
            "a password before it to show it to others"
        )
    if not 0 <= port <= 65535:
        raise PowerError(f"port {port}: a port is a number from 0 to 65535")
    try:
        return ThreadingHTTPServer((address, port), _handler(totals, connection_s))
    except OSError as error:
        raise PowerError(f"{address}:{port}: {error.strerror}; choose another --port") from error


def _handler(totals: Totals, connection_s: float) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = connection_s

        def handle(self) -> None:
            # A reader that goes away, or sends a byte now and then, is no news either.
            deadline = threading.Timer(connection_s, self._hang_up)
            deadline.daemon = True
            deadline.start()
            try:
                super().handle()
            except OSError:
                self.close_connection = True
            finally:
                deadline.cancel()

        def _hang_up(self) -> None:
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

        def do_GET(self) -> None:
            if not is_loopback(self.headers.get("Host", "")):
                # A page of another site whose name leads here must not read the power.
                self.send_error(403, "the Host is not a loopback address")
                return
            found = self.path.partition("?")[0] == "/metrics"
            openmetrics = wants_openmetrics(self.headers.get("Accept", ""))
            page = "see /metrics\n"
            if found:
                page = totals.collect(openmetrics)
            body = page.encode("utf-8")
            kind = CONTENT_TYPE
            if openmetrics:
                kind = OPENMETRICS_TYPE
            status = 404
            content_type = "text/plain"
            if found:
                status = 200
                content_type = kind
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """A scrape every few seconds is no news."""

    return Handler


def is_loopback(host: str) -> bool:
    """Whether a request was addressed to this machine by a name or address that only it has; HTTP
    1.0 names none."""
    name = re.sub(r":[0-9]{1,5}$", "", host.strip()).strip("[]").lower()
    if name in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _labels(**labels: str) -> str:
    def escaped(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return ",".join(f'{key}="{escaped(value)}"' for key, value in labels.items())


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return repr(float(value))
