"""`eeio import --power`: what each program logs, and the energy of phases from it."""

import gzip
import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.eeio.importing.importer import Importer
from tests.plugin import InProcess

from eeio.exchange.importing import power_logs
from eeio.exchange.importing.power_of_results import (
    Window,
    aligned,
    energy_of,
)
from eeio.record.store import load
from eeio_power import samples
from eeio_power.calibration import Calibration
from eeio_power.delay import BMC, Delay
from eeio_power.meters import Channel, about
from eeio_power.reading import DOMAINS
from eeio_power.samples import MeterInfo, header_line, sample_lines

START_S = 1764000000.0
LOW_W, HIGH_W = 120.0, 180.0
RUNS = [(100.0, 122.7), (149.6, 184.9), (200.0, 229.9), (248.9, 281.9), (307.7, 329.6)]
"""s after START_S; irregular, as the offset could not be distinct otherwise."""


def watts(time_s: float, runs: Sequence[tuple[float, float]] = RUNS) -> float:
    busy = sum(a <= time_s - START_S < b for a, b in runs)
    return LOW_W + busy * (HIGH_W - LOW_W)


def joules(begin_s: float, end_s: float, runs: Sequence[tuple[float, float]] = RUNS) -> float:
    """Energy between two times, exactly."""
    begin_s, end_s = begin_s - START_S, end_s - START_S
    busy_s = sum(max(0.0, min(b, end_s) - max(a, begin_s)) for a, b in runs)
    return LOW_W * (end_s - begin_s) + (HIGH_W - LOW_W) * busy_s


def means(period_s: float = 1.0, last_s: float = 420.0) -> Iterator[tuple[float, float]]:
    """(time, mean power since the time before)."""
    for k in range(1, int(last_s / period_s)):
        time_s = START_S + k * period_s
        yield time_s, joules(time_s - period_s, time_s) / period_s


def iso(time_s: float, zone: str = "+00:00") -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds")[:-6] + zone


def write_results(folder: Path, runs: Sequence[tuple[float, float]] = RUNS) -> list[Path]:
    """fio's reports of the runs."""
    paths = []
    for place, (begin, end) in enumerate(runs):
        lasted_s = end - begin
        side = {
            "io_bytes": 10**9, "io_kbytes": 976562, "bw_bytes": round(1e9 / lasted_s), "bw": 1,
            "iops": 50.0, "runtime": round(lasted_s * 1000), "total_ios": 1000,
        }  # fmt: skip
        body = {
            "fio version": "fio-3.36", "timestamp_ms": round((START_S + end) * 1000),
            "timestamp": int(START_S + end), "global options": {"rw": "read", "bs": "1m"},
            "jobs": [{"jobname": "a", "groupid": 0, "error": 0, "job options": {}, "read": side}],
        }  # fmt: skip
        paths.append(folder / f"run{place}.json")
        paths[-1].write_text(json.dumps(body))
    return paths


def wattsup() -> str:
    return "".join(f"{t:.1f} #d,-,18,{round(10 * w)},1201{',_' * 16};\n" for t, w in means())


def ptdaemon() -> str:
    return "".join(
        f"Time,{datetime.fromtimestamp(t, UTC):%m-%d-%Y %H:%M:%S}.000,Watts,{w:.3f},Volts,230.1,"
        "Amps,0.5,PF,0.97,Mark,notset\n" for t, w in means()
    )  # fmt: skip


def dcmi() -> str:
    return "".join(
        f"{int(t)}\n\n    Instantaneous power reading:                   {round(watts(t))} Watts\n"
        f"    Minimum during sampling period:      90 Watts\n"
        f"    IPMI timestamp:                           {iso(t)}\n" for t, _ in means()
    )  # fmt: skip


def sdr() -> str:
    return "".join(
        f"{iso(t)}\nFan1             | 4200 RPM          | ok\n"
        f"PS1 Input        | {round(watts(t)) - 60} Watts         | ok\n"
        f"PS2 Input        | 60 Watts          | ok\n" for t, _ in means()
    )  # fmt: skip


