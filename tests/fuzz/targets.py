"""Everything that reads what others wrote, with real inputs to begin with."""

import base64
import gzip
import http.client
import json
import random
import struct
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from io import BytesIO, StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import yaml

from eeio.analysis import characterization
from eeio.comparison import cells as comparison
from eeio.errors import EeioError, LimitError, ToolOutputError
from eeio.exchange.importing import mapping, outputs, power_logs, power_of_results, results, runs
from eeio.exchange.importing import processor as processors
from eeio.exchange.importing import testlog as testlogs
from eeio.files import inputs, typed
from eeio.guideline import cost_inputs, workload_file
from eeio.machine import counters, device, drive
from eeio.machine.as_data import capture as machine_capture
from eeio.machine.as_data import description as machine_description
from eeio.measure.calibration import clock
from eeio.measure.campaign import pilot_store, server_power
from eeio.measure.profiles import profile as profiles
from eeio.measure.profiles import suite as suites
from eeio.pts import composite
from eeio.pts import read as pts
from eeio.pts.read import experiments_of, machine_of, run_of
from eeio.record import store, tools
from eeio.record.tools.capture import Capture
from eeio.traces import block, bpftrace, darshan, events, jbd2, logs, order, strace
from eeio.units import quantities
from eeio.units.names import campaign_name
from eeio.units.sizes import parse_size
from eeio_parsers.btio import run as btio
from eeio_parsers.darshan.tests import test_report as imports_darshan
from eeio_parsers.lmbench import run as lmbench
from eeio_power import alignment, calibration, csv_log, http_json, samples, session, sysfs
from eeio_power import helper_process as reader
from eeio_power import power_of_nodes as cluster
from eeio_power.delay import Delay
from eeio_power.errors import PowerError
from eeio_power.meters import (
    Channel,
    cray,
    csv,
    drive_estimate,
    iio,
    modelled,
    nvme,
    parse_spec,
    perf,
    pmic,
    power_supply,
)
from eeio_power.meters import homeassistant as homes
from eeio_power.meters import hwmon as hwmons
from eeio_power.meters import ipmi as ipmis
from eeio_power.meters import kasa as kasas
from eeio_power.meters import kwollect as kwollects
from eeio_power.meters import modbus as modbuses
from eeio_power.meters import mqtt as mqtts
from eeio_power.meters import powersensor3 as boards
from eeio_power.meters import prometheus as proms
from eeio_power.meters import quarch as quarchs
from eeio_power.meters import rapl as rapls
from eeio_power.meters import redfish as redfishes
from eeio_power.meters import shelly as shellies
from eeio_power.meters import tasmota as tasmotas
from eeio_power.meters import wattsup as wattsups
from eeio_power.monitor import PowerMonitor, PowerSource
from eeio_power.suspension import Stops
from eeio_power.system_sensor.controller import complete_system
from eeio_power.window_readings import absurdity
from tests.eeio.importing import made as imports_made
from tests.eeio.importing import test_power_logs as imports_power
from tests.eeio.importing import test_psrun as psrun
from tests.eeio_results import made
from tests.fuzz import grammar
from tests.fuzz.mutate import Files
from tests.simulators.powersensor3 import NVME, Patterns

DATA = Path(__file__).parents[1] / "data"
ROOT = DATA.parents[1]
PARSERS = ROOT / "result-parsers/eeio_parsers"
ALLOWED = (EeioError, PowerError)
"""The documented errors; a file of its own kind may have more (`Target.allowed`)."""


@dataclass(frozen=True)
class Target:
    """One reader: inputs to begin with, and what reads the folder that one is written into."""

    name: str
    seeds: Sequence[Files]
    read: Callable[[Path], Any]
    fixed: Files | None = None
    """Files that are there unchanged."""
    allowed: tuple[type[Exception], ...] = ALLOWED
    missing: bool = False
    """Whether NaN stands for a missing value in the result."""
    made: Callable[[random.Random], Files] | None = None
    """Makes inputs by the grammar of the format."""


def _fitting(pattern: str) -> list[Path]:
    return sorted((*DATA.glob(pattern), *PARSERS.glob(pattern)))


def of_files(pattern: str, name: str) -> list[Files]:
    """A seed from each file that fits below tests/data or the parsers, called `name`."""
    found = [{name: path.read_bytes()} for path in _fitting(pattern) if path.is_file()]
    assert found, pattern
    return found


def of_folders(pattern: str, *names: str) -> list[Files]:
    """A seed from each folder that fits, with those of the named files that it has."""
    found = [
        {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}
        for folder in _fitting(pattern)
    ]
    assert found, pattern
    return found


def foreign_results(folder: Path) -> Any:
    """`eeio import` of one file; only documented reasons may reject it."""
    return _imported(folder / "result")


def _imported(path: Path) -> Any:
    found = results.found([path])
    for one in found:
        assert not (one.rejected or "").startswith("not understood"), one.rejected
    if rejected := next((one.rejected for one in found if one.rejected), None):
        raise EeioError(rejected)
    for campaign in results.campaigns(found, "x"):
        for run in campaign.runs:
            typed.check(run)
    return [one.to_json() for one in found]


DRIVE_TABLE = {"psds": [
    {"max_power": 900, "max_power_scale": 0, "non-operational_state": 0, "idle_power": 6300,
     "idle_scale": 1, "active_power": 900, "active_scale": 2},
    {"max_power": 50, "max_power_scale": 1, "non-operational_state": 1, "idle_power": 50,
     "idle_scale": 1, "active_power": 0, "active_scale": 0},
]}  # fmt: skip


def drive_table(folder: Path) -> Any:
    """The power states of a drive; the kernel's counters are there."""
    counters = folder / "sys/block/nvme0n1/stat"
    counters.parent.mkdir(parents=True, exist_ok=True)
    counters.write_text("0 " * 17)
    options = {"device": "nvme0n1", "table": str(folder / "table")}
    ranges = drive_estimate.open_meter("spec", options, folder).ranges
    assert 0.0 <= ranges.standby <= ranges.idle <= ranges.most and ranges.least <= ranges.most
    return [ranges.standby, ranges.idle, ranges.least, ranges.most]


def power_log(folder: Path) -> Any:
    """`eeio import --power` of one log; only documented reasons may reject it."""
    log = power_logs.read(folder / "log")
    if log.rejected:
        raise EeioError(log.rejected)
    windows = [power_of_results.Window(s.times_s[0] + 1, s.times_s[-1] - 1, 0.1, False)
               for s in log.series if s.times_s[-1] - s.times_s[0] > 2]  # fmt: skip
    if not windows:
        return None
    alignment = power_of_results.aligned(log, windows, 0.0)
    readings = [r for w in windows for r in power_of_results.energy_of(w, [(log, alignment)])]
    for reading in readings:
        typed.check(reading)
    return [reading.to_json() for reading in readings]


def of_map(form: str, name: str) -> Callable[[Path], Any]:
    """A tool's output that a map names."""
    return lambda folder: outputs.read(form, text(folder, name), name)


def text(folder: Path, name: str) -> str:
    return (folder / name).read_text(encoding="utf-8", errors="replace")


# --- tools ---------------------------------------------------------------------------------------


