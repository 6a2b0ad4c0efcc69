"""What meters on the network cost, and how right their energy is.

    python -m benchmarks.meter_cost [SECONDS]

SNMP at 1 Hz (a PDU in snmpsim), Prometheus at its scrape interval (the real server, scraping a
counter every second), and a Quarch module at 1 kHz averaged to 100 Hz (a stand-in for QIS whose
power changes at every row). Each is sampled in a process of its own; only that process is counted.

Goals: 1 % of one core each, energy within 1 % of the simulator's.
"""

import json
import math
import os
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.eeio_power.line_server import serving
from tests.simulators.exporter import exporting

PDU_W = 123.4
ROW_S = 1e-3
CHILD = """
import json, sys, time
from pathlib import Path
from eeio_power.meters import open_meters
from eeio_power.sampler import Sampler

spec, samples, seconds, rate_hz = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
meters = open_meters([spec], Path("/"))
with Sampler(meters, Path(samples), rate_hz) as sampler:
    time.sleep(5.0)
    before_s, begun_s = time.process_time(), time.monotonic()
    time.sleep(seconds)
    used_s, ended_s = time.process_time() - before_s, time.monotonic()
    (reading,) = sampler.energy(begun_s, ended_s)
    rate = sampler.rates()[0]
for meter in meters:
    meter.close()
print(json.dumps({
    "cpu": used_s / (ended_s - begun_s), "begun_s": begun_s, "ended_s": ended_s,
    "energy_j": reading.energy_j, "reasons": reading.reasons, "hz": rate.achieved_hz,
    "failed": rate.failed_reads,
}))
"""