def turbostat() -> str:
    lines = []
    for k, (t, w) in enumerate(means()):
        if k % 50 == 0:
            lines.append("Time_Of_Day_Seconds\tCore\tCPU\tBusy%\tPkgWatt\tRAMWatt")
        lines.append(f"{t:.6f}\t-\t-\t5.00\t{w:.2f}\t{w / 10:.2f}")
        lines.append(f"{t:.6f}\t0\t0\t5.00\t{w:.2f}\t{w / 10:.2f}")
        lines.append(f"{t:.6f}\t0\t1\t5.00")
    return "\n".join(lines) + "\n"


def perf() -> str:
    head = f"# started on {datetime.fromtimestamp(START_S, UTC):%a %b %d %H:%M:%S %Y}\n\n"
    return head + "".join(
        f"     {t - START_S:.9f},{w:.2f},Joules,power/energy-pkg/,1000000,100.00,,\n"
        f"     {t - START_S:.9f},{w / 10:.2f},Joules,power/energy-ram/,1000000,100.00,,\n"
        for t, w in means()
    )


def nvidia() -> str:
    return "timestamp, index, power.draw [W]\n" + "".join(
        f"{iso(t + k * 0.01, '').replace('-', '/').replace('T', ' ')}, {k}, {watts(t) / 2:.2f} W\n"
        for t, _ in means() for k in (0, 1)
    )  # fmt: skip


def codecarbon() -> str:
    head = "timestamp,project_name,run_id,duration,cpu_energy,gpu_energy,ram_energy\n"
    return head + "".join(
        f"{iso(START_S + end + 0.2, '')},p,{k}f9a,{end - begin + 0.4},"
        f"{joules(START_S + begin - 0.2, START_S + end + 0.2) / 3.6e6!r},0.0,0.001\n"
        for k, (begin, end) in enumerate(RUNS)
    )


def scaphandre() -> str:
    return json.dumps([
        {"host": {"consumption": 9e9, "timestamp": t, "components": {}}, "consumers": [],
         "sockets": [{"id": k, "consumption": w * 5e5,
                      "domains": [{"name": "dram", "consumption": 2e6}]} for k in (0, 1)]}
        for t, w in means()
    ])  # fmt: skip


def powerapi_csv() -> str:
    return "timestamp,sensor,target,power,scope,socket\n" + "".join(
        f"{int(t * 1000)},s,{target},{w / 2},cpu,{socket}\n"
        for t, w in means() for target in ("rapl", "global", "bash") for socket in (0, 1)
    )  # fmt: skip


def powerapi_json() -> str:
    return "".join(
        json.dumps({"timestamp": iso(t), "sensor": "s", "target": "global", "power": w,
                    "metadata": {"scope": "cpu", "socket": 0}}) + "\n"
        for t, w in means()
    )  # fmt: skip


def kepler() -> str:
    """Counters of two packages and two modes, one of which began at another value."""

    def counter(share: float, base: float) -> list[list[Any]]:
        return [[t, f"{base + share * joules(START_S, t):.3f}"] for t, _ in means(2.0)]

    parts = [
        {"metric": {"__name__": "kepler_node_package_joules_total", "instance": "n1",
                    "package": str(p), "mode": mode, "source": "rapl-sysfs"},
         "values": counter(0.25, 1000.0 * p)}
        for p in (0, 1) for mode in ("dynamic", "idle")
    ]  # fmt: skip
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": parts}})


def ipmi_exporter() -> str:
    # Each scrape has another value: their interval is that of the changes.
    values = [[t, str(round(watts(t)) + k % 2)] for k, (t, _) in enumerate(means())]
    metric = {"__name__": "ipmi_dcmi_power_consumption_watts", "instance": "n1"}
    body = {"resultType": "matrix", "result": [{"metric": metric, "values": values}]}
    return json.dumps({"status": "success", "data": body})


def collectl() -> str:
    return "# collectl V4.3\n#Date Time [ENV]Fan1 [ENV]Power\n" + "".join(
        f"{datetime.fromtimestamp(t, UTC):%Y%m%d %H:%M:%S} 4200 {round(watts(t))}\n"
        for t, _ in means()
    )