def parsed(tool: str) -> Callable[[Path], Any]:
    """The parser; its second line, that an exception is no end, must not be needed."""

    def read(folder: Path) -> Any:
        capture = Capture.load(folder)
        if tool == "dataserver":
            capture = replace(capture, factors={"replay": str(folder / "trace.csv")})
        try:
            return tools.parse(tool, capture)
        except ToolOutputError as error:
            if "the parser of" in str(error):
                raise AssertionError(str(error)) from error.__cause__
            raise

    return read


CAPTURE = b"""{"factors": {"buffer": "on"}, "exit_code": 0, "started_monotonic_s": 100.0,
"ended_monotonic_s": 160.0, "started_utc_s": 1700000000.0, "stamps": [["stdout", 100, 101.0],
["stderr", 40, 110.5], ["stdout", 2500, 150.0]], "left_out": {}}"""


def with_capture(seeds: Sequence[Files]) -> list[Files]:
    return [{"capture.json": CAPTURE, **seed} for seed in seeds]


def original_btio(folder: Path) -> Any:
    return btio.parse_text(text(folder, "npb.txt"))


IO500 = next((PARSERS / "io500/outputs").glob("io500-*/debug"))
"""A run by the profile; IO500's own files are in a folder of it."""


def io500_run(folder: Path) -> Any:
    own = [path for path in (IO500 / "io500").iterdir() if (folder / path.name).exists()]
    (folder / "io500").mkdir()
    for path in own:
        (folder / path.name).rename(folder / "io500" / path.name)
    return parsed("io500")(folder)


EEIO_JSON = json.dumps(
    {
        "schema_version": 1,
        "phases": [
            {
                "name": "dump", "operation": "write", "spatiality": "sequential",
                "request_size_bytes": 131072, "bytes_moved": 10485760,
                "start_monotonic_s": 112.25, "end_monotonic_s": 112.5,
                "bandwidth_bytes_per_s": 41943040.0, "metrics": {"iops": 320.0}, "invalid": [],
                "durable_monotonic_s": 112.75, "durable_bandwidth_bytes_per_s": 20971520.0,
                "durable_source": "its own fsync", "includes_flush": False,
                "spatiality_seen": "strided by 65536 bytes",
            },
            {
                "name": "checkpoint", "operation": "write", "spatiality": "sequential",
                "request_size_bytes": 1048576, "bytes_moved": 10485760,
                "start_monotonic_s": 113.0, "end_monotonic_s": 114.0,
                "stretches_monotonic_s": [[113.0, 113.25], [113.75, 114.0]],
                "bandwidth_bytes_per_s": 20971520.0, "metrics": {"operations": 2},
                "includes_flush": True,
            },
        ],
        "context": [{"name": "ranks", "value": 4, "unit": "1"}],
        "notes": ["x"],
    }
).encode()  # fmt: skip


FIGURES = b"""{"schema_version": 1, "operation": "read", "spatiality": "mixed",
"factors": {"size": "16m"}, "figure": {"pattern": "rate ([0-9.]+) MB/s", "unit": "MB/s"},
"bytes": {"pattern": "^moved (.*)"}}"""


def tool_targets() -> list[Target]:
    whole = ("capture.json", "stdout.txt", "stderr.txt")
    native = [{"eeio.json": EEIO_JSON}, *of_files("journal/6.18/metadata-8/eeio.json", "eeio.json")]
    trace = b"time,client,op,offset,length\n0.0,0,read,0,4096\n0.5,1,write,4096,4096\n"
    served = with_capture([{"eeio.json": EEIO_JSON, "trace.csv": trace}])
    return [
        Target("fio", [
            *of_folders("fio/outputs/3.33/[mrs]*", "capture.json", "fio.json", "fio-start.txt",
                        "fio-end.txt"),
            *of_folders("fio/outputs/3.33/two-processes", "capture.json", "fio.json",
                        "fio-start.txt", "fio-end.txt"),
        ], parsed("fio"), made=grammar.fio),
        Target("fio-text", of_files("fio/outputs/3.33/other/*.txt", "fio.txt"),
               of_map("fio", "fio.txt")),
        Target("ior", with_capture(of_files("ior/outputs/*/other/*.txt", "stdout.txt")),
               parsed("ior"), made=grammar.ior),
        Target("ior-text", of_files("ior/outputs/*/other/*.txt", "ior.txt"),
               of_map("ior", "ior.txt"), made=grammar.ior_report),
        Target("ior-json", of_files("ior/outputs/*/other/*.json", "ior.json"),
               of_map("ior", "ior.json")),
        Target("iozone", of_folders("iozone/outputs/3.489/[!o]*", *whole), parsed("iozone"),
               made=grammar.iozone),
        Target("bonnie", of_folders("bonnie/outputs/2.00a/*", *whole), parsed("bonnie"),
               made=grammar.bonnie),
        Target("lmbench", of_folders("lmbench/outputs/*/*", *whole), parsed("lmbench")),
        Target("figures", with_capture([{"figures.json": FIGURES, "stdout.txt": b"moved 16 MiB\n",
                                         "stderr.txt": b"rate 12.5 MB/s\n"}]), parsed("figures")),
        Target("lmbench-results", [{"results.txt": LMBENCH}],
               lambda folder: lmbench.parse_results(text(folder, "results.txt"))),
        Target("results", [*of_files("*/outputs/*.*", "result"),
                           *of_files("*/outputs/cases/*.*", "result"),
                           *of_files("fio/outputs/terse/*.*", "result"),
                           *of_files("elbencho/outputs/3.1-10/*", "result"),
                           *of_files("io500/outputs/02091cf/*.txt", "result"),
                           *of_files("btio/outputs/3.3.1/*.txt", "result"),
                           {"result": imports_darshan.TEXT.encode()},
                           *of_files("iozone/outputs/3.489/other/*.txt", "result")],
               foreign_results),
        Target("power-dump", [{"log": "".join(psrun.lines(psrun.burst, 0.05)).encode()}],
               power_log),
        Target("power-logs", [{"log": made().encode()} for made, *_ in imports_power.LOGS.values()],
               power_log),
        Target("mdtest", [{"mdtest.txt": MDTEST}],
               of_map("mdtest", "mdtest.txt")),
        Target("io500", of_files("io500/outputs/02091cf/*.txt", "io500.txt"),
               of_map("io500", "io500.txt")),
        Target("io500-run", [{
            path.name: path.read_bytes()
            for path in (IO500 / "capture.json", IO500 / "stdout.txt", *(IO500 / "io500").iterdir())
        }], io500_run),
        Target("mlpstorage", of_folders("mlpstorage/outputs/*/run*", "summary.json",
                                        "per_epoch_stats.json"), _imported),
        Target("elbencho", of_files("elbencho/outputs/3.1-10/*.json", "elbencho.json"),
               of_map("elbencho", "elbencho.json"),
               made=grammar.elbencho),
        Target("btio", with_capture(
            [{**seed, "npb-program.txt": b"bt.S.x\n"} for seed in
             of_files("btio/outputs/3.3.1/*.txt", "npb.txt")]), parsed("btio")),
        Target("btio-text", of_files("btio/outputs/3.3.1/*.txt", "npb.txt"), original_btio),
        Target("native", with_capture(native), parsed("native"), made=grammar.native),
        Target("command", of_folders("command/outputs/*", "capture.json", "command.json"),
               parsed("command")),
        Target("dataserver", served, parsed("dataserver"), made=grammar.dataserver),
        Target("capture", of_folders("fio/outputs/3.33/[mrst]*", "capture.json"), Capture.load),
    ]  # fmt: skip


