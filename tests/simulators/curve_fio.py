"""A fio whose drive follows PowerSensor3's published curves; it is our own, no drive and no fio.

    python -m tests.simulators.curve_fio STATE SECONDS [fio's options ...]

Reads take SECONDS and move what the curve says for their request size. Random writes after a fill
pass through the published twenty minutes in ten times SECONDS. STATE holds the power that the drive
draws, for the simulator of the meter: `{"w": 2.5}`, or for writes their begin and length.
`power_w(STATE)` reads it. The JSON is that of the installed fio, with other figures.
"""

import bisect
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eeio.studies.powersensor3.published import CHANGE_S, READS_BY_KIB, Point

WRITES_BY_MINUTE: dict[int, Point] = {
    0: Point(3.09, 341, 110),
    1: Point(3.19, 341, 107),
    2: Point(3.19, 341, 107),
    3: Point(3.19, 341, 107),
    4: Point(3.82, 324, 85),
    5: Point(5.57, 146, 26),
    6: Point(5.56, 159, 29),
    8: Point(5.54, 186, 34),
    10: Point(5.52, 218, 39),
    12: Point(5.48, 256, 47),
    14: Point(5.45, 300, 55),
    16: Point(5.31, 336, 63),
    17: Point(5.43, 287, 53),
    18: Point(5.46, 280, 51),
}
"""Random writes of 4 KiB at depth 1 after a fill, means of minutes."""

IDLE_W = 1.0
MINUTES = 20.0
WRITES_TIMES = 10
_MIB = 1 << 20
_LOG_S = 0.5


def of_size(kib: float) -> Point:
    """The curve between two published sizes: straight lines over the logarithm of the size."""
    sizes = sorted(READS_BY_KIB)
    place = min(max(1, bisect.bisect_left(sizes, kib)), len(sizes) - 1)
    low, high = sizes[place - 1], sizes[place]
    share = math.log(kib / low) / math.log(high / low)
    first, second = READS_BY_KIB[low], READS_BY_KIB[high]
    power_w = first.power_w + share * (second.power_w - first.power_w)
    mib_per_s = first.mib_per_s * (second.mib_per_s / first.mib_per_s) ** share
    return Point(power_w, mib_per_s, mib_per_s / power_w)


def of_minute(minute: float) -> Point:
    """Before the change the published minutes 1 to 3, after it the last published minute."""
    if minute < CHANGE_S / 60:
        return WRITES_BY_MINUTE[1]
    minutes = [each for each in WRITES_BY_MINUTE if 5 <= each <= max(5, minute)]
    return WRITES_BY_MINUTE[minutes[-1]]


def power_w(state: Path) -> float:
    """What the drive draws now."""
    body = json.loads(state.read_text(encoding="ascii"))
    if "w" in body:
        return float(body["w"])
    passed = (time.monotonic() - body["begin_s"]) / body["length_s"]
    return of_minute(MINUTES * min(max(passed, 0.0), 0.999)).power_w


def main(arguments: list[str]) -> int:
    state, seconds = Path(arguments[0]), float(arguments[1])
    options = dict(word.removeprefix("--").partition("=")[::2] for word in arguments[2:])
    if "version" in options:
        print("fio-3.36")
        return 0
    if options.get("name") == "prefill":
        with Path(options["filename"]).open("wb") as file:
            file.truncate(int(options["size"]))
        return 0
    if options["rw"] == "randread":
        point = of_size(int(options["bs"]) / 1024)
        _run(options, state, {"w": point.power_w}, seconds, point.mib_per_s * _MIB * seconds)
    else:
        length_s = WRITES_TIMES * seconds
        entries = [
            of_minute(MINUTES * (n + 0.5) * _LOG_S / length_s).mib_per_s * _MIB
            for n in range(round(length_s / _LOG_S))
        ]
        _write_log(options, entries)
        _run(options, state, {"length_s": length_s}, length_s, sum(entries) * _LOG_S)
    return 0


def _set(state: Path, body: Mapping[str, float]) -> None:
    new = state.with_suffix(".new")
    new.write_text(json.dumps(body), encoding="ascii")
    new.replace(state)


def _write_log(options: Mapping[str, str], entries: list[float]) -> None:
    lines = []
    for number, bytes_per_s in enumerate(entries, 1):
        lines.append(f"{round(number * _LOG_S * 1000)}, {round(bytes_per_s / 1024)}, 1, 4096, 0\n")
    Path(f"{options['write_bw_log']}_bw.1.log").write_text("".join(lines), encoding="ascii")


def _run(
    options: Mapping[str, str],
    state: Path,
    body: Mapping[str, float],
    length_s: float,
    moved: float,
) -> None:
    report = _report(options, length_s, round(moved / 4096) * 4096)
    if "w" in body:
        _set(state, body)
        # The samples on their way: the power is there when the I/O begins.
        time.sleep(0.05)
    _call(options["exec_prerun"])
    if "w" not in body:
        _set(state, {**body, "begin_s": time.monotonic()})
    time.sleep(length_s)
    _call(options["exec_postrun"])
    _set(state, {"w": IDLE_W})
    Path(options["output"]).write_text(json.dumps(report, indent=2), encoding="utf-8")


def _call(command: str) -> None:
    subprocess.run(["/bin/sh", "-c", command], check=True, timeout=60)


def _report(options: Mapping[str, str], length_s: float, moved: int) -> dict[str, Any]:
    """The installed fio's report of a small run, with the bytes and the time of this one."""
    operation = options["rw"].removeprefix("rand")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                "/usr/bin/fio",
                "--name=eeio-fio",
                f"--filename={folder}/file",
                f"--rw={options['rw']}",
                "--bs=4k",
                "--size=64k",
                "--output-format=json+",
                "--lat_percentiles=1",
                "--clat_percentiles=0",
                "--group_reporting",
            ],
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
    report: dict[str, Any] = json.loads(done.stdout)
    job = report["jobs"][0]
    requests = moved // int(options["bs"])
    job["job options"] |= {"bs": options["bs"], "numjobs": "1"}
    job["job_runtime"] = round(1000 * length_s)
    job[operation] |= {
        "io_bytes": requests * int(options["bs"]),
        "io_kbytes": requests * int(options["bs"]) // 1024,
        "runtime": round(1000 * length_s),
        "bw_bytes": round(requests * int(options["bs"]) / length_s),
        "bw": round(requests * int(options["bs"]) / length_s / 1024),
        "iops": requests / length_s,
        "total_ios": requests,
    }
    return report


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