def telegraf() -> str:
    return "".join(
        f"cpu,cpu=cpu0,host=h usage_idle=9.5 {int(t)}000000000\n"
        f"ipmi_sensor,host=h,name=pwr_consumption,unit=watts value={watts(t)} {int(t)}000000001\n"
        f"ipmi_sensor,host=h,name=ambient,unit=degrees_c value=24 {int(t)}000000002\n"
        f"powerstat_package,host=h,package_id=0 current_power_consumption_watts={w / 2:.2f},"
        f"thermal_design_power_watts=160 {int(t)}000000000\n"
        f"powerstat_package,host=h,package_id=1 current_power_consumption_watts={w / 2:.2f} "
        f"{int(t)}000000000\n" for t, w in means()
    )  # fmt: skip


LOGS: dict[str, tuple[Callable[[], str], str, str, str]] = {
    "wattsup": (wattsup, "system", "mean", "measured"),
    "ptdaemon": (ptdaemon, "system", "mean", "measured"),
    "dcmi": (dcmi, "system", "sample", "measured"),
    "sdr": (sdr, "system", "sample", "measured"),
    "turbostat": (turbostat, "package", "mean", "measured"),
    "perf": (perf, "package", "mean", "measured"),
    "nvidia-smi": (nvidia, "accelerator", "sample", "device-reported"),
    "codecarbon": (codecarbon, "package", "counter", "modelled"),
    "scaphandre": (scaphandre, "package", "mean", "measured"),
    "powerapi": (powerapi_csv, "package", "mean", "measured"),
    "powerapi-json": (powerapi_json, "package", "mean", "modelled"),
    "kepler": (kepler, "package", "counter", "measured"),
    "ipmi_exporter": (ipmi_exporter, "system", "sample", "measured"),
    "collectl": (collectl, "system", "sample", "measured"),
    "telegraf": (telegraf, "system", "sample", "measured"),
}


@pytest.mark.parametrize("name", LOGS)
def test_each_log_gives_the_energy_of_the_runs(
    tmp_path: Path, imported: Importer, name: str
) -> None:
    made, domain, form, kind = LOGS[name]
    results = write_results(tmp_path)
    log = tmp_path / "power"
    log.write_text(made())
    if domain not in DOMAINS:
        found = power_logs.read(log)
        assert found.rejected and domain in found.rejected
        return
    # These logs are of no lag: that of a BMC is not known otherwise, nor that of Kepler.
    is_late = form == "sample" or name == "kepler"
    stated = f"{log},lag_s=0,averages_s=0" if is_late else log
    body = imported(*results, "--dry-run", "--power", stated, "--power-offset", "0")
    (used,) = body["power"]
    (series,) = [one for one in used["series"] if one["domain"] == domain][:1]
    assert (used["rejected"], series["form"], series["kind"]) == (None, form, kind)
    for file, (begin, end) in zip(body["files"], RUNS, strict=True):
        (phase,) = file["reports"][0]["phases"]
        (reading,) = [one for one in phase["energy"] if one["domain"] == domain]
        wanted_j = joules(START_S + begin, START_S + end)
        assert reading["energy_j"] == pytest.approx(wanted_j, rel=0.02), reading["reasons"]
        assert reading["power_w"] == pytest.approx(wanted_j / (end - begin), rel=0.02)
        assert reading["coverage"] > 0.9 and reading["uncertainty_j"] > 0
        if kind != "modelled":
            assert abs(reading["energy_j"] - wanted_j) <= reading["uncertainty_j"]
    if name in ("turbostat", "perf", "scaphandre"):
        memory = [one for one in used["series"] if one["domain"] == "dram"]
        assert len(memory) == 1