MDTEST = b"""mdtest-4.0.0 was launched with 4 total task(s) on 1 node(s)
SUMMARY rate: (of 3 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation               2568.636       2500.000       2534.318         10.000
   File stat               :   9000.000       8000.000       8500.000        100.000
-- finished at 01/02/2026 03:04:09 --
"""
LMBENCH = b"""[lmbench3.0 results for Linux pc 4.19 #1]
Simple syscall: 0.0525 microseconds
Simple read: 0.1 microseconds
Simple open/close: 1.5 microseconds
Memory read bandwidth
0.000512 40000.5
268.44 12000

Memory write bandwidth
0.000512 30000.25
268.44 9000

"""


# --- traces --------------------------------------------------------------------------------------


def followed(found: Sequence[events.Event]) -> Any:
    """What `eeio record trace --read` makes of events."""
    phases = events.find_phases(found)
    replayed = logs.to_csv(found) if all(e.offset is not None for e in found) and found else ""
    return [phase.to_json() for phase in phases], len(replayed)


STRACE = b"""\
1700000000.000100 openat(AT_FDCWD</tmp>, "/tmp/a, b", O_RDWR|O_CREAT, 0666) = 3</tmp/a, b> <0.0001>
1700000000.000300 write(3</tmp/a, b>, "\\0\\0"..., 4096) = 4096 <0.00005>
1700000000.000500 pwrite64(3</tmp/a, b>, "\\0"..., 4096, 8192) = 4096 <0.00005>
1700000000.000600 lseek(3</tmp/a, b>, 0, SEEK_SET) = 0 <0.00001>
1700000000.000700 preadv2(3</tmp/a, b>, [{iov_base="", iov_len=512}], 1, 512, 0) = 512 <0.00001>
1700000000.000800 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD) = 12 <0.0001>
1700000000.000900 read(3</tmp/a, b>,  <unfinished ...>
1700000000.001000 <... read resumed>"x"..., 100) = 100 <0.0001>
1700000000.001100 close(3</tmp/a, b>) = 0 <0.00001>
1700000000.001200 +++ exited with 0 +++
"""
DXT = b"""\
# darshan log version: 3.41
# DXT, file_id: 16457598720760448348, file_name: /tmp/test.h5
# DXT, rank: 0, hostname: host
# DXT, write_count: 2, read_count: 1
# DXT, mnt_pt: /, fs_type: ext4
# Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)
 X_POSIX       0  write        0               0          4096      0.0010      0.0020
 X_POSIX       0  write        1            4096          4096      0.0030      0.0040
 X_POSIX       0   read        0               0          8192      0.0050      0.0060
"""
TRACE_CSV = (
    b"time,client,op,offset,length\n0.0,0,read,0,4096\n0.1,1,write,4096,512\n0.9,0,read,9,9\n"
)


def stored_trace(folder: Path) -> Any:
    return followed(logs.read(folder / "trace.txt"))


def drive_requests(folder: Path) -> Any:
    found, _ = block.parse(text(folder, "trace.txt").splitlines(), {0: 1})
    return order.describe((issued.request for issued in found), 16384)


def trace_targets() -> list[Target]:
    journals = of_folders("journal/6.18/*", "journal.gz")
    plain = [{"journal.txt": gzip.decompress(seed["journal.gz"])[:30_000]} for seed in journals]
    return [
        Target("strace", [{"t.7": STRACE, "t.12": STRACE.replace(b"000.00", b"000.20")}],
               lambda folder: followed(strace.read([folder / "t.7", folder / "t.12"]))),
        Target("bpftrace", of_files("bpftrace/*/*.txt", "trace.txt"),
               lambda folder: followed(bpftrace.read(folder / "trace.txt"))),
        Target("block", of_files("block/*/*.txt", "trace.txt"), drive_requests),
        Target("journal", plain, lambda folder: jbd2.load(folder / "journal.txt")),
        Target("journal-gz", journals, lambda folder: jbd2.load(folder / "journal.gz")),
        Target("iolog", of_files("iolog/*.log", "trace.txt"), stored_trace),
        Target("dxt", [{"trace.txt": DXT}], stored_trace),
        Target("trace-csv", [{"trace.txt": TRACE_CSV}], stored_trace),
    ]  # fmt: skip


# --- records and samples -------------------------------------------------------------------------


