"""Cost of meters with fast streams at a sampling period of 1 ms, and how right their energy is.

    python -m benchmarks.stream_cost [SECONDS]

PowerSensor3 with two pairs at 20 kHz (our simulator on a pseudo terminal) at 10 Hz and 1 kHz, and a
Quarch module with rows of 1 ms (a stand-in for QIS) at 1 kHz. The power has bursts of 1 s, of
which the energies are compared with the simulator's. Each meter is sampled in another process; only
that process and its children are counted. The decoding of PowerSensor3's stream is measured, too.

Goals: decoding 30 % of a core at most, the rest of a 1 kHz sampler 2 %, the samples file 10 MB a
minute, energy within 0.5 %, bursts within 2 %.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.meter_cost import ROW_S, Qis
from tests.eeio_power.line_server import serving
from tests.simulators.powersensor3 import NVME, FakePowerSensor3, Patterns

from eeio_power.meters.powersensor3 import Averager, pairs_in_use, parse_record
from eeio_power.samples import load

HIGH_W, LOW_W, OTHER_W = 8.0, 1.0, 6.0
BURST_S, EVERY_S = 1.0, 3.0
CHILD = """
import json, resource, sys, time
from pathlib import Path
from eeio_power.meters import open_meters
from eeio_power.sampler import Sampler

opened_s = time.monotonic()
spec, samples, seconds, rate_hz = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
meters = open_meters([spec], Path("/"))
with Sampler(meters, Path(samples), rate_hz) as sampler:
    time.sleep(3.0)
    before_s, begun_s = time.process_time(), time.monotonic()
    time.sleep(seconds)
    used_s, ended_s = time.process_time() - before_s, time.monotonic()
    (reading,) = sampler.energy(begun_s, ended_s)
    rate = sampler.rates()[0]
for meter in meters:
    meter.close()
children = resource.getrusage(resource.RUSAGE_CHILDREN)
helper = (children.ru_utime + children.ru_stime) / (time.monotonic() - opened_s)
print(json.dumps({
    "cpu": used_s / (ended_s - begun_s) + helper, "begun_s": begun_s, "ended_s": ended_s,
    "energy_j": reading.energy_j, "uncertainty_j": reading.uncertainty_j,
    "reasons": reading.reasons, "hz": rate.achieved_hz, "failed": rate.failed_reads,
}))
"""


def watts(time_s: float) -> tuple[float, float]:
    """A burst of a second each three seconds."""
    return (HIGH_W if time_s % EVERY_S < BURST_S else LOW_W), OTHER_W


def true_j(begin_s: float, end_s: float) -> float:
    """The energy of both pairs, by milliseconds."""
    first, last = round(begin_s * 1000), round(end_s * 1000)
    return sum(sum(watts(k / 1000)) for k in range(first, last)) / 1000


def sampled(spec: str, file: Path, seconds: float, rate_hz: float) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, spec, str(file), str(seconds), str(rate_hz)],
        capture_output=True, text=True, timeout=seconds + 120, check=False,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{spec}: {done.stderr.strip()[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def burst_errors(file: Path, begun_s: float, until_s: float) -> list[float]:
    """Of each burst in the samples, its energy over the simulator's, less 1."""
    samples = load(file)
    errors, burst_s = [], begun_s
    while burst_s + BURST_S < until_s:
        if burst_s > samples.meters[0].times_s[0]:
            (reading,) = samples.energy(burst_s, burst_s + BURST_S)
            if reading.energy_j is not None:
                errors.append(reading.energy_j / (HIGH_W + OTHER_W) / BURST_S - 1.0)
        burst_s += EVERY_S
    return errors


def summary(found: dict[str, Any], file: Path, stream_s: float) -> str:
    expected_j = true_j(found["begun_s"] - stream_s, found["ended_s"] - stream_s)
    lasted_s = found["ended_s"] - found["begun_s"] + 3.0
    error = found["energy_j"] / expected_j - 1.0
    line = (
        f"{100 * found['cpu']:.2f} % of a core, energy {100 * error:+.3f} % "
        f"(uncertainty {100 * found['uncertainty_j'] / expected_j:.1f} %), {found['hz']:.1f} Hz, "
        f"{found['failed']} failed, {file.stat().st_size / 1e6 * 60 / lasted_s:.2f} MB a minute"
    )
    errors = burst_errors(file, stream_s, found["ended_s"])
    if errors:
        line += (
            f"; {len(errors)} bursts of 1 s: {100 * min(errors):+.2f} to {100 * max(errors):+.2f} %"
        )
    return line


def powersensor3(folder: Path, seconds: float, rate_hz: float) -> str:
    file = folder / f"{rate_hz:g}.gz"
    with FakePowerSensor3(watts) as board:
        found = sampled(f"powersensor3:{board.path}", file, seconds, rate_hz)
        return f"{summary(found, file, board.begun_s)}; {board.overruns} bytes lost in the terminal"


def decoding(period_s: float) -> str:
    """20 s of the stream in blocks of 7.5 ms."""
    records = b"".join(pair.records() for pair in NVME)
    pairs = pairs_in_use([parse_record(records[41 * k : 41 * (k + 1)], k) for k in range(8)])
    data = Patterns(NVME).sets(0, 400_000, (2.5, 6.0))
    averager = Averager(pairs, 50e-6, period_s)
    begun_s = time.process_time()
    for begin in range(0, len(data), 2700):
        averager.feed(data[begin : begin + 2700], begin / 18 * 50e-6)
    return f"{100 * (time.process_time() - begun_s) / 20:.2f} % of a core"


class FineQis(Qis):
    """Rows of 1 ms with the same bursts."""

    @staticmethod
    def row(number: int) -> str:
        five, twelve = (round(1e6 * w) for w in watts(number * ROW_S))
        return f"{number * 1000},5000,{five // 5},{five},12000,{twelve // 12},{twelve}\r\n"


def quarch(folder: Path, seconds: float, rate_hz: float) -> str:
    file = folder / "quarch.gz"
    with serving(FineQis) as address:
        found = sampled(f"quarch:{address},average=256", file, seconds, rate_hz)
        return summary(found, file, Qis.begun_s)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    for period_s in (0.1, 0.001):
        print(f"decoding, means of {1000 * period_s:g} ms: {decoding(period_s)}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for rate_hz in (10.0, 1000.0):
            line = powersensor3(folder, seconds, rate_hz)
            print(f"powersensor3 at {rate_hz:g} Hz: {line}", flush=True)
        print(f"quarch at 1000 Hz: {quarch(folder, seconds, 1000.0)}", flush=True)


if __name__ == "__main__":
    main()