def test_the_delay_of_a_bmc_is_in_the_uncertainty_unless_it_is_stated(
    tmp_path: Path, imported: Importer
) -> None:
    """Of a log that lags by 4 s."""
    results = write_results(tmp_path)
    log = tmp_path / "power"
    log.write_text(dcmi())

    def energies(power: str) -> list[dict[str, Any]]:
        body = imported(*results, "--dry-run", "--power", power, "--power-offset", "-4")
        return [file["reports"][0]["phases"][0]["energy"][0] for file in body["files"]]

    for unknown, stated, (begin, end) in zip(
        energies(str(log)), energies(f"{log},lag_s=4,averages_s=0"), RUNS, strict=True
    ):
        true_j = joules(START_S + begin, START_S + end)
        assert abs(unknown["energy_j"] - true_j) <= unknown["uncertainty_j"]
        assert abs(stated["energy_j"] - true_j) <= stated["uncertainty_j"]
        assert stated["energy_j"] == pytest.approx(true_j, rel=0.02)
        assert stated["uncertainty_j"] < unknown["uncertainty_j"]


READS_RAPL = (
    "turbostat", "perf", "codecarbon", "scaphandre", "powerapi", "powerapi-json",
)  # fmt: skip
"""Logs of counters that are read at the time of the record."""


@pytest.mark.parametrize("name", LOGS)
def test_only_logs_of_the_processor_s_counters_are_punctual(tmp_path: Path, name: str) -> None:
    made, domain, _, _ = LOGS[name]
    log = tmp_path / "power"
    log.write_text(made())
    of_domain = [series for series in power_logs.read(log).series if series.domain == domain]
    assert of_domain
    assert all((series.delay is None) == (name in READS_RAPL) for series in of_domain)


LAG_S, MEAN_S = 4.0, 4.0


def prometheus(metric: str, labels: dict[str, str], period_s: float = 1.0) -> str:
    """Of a meter that lags by LAG_S and averages MEAN_S."""
    values = []
    total_j = 1000.0
    for k in range(1, int(420.0 / period_s)):
        time_s = START_S + k * period_s
        power_w = joules(time_s - LAG_S - MEAN_S, time_s - LAG_S) / MEAN_S
        total_j += power_w * period_s
        value = power_w if metric.endswith("_watts") else total_j
        values.append([time_s, f"{value:.3f}"])
    result = [{"metric": {"__name__": metric, "instance": "n1", **labels}, "values": values}]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def replicas(metric: str) -> str:
    """The same series, from two servers of Prometheus."""
    every = [json.loads(prometheus(metric, {"prometheus_replica": name})) for name in "ab"]
    every[0]["data"]["result"] += every[1]["data"]["result"]
    return json.dumps(every[0])


def redfish_of_telegraf(name: str, source: str = "bmc1", share: float = 1.0) -> str:
    escaped = name.replace(" ", "\\ ")
    return "".join(
        f"redfish_power_powercontrol,host=h,source={source},name={escaped} "
        f"power_consumed_watts={share * watts(t)} {int(t)}000000000\n" for t, _ in means()
    )  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "labels"),
    [
        ("eeio_power_watts", {"meter": "ipmi", "domain": "system", "kind": "measured"}),
        ("eeio_energy_joules_total", {"meter": "ipmi", "domain": "system", "kind": "measured"}),
        ("eeio_power_watts", {"meter": "rack", "domain": "system", "kind": "measured"}),
        ("kepler_node_platform_joules_total", {"source": "redfish"}),
        ("kepler_node_platform_joules_total", {"source": "acpi"}),
        ("kepler_node_platform_joules_total", {"source": "hwmon"}),
        ("kepler_node_platform_joules_total", {}),
    ],
)
def test_a_late_meter_behind_an_exporter_is_late_in_prometheus_too(
    tmp_path: Path, imported: Importer, metric: str, labels: dict[str, str]
) -> None:
    log = tmp_path / "power"
    log.write_text(prometheus(metric, labels))
    results = write_results(tmp_path)
    body = imported(*results, "--dry-run", "--power", log, "--power-offset", "0")
    for reading, (begin, end) in zip(readings(body), RUNS, strict=True):
        if reading["energy_j"] is None:
            assert reading["reasons"]
            continue
        error_j = reading["energy_j"] - joules(START_S + begin, START_S + end)
        assert abs(error_j) <= reading["uncertainty_j"]