def stored() -> dict[str, bytes]:
    """A campaign as the store writes it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "c"
        place = store.Store(folder)
        place.create(made.design("c", 2))
        place.write_machine(made.MACHINE)
        place.write_idle([made.energy(5.0)], None)
        for number in range(2):
            place.append(made.run(number, (made.phase(1e6 + number, (made.energy(12.5),)),)))
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def loaded(folder: Path) -> Any:
    """What `eeio report` and `eeio compare` read of a campaign."""
    found = store.load(folder)
    rows = characterization.characterize(found)
    cells = comparison.cells_of(found)
    return found, rows, characterization.context(found), cells


def resumed(folder: Path) -> Any:
    return store.read_design(folder), store.Store(folder).done_indices()


INFOS = (
    samples.MeterInfo("rapl", "rapl", "measured", 0.001, 0.1, (
        Channel("rapl:package-0", "package", "energy_j", 262143.0, 0.05, 6e-5, True, 500.0),
        Channel("rapl:package-0/dram", "dram", "energy_j"),
    )),
    samples.MeterInfo("wall", "wall", "measured", 1.0, 1.0,
                      (Channel("wall", "system", "power_w",
                               delay=Delay(1.0, 2.0, 0.5, 0.5, "datasheet")),)),
)  # fmt: skip


def sampled() -> bytes:
    body = samples.header_line(INFOS, 7.0, "2024-01-01T00:00:00+00:00")
    for k in range(60):
        time_s = round(7.0 + 0.1 * k, 6)
        body += samples.sample_lines(time_s, 0, [3.3 * k, 1.0 * k if k != 4 else float("nan")])
        if k % 10 == 0:
            body += samples.sample_lines(time_s + 0.01, 2, [120.0])
    return gzip.compress(body.encode())


def integrated(folder: Path) -> Any:
    found = samples.load(folder / "power.csv.gz")
    readings = [found.energy(8.0, 10.0), found.energy(7.0, 13.0), found.energy(6.0, 5e6)]
    return [[replace(reading) for reading in part] for part in readings]


NODE = json.dumps(
    {
        "schema_version": 1, "duration_s": 2.0, "exit_code": 0, "node": "a",
        "readings": [{
            "meter": "rapl", "domain": "package", "kind": "measured", "power_w": 5.0,
            "energy_j": 10.0, "uncertainty_j": 0.5, "coverage": 1.0, "largest_gap_s": 0.1,
            "samples": 20, "lost": 0, "valid": True, "reasons": [],
        }],
        "clocks": [[1700000000.0, 7.0], [1700000004.0, 11.0]],
        "ranks": 1, "all_ranks": 1, "all_nodes": 1,
    }
).encode()  # fmt: skip


CALIBRATIONS = json.dumps(
    {
        "schema_version": 1,
        "machines": {"0123": [{
            "meter": "rapl", "spec": "rapl", "domain": "package", "gain": 1.1, "offset_w": -2.0,
            "limit_w": 0.5, "limit_relative": 0.01, "least_w": 20.0, "most_w": 70.0,
            "reference": "shelly:192.0.2.7", "kernel": "6.1.0", "date": "2026-11-24", "seed": 7,
            "steps": [[20.0, 20.0], [70.0, 75.0]], "temperature_c": [40.0, 61.5],
        }]},
        "delays": {"0123": {"ipmi": {
            "lag_s": 2.0, "averages_s": 3.0, "lag_within_s": 0.1, "averages_within_s": 0.2,
            "source": "measured by 10 steps of load",
        }}},
    }
).encode()  # fmt: skip


def summed(folder: Path) -> Any:
    return cluster.add([cluster.load(folder / "a.json"), cluster.load(folder / "b.json")])


def windowed(folder: Path) -> Any:
    nodes = cluster.load_nodes(folder)
    begun, ended = cluster.Clocks(1700000000.0, 7.0), cluster.Clocks(1700000004.0, 11.0)
    return cluster.window(nodes, 8.0, 10.0, begun, ended)


def record_targets() -> list[Target]:
    files = stored()
    others = {name: data for name, data in files.items() if name != "runs.jsonl"}
    parts = [
        Target(f"store-{name.partition('.')[0]}", [{name: data}], loaded,
               fixed={k: v for k, v in files.items() if k != name})
        for name, data in others.items()
    ]  # fmt: skip
    node = {"a.json": NODE, "b.json": NODE.replace(b'"node": "a"', b'"node": "b"')}
    return [
        Target("store-runs", [{"runs.jsonl": files["runs.jsonl"]}], loaded, fixed=others),
        *parts,
        Target("store-resume", [{k: files[k] for k in ("campaign.json", "runs.jsonl")}], resumed),
        Target("samples", [{"power.csv.gz": sampled()}], integrated, missing=True),
        Target("power-sum", [node], summed),
        Target("power-nodes", [{"a.json": NODE, "a.csv.gz": sampled()}], windowed),
        Target("pulses", [{"pulses.json": b'{"pulses_unix_s": [[1.5, 2.5], [4.0, 6.5]]}'}],
               lambda folder: clock.load_pulses(folder / "pulses.json")),
        Target("calibrations", [{"calibrations.json": CALIBRATIONS}],
               lambda folder: calibration.load(folder / "calibrations.json")),
    ]  # fmt: skip


# --- importers -----------------------------------------------------------------------------------


def imported(folder: Path) -> Any:
    found = runs.read(mapping.load(folder / "map.yaml"), folder)
    for item in found.campaigns:
        for run in item.runs:
            store._line(run)
    return found


def small_map() -> Files:
    with tempfile.TemporaryDirectory() as name:
        imports_made.write(Path(name))
        return {path.name: path.read_bytes() for path in Path(name).iterdir()}


SPANS = b"""\
read-32-0-1
start
Mon Nov 13 12:00:00 UTC 2017
end
Mon Nov 13 12:00:20 UTC 2017
read-32-0-2
start
seg nov 13 12:01:00 BRST 2017
end
seg nov 13 12:01:30 BRST 2017
"""
LOG_MAP = {
    "campaigns": [{
        "name": "log",
        "machine": {"hostname": "h", "architecture": "a", "kernel": "k"},
        "tool": "fio",
        "factors": {"level": "filesystem", "spatiality": "sequential", "buffer": "off"},
        "runs": {"outputs": "*.fio", "name": r"(?P<operation>\w+)-(?P<repetition>\d+)"},
        "log": {"file": "test.log", "name": r"(?P<operation>\w+)-32-0-(?P<repetition>\d+)"},
        "power": [{
            "domain": "system", "meter": "m", "csv": "power.csv", "map": "time:Time+power_w:W",
            "tz": "utc", "offset_s": 0.5, "mean": "time",
        }],
        "processor": {
            "csv": "top.csv", "time": "t", "format": "%Y-%m-%d %H:%M:%S", "tz": "utc",
            "use_percent": "cpu", "frequency_mhz": ["mhz"],
        },
    }]
}  # fmt: skip
POWER_LOG = b"Time;W\n" + b"".join(
    b"2017-11-13 12:%02d:%02d;%d,5\n" % (second // 60, second % 60, 20 + second % 7)
    for second in range(0, 120, 4)
)
TOP = b"t,cpu,mhz\n" + b"".join(
    b"2017-11-13 12:00:%02d,%d,1200\n" % (second, second) for second in range(0, 60, 10)
)


def log_folder() -> Files:
    report = (PARSERS / "fio/outputs/3.33/other/normal.txt").read_bytes()
    return {
        "map.yaml": yaml.safe_dump(LOG_MAP).encode(), "read-1.fio": report, "read-2.fio": report,
        "test.log": SPANS, "power.csv": POWER_LOG, "top.csv": TOP,
    }  # fmt: skip


def pts_tests(folder: Path) -> Any:
    """All that `eeio import` does but storing it."""
    file = composite.read(folder / "composite.xml")
    kept = []
    for system in file.systems:
        tests = experiments_of(file, system.identifier, None)
        pts.slug(system.identifier)
        machine_of(system)
        pts.idle_of(file, system.identifier)
        kept += [
            run_of(test, trial, system) for test in tests for trial in range(min(test.trials, 99))
        ]
    for run in kept:
        store._line(run)
    return kept


BLOCKS = b"1511000000 12 1200 13 1300 11 1250 14 1260 1511000004\n1511000010 1 2 1511000011\n"


def log_of(layout: csv_log.Layout) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        found = csv_log.parse_log((folder / "power.csv").read_bytes(), layout)
        known = [(t, v) for t, v in zip(found.times_s, found.values, strict=True) if v == v]
        if len(known) > 2:
            begin_s = known[0][0]
            pulses = [alignment.Pulse(begin_s + k, begin_s + k + 3) for k in (0, 10)]
            with suppress(PowerError):
                alignment.find_offset([t for t, _ in known], [v for _, v in known], pulses, 1.0)
        return found

    return read


def import_targets() -> list[Target]:
    small, logged = small_map(), log_folder()
    ccpe = (ROOT / "src/eeio/exchange/importing/ccpe2017.yaml").read_bytes()
    layout = csv_log.Layout(csv_log.parse_map("time:Time+power_w:W"), csv_log.zone_of("utc"))
    volts = csv_log.Layout(csv_log.parse_map("seconds:#1+voltage_v:#2+current_a:#3"), start=1.7e9)
    return [
        Target("import-map", [{"map.yaml": small["map.yaml"]}], imported,
               fixed={k: v for k, v in small.items() if k != "map.yaml"}),
        Target("import-map-log", [{"map.yaml": logged["map.yaml"]}], imported,
               fixed={k: v for k, v in logged.items() if k != "map.yaml"}),
        Target("import-tables", [{k: v for k, v in small.items() if k != "map.yaml"}], imported,
               fixed={"map.yaml": small["map.yaml"]}),
        Target("import-logs", [{k: v for k, v in logged.items() if k != "map.yaml"}], imported,
               fixed={"map.yaml": logged["map.yaml"]}),
        Target("import-ccpe-map", [{"map.yaml": ccpe[: ccpe.index(b"  - name: pc-hdd2")]}],
               lambda folder: [c["name"] for c in mapping.load(folder / "map.yaml").campaigns]),
        Target("test-log", [{"test.log": SPANS}],
               lambda folder: testlogs.read(folder / "test.log")),
        Target("processor-blocks", [{"blocks.txt": BLOCKS}],
               lambda folder: processors.parse_blocks(folder / "blocks.txt", 2)),
        Target("pts-import", of_files("pts/10.8.6/*.xml", "composite.xml"), pts_tests),
        Target("pts-composite", of_files("pts/10.8.6/*.xml", "composite.xml"),
               lambda folder: [result.comparison_hash for result in composite.read(
                   folder / "composite.xml").results]),
        Target("power-log", [{"power.csv": POWER_LOG}, {"power.csv": POWER_LOG.decode().encode(
            "utf-16")}], log_of(layout), missing=True),
        Target("power-log-volts", [{"power.csv": b"0.0,5.0,1.5\n0.5,5.1,1.25\n1.0,OL,1.3\n" * 1}],
               log_of(volts), missing=True),
        Target("csv-meter", [{"power.csv": POWER_LOG}], csv_meter, missing=True),
    ]  # fmt: skip


def csv_meter(folder: Path) -> Any:
    spec = f"csv:{folder / 'power.csv'},map=time:Time+power_w:W,tz=utc"
    _, options = parse_spec(spec)
    meter = csv.open_meter(spec, {**options, "file": options.pop("")}, Path("/"))
    return meter.logged(), meter.native_period_s


# --- meters --------------------------------------------------------------------------------------


class Sock:
    """A socket that has answered already."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str, *_: object) -> BytesIO:
        return BytesIO(self._data)

    def sendall(self, data: bytes) -> None:
        """Nobody listens."""

    def close(self) -> None:
        """No file stays open."""

    def shutdown(self, how: int) -> None:
        """No file stays open."""