def measured(spec: str, folder: Path, seconds: float, rate_hz: float) -> dict[str, Any]:
    arguments = [spec, str(folder / f"{spec.partition(':')[0]}.gz"), str(seconds), str(rate_hz)]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *arguments], capture_output=True, text=True,
        timeout=seconds + 120, check=False,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{spec}: {done.stderr.strip()[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def free_port(kind: int = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def started(command: list[str], ready: Callable[[], bool], log: Path) -> Iterator[None]:
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        end_s = time.monotonic() + 60
        while not ready():
            if process.poll() is not None or time.monotonic() > end_s:
                raise SystemExit(f"{command[0]}: {log.read_text()[-500:]}")
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait(30)


# --- SNMP -----------------------------------------------------------------------------------------


def snmp(folder: Path, seconds: float) -> str:
    program = shutil.which("snmpsim-command-responder", path=str(Path(sys.executable).parent))
    if program is None:
        return "snmpsim is not installed"
    oid = "1.3.6.1.4.1.99999.1"
    (folder / "data").mkdir()
    (folder / "data/public.snmprec").write_text(f"{oid}.1|2|{round(10 * PDU_W)}\n")
    (folder / "word").write_text("public")
    port = free_port(socket.SOCK_DGRAM)
    command = [
        program, f"--data-dir={folder}/data", f"--cache-dir={folder}/cache",
        f"--agent-udpv4-endpoint=127.0.0.1:{port}", "--process-user=root", "--process-group=root",
    ]  # fmt: skip
    log = folder / "log"
    with started(command, lambda: b"Listening at" in log.read_bytes(), log):
        outlet = f"outlets=1,oid={oid},unit=0.1W,period_s=1"
        spec = f"snmp:127.0.0.1:{port},{outlet},password_file={folder}/word"
        found = measured(spec, folder, seconds, 1.0)
    return summary(found, PDU_W * (found["ended_s"] - found["begun_s"]))


# --- Prometheus -----------------------------------------------------------------------------------


def joules(now_s: float) -> float:
    """A counter of a power that changes within 17 s."""
    return 200.0 * now_s + 100.0 * 17.0 / math.tau * math.sin(math.tau * now_s / 17.0)


def prometheus(folder: Path, seconds: float) -> str:
    program = shutil.which("prometheus")
    if program is None:
        return "prometheus is not installed"
    port = free_port()
    with exporting(lambda: f"node_joules_total {joules(time.monotonic())!r}\n") as exported:
        target = f"127.0.0.1:{exported}"
        config = {
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [{"job_name": "x", "static_configs": [{"targets": [target]}]}],
        }
        (folder / "p.yml").write_text(json.dumps(config))
        command = [
            program, f"--config.file={folder}/p.yml", f"--storage.tsdb.path={folder}/tsdb",
            f"--web.listen-address=127.0.0.1:{port}",
        ]  # fmt: skip
        with started(command, lambda: has_scraped(port), folder / "prometheus.log"):
            spec = f"prometheus:127.0.0.1:{port},metric=node_joules_total,domain=system,period_s=1"
            found = measured(spec, folder, seconds, 1.0)
    return summary(found, joules(found["ended_s"]) - joules(found["begun_s"]))


def has_scraped(port: int) -> bool:
    url = f"http://127.0.0.1:{port}/api/v1/query?query=count_over_time(node_joules_total%5B1m%5D)"
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            found = json.load(answer)["data"]["result"]
    except OSError:
        return False
    return bool(found) and int(found[0]["value"][1]) >= 3


# --- Quarch ---------------------------------------------------------------------------------------

_RAILS = ("5V", "12V")
_HEADER = "".join(
    f"<channel><name>{rail}</name><group>{group}</group><units>{units}</units></channel>"
    for rail in _RAILS
    for group, units in (("voltage", "mV"), ("current", "uA"), ("power", "uW"))
)


def row_w(number: int) -> tuple[float, float]:
    """Bursts on the 5 V, a wave on the 12 V."""
    five = 3.0 if number % 700 < 200 else 1.0
    return five, 6.0 + 3.0 * math.sin(math.tau * number / 333.0)


class Qis(socketserver.StreamRequestHandler):
    begun_s = math.nan

    def handle(self) -> None:
        self.wfile.write(b"qis 1.40\r\n>")
        sent = 0
        while line := self.rfile.readline().decode().strip():
            text = "OK"
            if line == "$list":
                text = "1) USB::QTL1999-01-001"
            elif line.endswith("rec stream"):
                Qis.begun_s, sent = time.monotonic(), 0
            elif line.endswith("stream?"):
                text = "Running"
            elif line.endswith("stream text header"):
                text = f"<header><devicePeriod>1000uS</devicePeriod>{_HEADER}</header>"
            elif line.endswith("stream text all"):
                until = int((time.monotonic() - Qis.begun_s) / ROW_S)
                text = "".join(self.row(k) for k in range(sent, until)) + "eof"
                sent = until
            self.wfile.write(f"{text}\r\n>".encode())

    @staticmethod
    def row(number: int) -> str:
        five, twelve = (round(1e6 * w) for w in row_w(number))
        return f"{number * 1000},5000,{five // 5},{five},12000,{twelve // 12},{twelve}\r\n"


def quarch(folder: Path, seconds: float) -> str:
    with serving(Qis) as address:
        found = measured(f"quarch:{address}", folder, seconds, 100.0)
    first, last = ((found[key] - Qis.begun_s) / ROW_S for key in ("begun_s", "ended_s"))
    true_j = ROW_S * math.fsum(sum(row_w(k)) for k in range(round(first), round(last)))
    return summary(found, true_j)


def summary(found: dict[str, Any], true_j: float) -> str:
    energy_j = found["energy_j"]
    error = "no energy" if energy_j is None else f"energy {100 * (energy_j / true_j - 1):+.3f} %"
    remarks = "; ".join(found["reasons"])
    return (
        f"{100 * found['cpu']:.2f} % of a core, {error}, {found['hz']:.1f} Hz, "
        f"{found['failed']} failed {remarks}"
    )


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    for measure in (snmp, prometheus, quarch):
        with tempfile.TemporaryDirectory() as folder:
            print(f"{measure.__name__:12}{measure(Path(folder), seconds)}", flush=True)


if __name__ == "__main__":
    main()