@pytest.mark.parametrize(
    ("metric", "labels", "longest_s"),
    [
        # A scrape each second, and a file of eeio each 5 s.
        ("eeio_energy_joules_total", {"meter": "rapl", "domain": "package"}, 6.0),
        # Of a gauge the scrape that a query repeats: up to a second late, a mean of a second.
        ("eeio_power_watts", {"meter": "perf", "domain": "package"}, 7.0),
        ("node_rapl_package_joules_total", {}, 1.0),
        ("scaph_socket_power_microwatts", {}, 2.0),
        ("eeio_power_watts", {"meter": "ipmi", "domain": "system"}, 17.0),
        ("eeio_energy_joules_total", {"meter": "ipmi", "domain": "system"}, 16.0),
        ("eeio_energy_joules_total", {"meter": "nut", "domain": "system"}, 46.0),
        ("ipmi_dcmi_power_consumption_watts", {}, 11.0),
        ("kepler_node_package_joules_total", {"source": "rapl-sysfs"}, 6.0),
        ("kepler_node_gpu_joules_total", {"source": "nvml"}, 6.0),
        ("kepler_node_platform_joules_total", {"source": "acpi"}, 16.0),
        ("kepler_node_platform_joules_total", {"source": "redfish"}, 71.0),
    ],
)
def test_the_delay_of_an_exporter_is_that_of_its_source(
    tmp_path: Path, metric: str, labels: dict[str, str], longest_s: float
) -> None:
    log = tmp_path / "power"
    log.write_text(prometheus(metric, labels))
    (series,) = power_logs.read(log).series
    assert series.delay is not None and series.delay.longest_s == longest_s


@pytest.mark.parametrize(
    ("spec", "expected"), [("ipmi", BMC), ("csv:power.csv", BMC), ("rapl", about("rapl").delay)]
)
def test_a_samples_file_without_a_delay_has_that_of_its_meter(
    tmp_path: Path, spec: str, expected: Delay
) -> None:
    channel = Channel("meter:power", "system", "power_w")
    info = MeterInfo("meter", spec, "measured", 1.0, 1.0, (channel,))
    log = tmp_path / "power.csv.gz"
    with gzip.open(log, "wt") as file:
        file.write(header_line([info], 500.0, iso(START_S)))
        for t, w in means():
            file.write(sample_lines(t - START_S + 500, 0, [w]))
    (series,) = power_logs.read(log).series
    assert series.delay == expected


@pytest.mark.parametrize(
    ("options", "reason"),
    [(",lag_s=x", "not a number of at least 0"), (",lag_s=1,color=2", "No such file")],
)
def test_options_behind_a_log_that_are_none(tmp_path: Path, options: str, reason: str) -> None:
    log = tmp_path / "power"
    log.write_text(dcmi())
    rejected = power_logs.read(Path(f"{log}{options}")).rejected
    assert rejected is not None and reason in rejected