class Answered(http_json.JsonClient):
    """A client whose every request is answered by the same bytes."""

    def __init__(self, data: bytes) -> None:
        super().__init__("http://meter.example")
        self._data = data

    def _watch(self, *_: object) -> None:
        """No thread for what has answered already."""

    def _connected(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("meter.example")
        connection.sock = Sock(self._data)  # type: ignore[assignment]
        return connection


def answer(body: str) -> bytes:
    data = body.encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data)


def over_http(make: Callable[[http_json.JsonClient], Any]) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        data = (folder / "answer.json").read_bytes()
        if not data.startswith(b"HTTP"):
            data = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data)
        return make(Answered(data)).read()

    return read


class _Hand:
    """The helper's end of a pipe."""

    def descriptors(self) -> tuple[int, int, float | None]:
        return 0, 1, None

    def close(self) -> None:
        """No file stays open."""


def ipmi_answers(folder: Path) -> Any:
    """Records of the helper that asks ipmitool."""
    helper = reader.QuestionReader(Path("x"), _Hand(), "q", ipmis._judged_dcmi, 1.0, 1.0)
    helper._rest = (folder / "records.bin").read_bytes()[:100_000]
    return helper._batch()


def counted(folder: Path) -> Any:
    helper = reader.EnergyReader(Path("x"), None, ["a", "b"], 0.1)
    helper._rest = (folder / "records.bin").read_bytes()[:100_000]
    return helper._batch()


def shouted(folder: Path) -> Any:
    packets = wattsups.PacketReader()
    found = []
    data = (folder / "line.bin").read_bytes()
    for begin in range(0, len(data), 4096):
        found += packets.feed(data[begin : begin + 4096])
    return [wattsups.record_power_w(packet, 18) for packet in found]


def streamed_by_board(folder: Path) -> Any:
    """The configuration of a PowerSensor3, and its stream."""
    records = (folder / "records.bin").read_bytes().ljust(328, b"\0")
    sensors = [boards.parse_record(records[41 * k : 41 * (k + 1)], k) for k in range(8)]
    pairs = boards.pairs_in_use(sensors)
    averager = boards.Averager(pairs, 50e-6, 0.001)
    data = (folder / "stream.bin").read_bytes()
    for begin in range(0, len(data), 700):
        averager.feed(data[begin : begin + 700], 100.0 + begin / 18 * 50e-6)
    return [pair.most_w for pair in pairs], [reading.time_s for reading in averager.readings]


def published(folder: Path) -> Any:
    message = (folder / "message.bin").read_bytes()
    keys = ("power",) if message.startswith(b"{") else ()
    meter = mqtts.MqttMeter("m", "m", "h", "t", keys, 1.0, 10.0, (), None)
    return meter._power_w(message)


def kasa(folder: Path) -> kasas.FirstGeneration:
    """A plug whose every answer is the file."""
    plug = kasas.FirstGeneration("h", 1, 1.0)
    data = kasas.encrypted((folder / "answer.json").read_bytes())
    plug._exchanged = lambda request: data  # type: ignore[method-assign]
    return plug


def answered_by_kasa(folder: Path) -> Any:
    return kasa(folder).power_w()


def selected_of_kasa(folder: Path) -> Any:
    plug = kasa(folder)
    plug.select("1")
    return plug.model, plug._context


def registers(folder: Path) -> Any:
    """Those of an answer, as each type."""
    data = (folder / "registers.bin").read_bytes()[:16]
    words = [int.from_bytes(data[k : k + 2], "big") for k in range(0, len(data) - 1, 2)]
    values = []
    for kind in modbuses.TYPES:
        number = modbuses.Number(0, kind, factor=1e-3)
        with suppress(PowerError):
            values.append(number.of(words[: number.registers]))
    return values


def streamed_by_qis(folder: Path) -> Any:
    stream = quarchs.parsed_header(text(folder, "header.xml"))
    meter = quarchs.QuarchMeter("q", "q", None, "m", "16k", stream, ())  # type: ignore[arg-type]
    return stream.period_s, stream.factors, meter._rows(text(folder, "rows.txt"))


def reported_by_ipmitool(folder: Path) -> Any:
    lines = text(folder, "answer.txt").splitlines()
    sensors = ipmis.watt_sensors(lines)
    complete_system(sensors)
    with suppress(PowerError):
        return sensors, ipmis.parse_node_manager(lines)
    return sensors, ipmis.parse_dcmi(lines)


def logged_by_drive(folder: Path) -> Any:
    page = (folder / "log.bin").read_bytes()[:512].ljust(512, b"\0")
    return nvme.interval_power_w(page)


def tree(*names: str) -> Callable[[Path], Path]:
    """Files called a+b+c become a/b/c."""

    def grow(folder: Path) -> Path:
        root = folder / "root"
        for name in names:
            if (folder / name).exists():
                path = root.joinpath(*name.split("+"))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes((folder / name).read_bytes())
        return root

    return grow


def in_tree(files: Files, open_meter: Callable[[Path], Any]) -> Callable[[Path], Any]:
    grow = tree(*files)

    def read(folder: Path) -> Any:
        meter = open_meter(grow(folder))
        values = [
            value
            for channel, value in zip(meter.channels, meter.read(), strict=True)
            # As the sampler judges them.
            if value is not None and absurdity(channel, value) is None
        ]
        return [replace(c) for c in meter.channels], values, meter.native_period_s

    return read


RAPL = {
    "intel-rapl:0+name": b"package-0\n", "intel-rapl:0+energy_uj": b"1000000\n",
    "intel-rapl:0+max_energy_range_uj": b"262143328850\n",
    "intel-rapl:0:0+name": b"dram\n", "intel-rapl:0:0+energy_uj": b"500\n",
    "intel-rapl:0:0+max_energy_range_uj": b"65532610987\n",
}  # fmt: skip
HWMON = {
    "hwmon0+name": b"ina3221\n", "hwmon0+in1_input": b"5000\n", "hwmon0+curr1_input": b"800\n",
    "hwmon0+in1_label": b"VDD_IN\n", "hwmon0+update_interval": b"100\n",
}  # fmt: skip
IIO = {
    "iio:device0+name": b"ina226\n", "iio:device0+in_power2_raw": b"420\n",
    "iio:device0+in_power2_scale": b"25.000000\n",
}  # fmt: skip
SUPPLY = {
    "axp20x-ac+type": b"Mains\n", "axp20x-ac+online": b"1\n",
    "axp20x-ac+voltage_now": b"5000000\n", "axp20x-ac+current_now": b"800000\n",
}  # fmt: skip
PERF = {
    "type": b"23\n",
    "cpumask": b"0-1\n",
    "events+energy-pkg": b"event=0x02\n",
    "events+energy-pkg.unit": b"Joules\n",
    "events+energy-pkg.scale": b"2.3283064365386962890625e-10\n",
    "cpus+cpu0+topology+physical_package_id": b"0\n",
    "cpus+cpu0+topology+die_id": b"0\n",
    "cpus+cpu1+topology+physical_package_id": b"0\n",
    "cpus+cpu1+topology+die_id": b"1\n",
}
CRAY = {
    "energy": b"9000123 J 1700000000000000 us\n",
    "freshness": b"1234\n",
    "raw_scan_hz": b"10\n",
    "cpu_power": b"80 W 1700000000000000 us\n",
    "memory_energy": b"1000050 J 17000 us\n",
}
PMIC = b" VDD_CORE_A current(7)=6.22421000A\n VDD_CORE_V volt(15)=0.86173300V\n"
CHALLENGE = b'Digest qop="auth", realm="shelly", nonce="1716556501", algorithm=SHA-256'
GB200_CHASSIS = (
    b'{"ChassisType": "RackMount", "PowerWatts": {"Reading": 9, "DataSourceUri": "/redfish/v1/x"}}'
)  # fmt: skip
STAT = b"cpu  100 0 50 9000 20 0 3 0 0 0\ncpu0 50 0 25 4500 10 0 1 0 0 0\nintr 5\n"


def perf_events(folder: Path) -> Any:
    unit = tree(*PERF)(folder)
    found, kind = perf._events(unit, unit / "cpus", 500.0, None)
    return [replace(event.channel) for event in found], [e.scale_j for e in found], kind


def requests(folder: Path) -> Any:
    """Lines to the power session, without a meter."""
    lines = text(folder, "requests.jsonl").splitlines()[:50]
    answers = StringIO()
    talk = session.Session(PowerMonitor(PowerSource((), None), Path("/dev/null")), Stops())
    # What it does with the time and with processes is not what is tried here.
    talk.answer = lambda request: _answered(request)  # type: ignore[method-assign]
    session.serve(talk, lines, answers)
    return [json.loads(line) for line in answers.getvalue().splitlines()]


def _answered(request: Any) -> dict[str, Any]:
    if request["do"] == "idle":
        return {"idle": quantities.PAUSE.checked(request["seconds"])}
    if request["do"] == "watch":
        return {"pid": quantities.COUNT.whole_number(request["pid"])}
    raise ValueError("not one")