def test_energy_is_stored_and_reported(
    home: Path, tmp_path: Path, imported: Importer, in_process: InProcess
) -> None:
    results = write_results(tmp_path)
    log = tmp_path / "power"
    log.write_text(wattsup())
    out = in_process("import", *map(str, results), "--power", str(log), "--name", "x")
    assert "Energy\n" in out.out and "estimated: " in out.err
    campaign = load(home / "data/eeio/results/x")
    energies = [run.phases[0].energy for run in campaign.runs]
    assert all(one.valid and one.meter == "wattsup" for (one,) in energies)
    (row,) = imported.rows("x")
    (figures,) = row["domains"]
    assert figures["power_domain"] == "system" and figures["n"] == 5
    done = in_process("import", *map(str, results), "--power", str(log))
    assert "x has the energy of the meter wattsup (system) already" in done.err


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("Time,Watts\n12:00,120\n", "no known power log"),
        ("SPECpower_ssj2008\n100%,2000,300\n", "PTDaemon's log"),
        (wattsup().replace("1764", "X764"), "without a time"),
        ("PkgWatt\tRAMWatt\n50.1\t2.0\n", "--enable Time_Of_Day_Seconds"),
        (nvidia().replace(" index,", "").replace(", 0,", ",").replace(", 1,", ","), "several GPUs"),
        (nvidia().replace(" W\n", " mW\n").replace("[W]", ""), "unit W"),
        (powerapi_csv().replace(",cpu,", ",,"), "scope"),
        (kepler().replace("kepler_node_package", "kepler_container"), "domain of kepler_container"),
        (kepler().replace('"n1"', '"n2"', 1), "several machines"),
        (dcmi().replace("1764", "#"), "no time before"),
        (sdr().replace("PS1 Input", "CPU1").replace("PS2 Input", "CPU2"), "sensor of the system"),
        (telegraf().replace("host=h", "host=i", 9), "several machines"),
        (redfish_of_telegraf("System") + redfish_of_telegraf("System", "bmc2"), "several machines"),
        (redfish_of_telegraf("A", "b") + redfish_of_telegraf("B", "b"), "is the complete machine"),
        (replicas("ipmi_dcmi_power_consumption_watts"), "differ in prometheus_replica"),
        ("cpu,host=h usage_idle=9.5 1764000000000000000\n", "no measurement of known power"),
        (collectl().replace("Power", "Fan2"), "no column of power"),
        (wattsup() + wattsup(), "runs backwards"),
        (scaphandre()[:-400], "damaged or cut off"),
        (" Performance counter stats:\n\n  2 Joules power/energy-pkg/\n", "perf stat -I 1000 -x,"),
        ("", "no known power log"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_right_is_rejected(
    tmp_path: Path, imported: Importer, content: str, why: str
) -> None:
    results = write_results(tmp_path)
    log = tmp_path / "power"
    log.write_text(content)
    body = imported(*results, "--dry-run", "--power", log, code=3)
    (used,) = body["power"]
    assert why in used["rejected"]
    assert all(f["reports"][0]["phases"][0]["energy"] == [] for f in body["files"])


def readings(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        reading for file in body["files"] for report in file["reports"]
        for phase in report["phases"] for reading in phase["energy"]
    ]  # fmt: skip


def test_times_without_a_zone_need_the_offset(tmp_path: Path, imported: Importer) -> None:
    results = write_results(tmp_path)
    log = tmp_path / "power"
    log.write_text(ptdaemon())
    found = readings(imported(*results, "--dry-run", "--power", log, code=3))
    assert all("--power-offset" in one["reasons"][0] and not one["valid"] for one in found)
    log.write_text(perf().partition("\n\n")[2])
    body = imported(*results, "--dry-run", "--power", log, code=3)
    assert "minus the Unix time of that start" in readings(body)[0]["reasons"][0]
    body = imported(*results, "--dry-run", "--power", log, "--power-offset", str(-START_S))
    assert all(one["valid"] for one in readings(body))


def test_an_offset_that_the_load_contradicts_is_doubtful(
    tmp_path: Path, imported: Importer
) -> None:
    results = write_results(tmp_path)
    log = tmp_path / "power"
    log.write_text(wattsup())
    body = imported(*results, "--dry-run", "--power", log, "--power-offset", "20")
    assert all(one["doubtful"] for one in readings(body))


def test_results_at_the_same_time_share_the_energy(tmp_path: Path, imported: Importer) -> None:
    results = write_results(tmp_path, [*RUNS, (101.0, 110.0)])
    log = tmp_path / "power"
    log.write_text(wattsup())
    body = imported(*results, "--dry-run", "--power", log, "--power-offset", "0")
    invalid = [one for one in readings(body) if not one["valid"]]
    assert len(invalid) == 2 and "at the same time" in invalid[0]["reasons"][0]


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32), offset_s=st.floats(-80.0, 80.0), noise_w=st.floats(0.0, 6.0),
    drift=st.floats(-2e-3, 2e-3), gaps=st.integers(0, 3), period_s=st.sampled_from([0.5, 1.0, 2.0]),
    form=st.sampled_from(["sample", "mean", "counter"]), even=st.booleans(),
    count=st.integers(1, 12), others=st.integers(0, 3),
)  # fmt: skip
@example(
    seed=5054, offset_s=65.0, noise_w=0.0, drift=0.0, gaps=0, period_s=0.5, form="sample",
    even=True, count=11, others=1,
)  # fmt: skip
@example(
    seed=4_294_967_296, offset_s=-64.0, noise_w=0.0, drift=0.0, gaps=0, period_s=0.5, form="mean",
    even=True, count=3, others=3,
)  # fmt: skip
def test_energy_of_simulated_logs_is_right_or_missing(
    seed: int, offset_s: float, noise_w: float, drift: float, gaps: int, period_s: float,
    form: power_logs.Form, even: bool, count: int, others: int,
) -> None:  # fmt: skip
    """The truth is known: within 2 % or the stated uncertainty, or missing with a reason. `others`
    are loads that are no results."""
    draw = random.Random(seed)
    runs, time_s = [], 100.0
    for _ in range(count):
        lasted_s, pause_s = (30.0, 20.0) if even else (draw.uniform(15, 60), draw.uniform(8, 40))
        runs.append((time_s, time_s + lasted_s))
        time_s += lasted_s + pause_s
    loads = runs + [(at, at + draw.uniform(5, 60)) for at in
                    (draw.uniform(0, time_s + 60) for _ in range(others))]  # fmt: skip
    lost = [(at, at + draw.uniform(2, 15)) for at in (draw.uniform(0, time_s) for _ in range(gaps))]
    times, values = [], []
    k = 0
    while (k := k + 1) * period_s < time_s + 100:
        after_s = k * period_s
        if any(a <= after_s < b for a, b in lost):
            continue
        at_s = START_S + after_s
        noise = draw.gauss(0.0, noise_w)
        if form == "counter":
            value = joules(START_S, at_s, loads)
        elif form == "mean":
            value = joules(at_s - period_s, at_s, loads) / period_s + noise
        else:
            value = watts(at_s, loads) + noise
        times.append(START_S + after_s * (1 + drift) + offset_s)
        values.append(round(value, 1))
    series = power_logs.Series("m", "system", "measured", form, times, values)
    log = power_logs.PowerLog(Path("log"), series=(series,))
    windows = [Window(START_S + a, START_S + b, 0.0, False) for a, b in runs]
    alignment = aligned(log, windows, None)
    for window in windows:
        (reading,) = energy_of(window, [(log, alignment)])
        if reading.energy_j is None:
            assert reading.reasons
            continue
        error_j = abs(reading.energy_j - joules(window.start_s, window.end_s, loads))
        stated_j = reading.uncertainty_j or math.inf
        assert error_j <= max(0.02 * reading.energy_j, stated_j) or reading.doubtful, alignment