def meter_targets() -> list[Target]:
    redfish = '{"PowerWatts": {"Reading": 87.5}, "PowerControl": [{"PowerConsumedWatts": 88}]}'
    shelly = '{"apower": 12.5, "aenergy": {"total": 100.25}, "meters": [{"power": 3.5}]}'
    home = (
        '{"state": "87.5", "last_updated": "2026-11-24T12:00:00.5+00:00", "last_reported": null, '
        '"attributes": {"unit_of_measurement": "W"}}'
    )
    kwollect = (
        '[{"timestamp": "2025-02-02T14:39:37.003778+01:00", "device_id": "taurus-7", "metric_id": '
        '"wattmetre_power_watt", "value": 69.4, "labels": {"_device_orig": ["wattmetre1-port6"]}}]'
    )
    prometheus = (
        '{"status": "success", "data": {"resultType": "matrix", "result": '
        '[{"metric": {"a": "b"}, "values": [[10.5, "100.25"], [25.5, "850.5"]]}]}}'
    )
    quarch_header = (
        "<?xml version='1.0'?><h><devicePeriod>65536uS</devicePeriod><channels><channel><name>5V"
        "</name><units>mV</units></channel><channel><name>5V</name><units>uW</units></channel>"
        "</channels></h>"
    )
    tasmota = '{"StatusSNS": {"ENERGY": {"Power": [3, 4.5]}}}'
    one = '{"StatusSNS": {"ENERGY": {"Power": 42}}}'
    dcmi = b" dc 57 00 02 00 80 00 60 00 c0 9d 5f 65 e8 03 00 00 40\nPwr Consumption,88,Watts,ok\n"
    record = b"#d,-,18,1203,1190,1010,5,0,0,0,0,0,0,0,0,0,0,0,0,0,0;"
    answered = struct.pack("=qqq", 10**9, 10**9 + 5, len(dcmi)) + dcmi
    return [
        Target("redfish", [{"answer.json": redfish.encode()}], over_http(
            lambda client: redfishes.RedfishMeter(
                "r", "r", client, redfishes._Reading((("/x", ("PowerWatts", "Reading")),), 1.0)))),
        Target("redfish-chassis", [{"answer.json": b'{"Members": [{"@odata.id": '
                                    b'"/redfish/v1/Chassis/1"}]}'}],
               lambda folder: redfishes._members(
                   Answered(answer(text(folder, "answer.json"))), "/redfish/v1/Chassis")),
        Target("redfish-places", [{"answer.json": redfish.encode()},
                                  {"answer.json": GB200_CHASSIS}],
               lambda folder: redfishes._system_reading(
                   Answered(answer(text(folder, "answer.json"))), "Self")),
        Target("shelly", [{"answer.json": shelly.encode()}], over_http(
            lambda client: shellies.ShellyMeter(
                "s", "s", client, 0, shellies.COMPONENTS["switch"]))),
        Target("shelly-1", [{"answer.json": shelly.encode()}], over_http(
            lambda client: shellies.ShellyMeter("s", "s", client, 0, None))),
        Target("prometheus", [{"answer.json": prometheus.encode()}],
               over_http(lambda client: proms.PrometheusMeter(
                   "p", "p", client, "m", "J", 15.0, ()))),
        Target("mqtt", [{"message.bin": b'{"power": 41.5, "ENERGY": {"Power": 3}}'},
                        {"message.bin": b"63.7"}],
               published),
        Target("homeassistant", [{"answer.json": home.encode()}], over_http(
            lambda client: homes.HomeAssistantMeter(
                "h", "h", client, "sensor.a", "W", 10.0, 1e9, ()))),
        Target("kasa", [{"answer.json": b'{"emeter": {"get_realtime": {"power_mw": 87500}}}'},
                        {"answer.json": b'{"emeter": {"get_realtime": {"power": 8.5}}}'}],
               answered_by_kasa),
        Target("kasa-strip", [{"answer.json": b'{"system": {"get_sysinfo": {"model": "HS300", '
                               b'"deviceId": "8006", "children": [{"alias": "a", "id": "00"}]}}}'}],
               selected_of_kasa),
        Target("kwollect", [{"answer.json": kwollect.encode()}], lambda folder: kwollects.Query(
            "lyon", "taurus-7", "wattmetre_power_watt").values(
                Answered(answer(text(folder, "answer.json"))).get("/metrics"))),
        Target("modbus", [{"registers.bin": struct.pack(">d", 87.5)}], registers),
        Target("powersensor3", [{
            "records.bin": b"".join(pair.records() for pair in NVME),
            "stream.bin": Patterns(NVME).sets(0, 200, (2.5, 6.0)),
        }], streamed_by_board),
        Target("quarch", [{"header.xml": quarch_header.encode(), "rows.txt": b"0,5,2\n65536,5,3"}],
               streamed_by_qis),
        Target("quarch-module", [{"answer.txt": b"5V V = 5012 mV\n5V I = 400000 uA\nPERST# = 1"}],
               lambda folder: quarchs.parsed_outputs(text(folder, "answer.txt"))),
        Target("tasmota", [{"answer.json": tasmota.encode()}, {"answer.json": one.encode()}],
               over_http(lambda client: tasmotas.TasmotaMeter("t", "t", client, "/cm"))),
        Target("http", [{"answer.json": answer(one)}], over_http(
            lambda client: tasmotas.TasmotaMeter("t", "t", client, "/cm"))),
        Target("wattsup", [{"line.bin": record * 5 + b"#v,-,8,1,2,3,4,5,6,7,8;\n" + record}],
               shouted),
        Target("ipmi", [{"answer.txt": dcmi}], reported_by_ipmitool),
        Target("ipmi-helper", [{"records.bin": answered * 4}], ipmi_answers,
               missing=True),
        Target("rapl-helper", [{"records.bin": struct.pack("=qqqq", 10**9, 10**9, 5, 6) * 9}],
               counted, missing=True),
        Target("nvme", [{"log.bin": bytes(240) + struct.pack("<I", 1 << 16 | 4500) + bytes(268)}],
               logged_by_drive),
        Target("rapl", [RAPL], in_tree(RAPL, lambda root: rapls.open_meter(
            "rapl", {"root": str(root), "reader": "no"}, Path("/"))),
            allowed=(*ALLOWED, OSError, ValueError)),
        Target("hwmon", [HWMON], in_tree(HWMON, lambda root: hwmons.open_meter(
            "hwmon", {"root": str(root)}, Path("/")))),
        Target("iio", [IIO], in_tree(IIO, lambda root: iio.open_meter(
            "iio", {"root": str(root)}, Path("/")))),
        Target("power-supply", [SUPPLY], in_tree(SUPPLY, lambda root: power_supply.open_meter(
            "power_supply", {"root": str(root)}, Path("/")))),
        Target("cray", [CRAY], in_tree(CRAY, lambda root: cray.open_meter(
            "cray", {"root": str(root)}, Path("/")))),
        Target("pmic", [{"adc.txt": PMIC}], lambda folder: pmic.power_w(text(folder, "adc.txt"))),
        Target("digest", [{"challenge.txt": CHALLENGE}], lambda folder: http_json.parameters(
            text(folder, "challenge.txt"))),
        Target("perf", [PERF], perf_events, allowed=(OSError, ValueError)),
        Target("drive-estimate", [{"table": json.dumps(DRIVE_TABLE).encode()}], drive_table),
        Target("modelled", [{"stat": STAT}], lambda folder: modelled.parse_stat(
            sysfs.read_text(folder / "stat")), allowed=(ValueError,)),
        Target("session", [{"requests.jsonl": b'{"do": "idle", "seconds": 5}\n{"do": "watch", '
                            b'"pid": 4711, "start_s": 812.25}\n'}], requests),
        Target("meter-spec", [{"spec.txt": b"csv:scope.csv,map=time:T+power_w:P (W),tz=+01:00,"
                               b"offset_s=0.8,decimal=comma,start=2026-01-31T12:00:00"}],
               lambda folder: csv.open_meter("csv", _options(folder), Path("/"),
                                             lambda: 0.0).native_period_s),
    ]  # fmt: skip


def _options(folder: Path) -> dict[str, str]:
    _, options = parse_spec(text(folder, "spec.txt"))
    return {**options, "file": str(folder / "none.csv")}


# --- definitions ---------------------------------------------------------------------------------

WORKLOAD = b"""\
name: data server
share_of: bytes
workload:
  - operation: read
    spatiality: sequential
    request_size_bytes: 4m
    cache: {buffer: off}
    share: 0.75
  - {operation: write, spatiality: random, request_size_bytes: 32k,
     cache: {buffer: on}, share: 0.25}
"""

COST_INPUTS = b"""\
price_per_kwh: 0.30
grid_g_per_kwh: 400
pue: 1.5
duty: 0.25
purchase: 1000
embodied_kg: 300
years: 5
capacity_bytes: 4e12
currency: EUR
"""
GRID_HOURS = b"""\
hour_utc,g_per_kwh
2025-01-01T00:00Z,312.5
2025-01-01T01:00Z,304
2025-01-01T02:00Z,290
"""


def definition_targets() -> list[Target]:
    suites_of_ours = sorted((ROOT / "suites").iterdir())
    suite = suites_of_ours[-1]
    profile = ROOT / "test-profiles/eeio-fio-1.0.0"
    dummy = DATA / "suites/dummy-suite"
    xml = {"suite-definition.xml": (dummy / "suite-definition.xml").read_bytes()}
    definition = {"test-definition.xml": (profile / "test-definition.xml").read_bytes()}
    presets = {"presets.conf": (profile / "presets.conf").read_bytes()}
    protocols = [{"protocol.yaml": (each / "protocol.yaml").read_bytes()}
                 for each in (dummy, *suites_of_ours)]  # fmt: skip
    return [
        Target("protocol", protocols, lambda folder: suites.load(folder).presets, fixed=xml),
        Target("suite", [
            xml, {"suite-definition.xml": (suite / "suite-definition.xml").read_bytes()}],
               suites.load, fixed=protocols[0]),
        Target("presets", [presets], profiles.load, fixed=definition),
        Target("profile", [definition], profiles.load, fixed=presets),
        Target("pts-words", [{"results-definition.xml": (
            profile / "results-definition.xml").read_bytes()}],
            lambda folder: composite.pts_descriptions(folder)),
        Target("workload", [{"mix.yaml": WORKLOAD}],
               lambda folder: workload_file.load_workload(folder / "mix.yaml")),
        Target("cost-inputs", [{"site.yaml": COST_INPUTS}],
               lambda folder: cost_inputs.load_inputs(folder / "site.yaml")),
        Target("grid-hours", [{"hours.csv": GRID_HOURS}],
               lambda folder: cost_inputs.read_grid(folder / "hours.csv")),
        Target("size", [{"size.txt": b"4096"}, {"size.txt": b"20g"}],
               lambda folder: parse_size(text(folder, "size.txt"))),
        Target("campaign-name", [{"name.txt": b"eeio-suite-quick-20260101-120000"}],
               lambda folder: campaign_name(text(folder, "name.txt")), allowed=(LimitError,)),
    ]  # fmt: skip