def test_eeio_s_own_samples_have_the_time_of_their_header(
    tmp_path: Path, imported: Importer
) -> None:
    channel = Channel("rapl:package-0", "package", "energy_j", accuracy_relative=0.01)
    core = Channel("rapl:core", "package", "energy_j", in_domain_total=False)
    info = MeterInfo("rapl", "rapl", "measured", 1.0, 1.0, (channel, core))
    log = tmp_path / "power.csv.gz"
    with gzip.open(log, "wt") as file:
        file.write(header_line([info], 500.0, iso(START_S)))
        for t, _ in means():
            file.write(sample_lines(t - START_S + 500, 0, [joules(START_S, t), 1.0]))
    body = imported(*write_results(tmp_path), "--dry-run", "--power", log)
    found = readings(body)
    assert [one["meter"] for one in found] == ["rapl"] * len(RUNS)
    for reading, (begin, end) in zip(found, RUNS, strict=True):
        assert reading["energy_j"] == pytest.approx(
            joules(START_S + begin, START_S + end), rel=0.02
        )


def write_samples(path: Path, meters: dict[MeterInfo, Sequence[float]]) -> None:
    """A samples file of the runs; each channel reads a share of the power."""
    with gzip.open(path, "wt") as file:
        file.write(header_line(list(meters), 500.0, iso(START_S)))
        for time_s, _ in means(0.25):
            index = 0
            for info, shares in meters.items():
                values = [
                    share * (joules(START_S, time_s) if c.quantity == "energy_j" else watts(time_s))
                    for c, share in zip(info.channels, shares, strict=True)
                ]
                file.write(sample_lines(time_s - START_S + 500, index, values))
                index += len(values)