# --- machines and drives -------------------------------------------------------------------------


def laid_out(folder: Path) -> Any:
    """A description, and its tree as `--replay` writes it."""
    found = machine_description.load(next(folder.glob("machine.*")))
    root, _ = machine_description.lay_out(found, folder / "laid-out")
    outside = [path for path in folder.iterdir() if path.name not in ("machine.json",
               "machine.yaml", "laid-out")]  # fmt: skip
    assert not outside and root.is_dir(), outside
    return replace(found, services={})  # data for simulators, whatever they are


def captured() -> bytes:
    """A small machine as `eeio machines capture` hands it on."""
    found = machine_description.load(DATA / "machines/kvm-guest/machine.yaml")
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "machine.tar.gz"
        machine_capture.write(machine_capture.MachineRecording(found, {}), path)
        return path.read_bytes()


def handed_on(folder: Path) -> Any:
    """What capture keeps of the kernel's texts."""
    kept = machine_capture._mounts(text(folder, "mountinfo"))
    return kept, machine_capture._processors(text(folder, "cpuinfo"))


class _Recorder:
    """A server that has printed a file."""

    command = "ssh nas eeio meter node -"

    def __init__(self, printed: Path) -> None:
        self._printed = printed

    def finish(self) -> bytes:
        return self._printed.read_bytes()


def of_server(folder: Path) -> Any:
    place = folder / "servers"
    recording = server_power.ServerPower([], place, None)  # type: ignore[arg-type]
    recording._keep(1, _Recorder(folder / "printed.json"))  # type: ignore[arg-type]
    servers = cluster.load_servers(place)
    clocks = cluster.Clocks(1700000000.0, 7.0), cluster.Clocks(1700000004.0, 11.0)
    return cluster.parts(servers, 8.0, 10.0, *clocks)


def pilot() -> bytes:
    run = made.design("c", 1).runs[0].experiment.experiment
    task = pilot_store.PilotTask("length", "eeio-fio-1.0.0", run, "runtime_s", "60", "standard",
                                 5.0, 0.02, (10.0, 20.0), ("rapl",))  # fmt: skip
    found = pilot_store.StoredPilot(
        pilot_store.SCHEMA_VERSION, task, "10", 1 << 30, "10 s will do", "c",
        "2026-01-01T00:00:00+00:00", made.MACHINE, {"--on": "disk"},
    )  # fmt: skip
    return json.dumps(found.to_json()).encode()


def of_pilot(folder: Path) -> Any:
    found = pilot_store._read(folder / "pilot.json")
    if isinstance(found, str):
        raise EeioError(found)
    return found, found.why_not(found.asked, made.MACHINE, {})


def worn(folder: Path) -> Any:
    """The wear of a drive that answers with the file."""
    (folder / "nvme0").mkdir()
    (folder / "device").symlink_to("nvme0")
    log = (folder / "log.bin").read_bytes().ljust(512, b"\0")[:512]
    with patch.object(drive, "read_smart_log", lambda fd: log):
        return (
            drive.wear(folder, folder), drive.percentage_used(folder, folder)
        )  # fmt: skip


WIPEFS = b"""{"signatures": [
{"type": "gpt", "label": null, "uuid": "0b8e-11"}, {"type": "PMBR", "label": null, "uuid": null},
{"type": "ext4", "label": "data", "uuid": "b8b2"}]}"""


def signed(folder: Path) -> Any:
    found = device._parse("/dev/sda", text(folder, "wipefs.json"))
    texts = [(each.names, each.text) for each in found]
    assert all(word.isprintable() for _, word in texts)
    return (
        texts,
        device.options_of_signatures(found),
        device.signatures_listed(found, Path("/dev/sda")),
    )


IO_STAT = b"""8:16 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0
8:0 rbytes=1212416 wbytes=52428800 rios=34 wios=50 dbytes=0 dios=0
"""


def darshan_log(folder: Path) -> Any:
    """Events of a log; PyDarshan's library reads a file in C, so it gets its parts from here."""
    body = inputs.parse_json(text(folder, "records.json"), inputs.TOOL_FILE_BYTES)
    report = SimpleNamespace(
        modules=body["modules"], name_records=body["names"],
        records={"DXT_POSIX": SimpleNamespace(to_df=lambda: [
            {**record, **{
                f"{operation}_segments": SimpleNamespace(itertuples=lambda index, o=operation, r=(
                    record): [SimpleNamespace(**row) for row in r[f"{o}_segments"]])
                for operation in ("read", "write")
            }} for record in body["records"]])},
    )  # fmt: skip
    module = SimpleNamespace(DarshanReport=lambda *_, **__: report)
    with patch.dict(sys.modules, {"darshan": module}):
        return followed(darshan.read(folder / "records.json"))


SEGMENT = {"offset": 0, "length": 4096, "start_time": 0.001, "end_time": 0.002}
DARSHAN = json.dumps(
    {
        "modules": {"DXT_POSIX": {"partial_flag": False}}, "names": {"7": "/tmp/a"},
        "records": [{"id": 7, "rank": 0, "write_segments": [SEGMENT, SEGMENT],
                     "read_segments": [SEGMENT]}],
    }
).encode()  # fmt: skip


def machine_targets() -> list[Target]:
    small = [DATA / f"machines/{name}/machine.yaml" for name in (
        "kvm-guest", "dell-idrac-redfish", "epc-disk")]  # fmt: skip
    bodies = [machine_description.load(path).to_json() for path in small]
    mounts = b"24 1 8:1 /x / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n"
    processor = b"processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon\n"
    node = json.dumps({**json.loads(NODE), "samples": base64.b64encode(sampled()).decode()})
    return [
        Target("machine-json", [{"machine.json": json.dumps(body).encode()} for body in bodies],
               laid_out),
        Target("machine-yaml", [{"machine.yaml": small[1].read_bytes()}], laid_out),
        Target("machine-capture", [{"machine.tar.gz": captured()}],
               lambda folder: machine_capture.load(folder / "machine.tar.gz")),
        Target("machine-filters", [{"mountinfo": mounts * 2, "cpuinfo": processor * 2}], handed_on),
        Target("server-power", [{"printed.json": node.encode()}], of_server),
        Target("pilot", [{"pilot.json": pilot()}], of_pilot),
        Target("endurance", [{"log.bin": bytes(5) + b"\x07" + bytes(42) + bytes([9] * 3)}], worn),
        Target("signatures", [{"wipefs.json": WIPEFS}], signed),
        Target("io-group", [{"io.stat": IO_STAT}],
               lambda folder: counters.parse_io_stat(text(folder, "io.stat"), "8:0"),
               allowed=(ValueError,)),
        Target("darshan", [{"records.json": DARSHAN}], darshan_log,
               allowed=(*ALLOWED, KeyError, ValueError, TypeError, AttributeError)),
    ]  # fmt: skip


@cache
def all_targets() -> dict[str, Target]:
    """Every target by its name."""
    found = [
        *tool_targets(), *trace_targets(), *record_targets(), *import_targets(), *meter_targets(),
        *definition_targets(), *machine_targets(),
    ]  # fmt: skip
    return {target.name: target for target in found}