PUNCTUAL = Delay(averages_s=0.25, source="of this test")
PACKAGES = MeterInfo(
    "rapl", "rapl", "measured", 0.25, 0.25,
    tuple(
        Channel(f"rapl:{name}", domain, "energy_j", accuracy_relative=0.01, delay=PUNCTUAL)
        for name, domain in (
            ("package-0", "package"), ("package-1", "package"), ("package-0/dram", "dram")
        )
    ),
)  # fmt: skip
WALL = MeterInfo(
    "wall", "sysfs", "measured", 0.25, 0.25,
    (Channel("wall:power", "package", "power_w", accuracy_relative=0.01, delay=PUNCTUAL),),
)  # fmt: skip


@pytest.mark.parametrize("options", ["", ",lag_s=0"])
def test_eeio_s_own_samples_give_the_energies_of_an_own_run(
    tmp_path: Path, imported: Importer, options: str
) -> None:
    """Channels of a domain add up, each meter has a reading, and calibrations apply."""
    calibrated = replace(
        WALL,
        calibrations=(
            Calibration(
                "wall", "sysfs", "package", 1.25, 0.0, 1.0, 0.01, 50.0, 300.0, "scpi:X", "6.1",
                "2026-11-27", 1, ((50.0, 62.5), (300.0, 375.0)),
            ),
        ),
    )  # fmt: skip
    log = tmp_path / "power.csv.gz"
    write_samples(log, {PACKAGES: (0.6, 0.4, 0.1), calibrated: (0.8,)})
    body = imported(*write_results(tmp_path), "--dry-run", "--power", f"{log}{options}")
    series = [(one["meter"], one["domain"]) for one in body["power"][0]["series"]]
    assert series == [("rapl", "package"), ("rapl", "dram"), ("wall", "package")]
    for file, (begin, end) in zip(body["files"], RUNS, strict=True):
        found = {
            (one["meter"], one["domain"]): one for one in file["reports"][0]["phases"][0]["energy"]
        }
        own = {
            (one.meter, one.domain): one
            for one in samples.load(log).energy(500.0 + begin, 500.0 + end)
        }
        wanted_j = joules(START_S + begin, START_S + end)
        assert found.keys() == own.keys()
        for key, share in zip(series, (1.0, 0.1, 1.0), strict=True):
            assert own[key].energy_j == pytest.approx(share * wanted_j, rel=0.01)
            assert found[key]["energy_j"] == pytest.approx(own[key].energy_j, rel=0.001)
            assert found[key]["doubtful"] is False
        assert any("calibrated against scpi:X" in r for r in found["wall", "package"]["reasons"])


def test_two_samples_files_have_the_meters_of_each(tmp_path: Path, imported: Importer) -> None:
    logs = [tmp_path / "a.csv.gz", tmp_path / "b.csv.gz"]
    write_samples(logs[0], {PACKAGES: (0.6, 0.4, 0.1)})
    write_samples(logs[1], {PACKAGES: (0.3, 0.7, 0.2)})
    body = imported(*write_results(tmp_path), "--dry-run", "--power", *logs)
    found = body["files"][0]["reports"][0]["phases"][0]["energy"]
    wanted_j = joules(START_S + RUNS[0][0], START_S + RUNS[0][1])
    energies = {(one["meter"], one["domain"]): one["energy_j"] / wanted_j for one in found}
    assert energies == pytest.approx(
        {
            ("rapl a.csv.gz", "package"): 1.0, ("rapl a.csv.gz", "dram"): 0.1,
            ("rapl b.csv.gz", "package"): 1.0, ("rapl b.csv.gz", "dram"): 0.2,
        }, rel=0.01,
    )  # fmt: skip
