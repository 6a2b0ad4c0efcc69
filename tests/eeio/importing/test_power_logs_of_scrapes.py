"""Power logs of several series: samples files, scrapes of Prometheus, late and punctual meters."""

import json
import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.eeio.importing.importer import Importer
from tests.eeio.importing.test_power_logs import (
    LAG_S,
    LOW_W,
    MEAN_S,
    RUNS,
    START_S,
    iso,
    joules,
    means,
    perf,
    prometheus,
    readings,
    redfish_of_telegraf,
    turbostat,
    watts,
    write_results,
)
from tests.plugin import PARSERS, InProcess

from eeio.exchange.importing import power_logs
from eeio.exchange.importing.power_of_results import (
    Alignment,
    Window,
    add_power,
    energy_of,
)
from eeio_parsers.found import FoundPhase, FoundReport


@pytest.mark.parametrize(("scrape_s", "step_s"), [(15.0, 5.0), (60.0, 15.0), (60.0, 5.0)])
def test_a_query_that_repeats_scrapes_is_as_late_as_they_are(
    tmp_path: Path, imported: Importer, scrape_s: float, step_s: float
) -> None:
    """The energy is within its uncertainty, or there is none."""
    body = json.loads(prometheus("eeio_power_watts", {"meter": "rapl", "domain": "package"}))
    (series,) = body["data"]["result"]
    values = []
    for k in range(1, int(420.0 / step_s)):
        time_s = START_S + k * step_s
        scraped_s = time_s - (time_s - START_S) % scrape_s
        power_w = joules(scraped_s - scrape_s, scraped_s) / scrape_s
        values.append([time_s, str(power_w)])
    series["values"] = values
    log = tmp_path / "power"
    log.write_text(json.dumps(body))
    body = imported(*write_results(tmp_path), "--dry-run", "--power", log, "--power-offset", "0")
    phases = [p for file in body["files"] for r in file["reports"] for p in r["phases"]]
    for phase, (begin, end) in zip(phases, RUNS, strict=True):
        (reading,) = phase["energy"]
        if reading["valid"]:
            error_j = reading["energy_j"] - joules(START_S + begin, START_S + end)
            assert abs(error_j) <= reading["uncertainty_j"]
    (of_log,) = power_logs.read(log).series
    assert of_log.delay is not None and of_log.delay.longest_s >= scrape_s + step_s


@pytest.fixture
def scraped(tmp_path: Path) -> Path:
    """A BMC whose readings Prometheus takes over each 30 s; the query has a step of 1 s."""
    body = json.loads(prometheus("ipmi_dcmi_power_consumption_watts", {}))
    (series,) = body["data"]["result"]
    series["values"] = [[START_S + k, str(100 + k // 30 % 7)] for k in range(420)]
    log = tmp_path / "scraped"
    log.write_text(json.dumps(body))
    return log


def test_a_stated_delay_is_that_of_the_meter_behind_the_scrapes(scraped: Path) -> None:
    (series,) = power_logs.read(Path(f"{scraped},lag_s=4,averages_s=3")).series
    assert series.delay is not None
    assert (series.delay.lag_s, series.delay.lag_within_s) == (4 + 15, 15)
    assert (series.delay.averages_s, series.delay.averages_within_s) == (3, 0)


def test_steps_of_load_do_not_show_when_a_reading_was_scraped(scraped: Path) -> None:
    (series,) = power_logs.read(scraped).series
    (channel,) = series.samples(0.0, by_load=True).info.channels
    assert channel.delay is not None and channel.delay.lag_within_s == 15


def test_logs_of_the_same_name_in_two_folders_are_two_meters(
    tmp_path: Path, imported: Importer
) -> None:
    logs = []
    for folder in ("day1", "day2"):
        (tmp_path / folder).mkdir()
        logs.append(tmp_path / folder / "turbostat.txt")
        logs[-1].write_text(turbostat())
    results_of = tmp_path / "results"
    results_of.mkdir()
    body = imported(*write_results(results_of), "--dry-run", "--power", *logs)
    found = body["files"][0]["reports"][0]["phases"][0]["energy"]
    meters = {reading["meter"] for reading in found}
    assert meters == {f"turbostat {log}" for log in logs}


@pytest.mark.parametrize(("nodes", "doubtful"), [(None, False), (1, False), (2, True)])
def test_the_power_of_one_machine_is_doubtful_for_the_work_of_several(
    tmp_path: Path, nodes: int | None, doubtful: bool
) -> None:
    log = tmp_path / "turbostat.txt"
    log.write_text(turbostat())
    begin, end = RUNS[0]
    phase = FoundPhase(
        "a", "read", nodes=nodes, starts_within_s=0.1, runtime_s=float(end - begin),
        started_utc=datetime.fromtimestamp(START_S + begin, UTC).isoformat(),
    )  # fmt: skip
    (report,), _ = add_power([FoundReport((phase,))], [log], None)
    reading = report.phases[0].energy[0]
    assert reading.valid and reading.doubtful is doubtful


def test_a_result_whose_start_is_not_known_well_shares_the_power_too(tmp_path: Path) -> None:
    """fio with ramp_time, at the same time."""
    log = tmp_path / "turbostat.txt"
    log.write_text(turbostat())
    begin, end = RUNS[0]
    started_utc = datetime.fromtimestamp(START_S + begin, UTC).isoformat()
    known = FoundPhase("a", "read", runtime_s=float(end - begin), started_utc=started_utc)
    phases = (replace(known, starts_within_s=0.1), known)
    (report,), _ = add_power([FoundReport(phases)], [log], None)
    reading = report.phases[0].energy[0]
    assert not reading.valid and "measured at the same time" in reading.reasons[0]


def test_perf_reports_its_start_in_whole_seconds(tmp_path: Path, imported: Importer) -> None:
    log = tmp_path / "perf.csv"
    log.write_text(perf())
    assert power_logs.read(log).unsure_s == 0.5


def test_parts_of_a_machine_are_not_added_to_it(tmp_path: Path, imported: Importer) -> None:
    """As controllers of Lenovo list them."""
    names = ("Server Power Control", 1.0), ("CPU Sub-system Power", 0.4), ("Memory Power", 0.2)
    log = tmp_path / "power"
    log.write_text("".join(redfish_of_telegraf(name, share=share) for name, share in names))
    body = imported(*write_results(tmp_path), "--dry-run", "--power", log, "--power-offset", "0")
    (reading,) = body["files"][0]["reports"][0]["phases"][0]["energy"]
    log.write_text(redfish_of_telegraf("Server Power Control"))
    body = imported(*write_results(tmp_path), "--dry-run", "--power", log, "--power-offset", "0")
    (alone,) = body["files"][0]["reports"][0]["phases"][0]["energy"]
    assert reading["energy_j"] == alone["energy_j"] and reading["valid"]


def test_each_exporter_of_a_domain_has_a_reading(tmp_path: Path, imported: Importer) -> None:
    bodies = [
        json.loads(prometheus(metric, labels))
        for metric, labels in (
            ("node_rapl_package_joules_total", {}),
            ("eeio_energy_joules_total", {"meter": "perf", "domain": "package"}),
        )
    ]
    bodies[0]["data"]["result"] += bodies[1]["data"]["result"]
    log = tmp_path / "power"
    log.write_text(json.dumps(bodies[0]))
    body = imported(*write_results(tmp_path), "--dry-run", "--power", log, "--power-offset", "0")
    found = body["files"][0]["reports"][0]["phases"][0]["energy"]
    assert [(one["meter"], one["domain"]) for one in found] == [
        ("node_exporter", "package"), ("perf", "package"),
    ]  # fmt: skip


def test_codecarbon_without_a_figure_in_a_row(tmp_path: Path) -> None:
    rows = "".join(
        f"2024-03-01T10:00:{10 * k:02},p,7c1,{10 * k},{energy},0.0,\n"
        for k, energy in ((1, 1e-5), (2, ""), (3, 3e-5))
    )
    log = tmp_path / "emissions.csv"
    log.write_text(
        f"timestamp,project_name,run_id,duration,cpu_energy,gpu_energy,ram_energy\n{rows}"
    )
    found = power_logs.read(log)
    assert found.rejected is None
    (series,) = found.series
    assert (series.domain, series.values[-1]) == ("package", pytest.approx(3e-5 * 3.6e6))


def test_results_wait_for_a_power_log_that_can_be_used(
    home: Path, tmp_path: Path, in_process: InProcess
) -> None:
    """A log that cannot be used is known before anything is stored."""
    results = write_results(tmp_path)
    log = tmp_path / "power.txt"
    log.write_text("no power in it\n")
    done = in_process("import", *map(str, results), "--power", str(log), "--name", "x", code=2)
    assert f"{log}: " in done.err and "No result was stored" in done.err
    assert not (home / "data/eeio/results/x").exists()
    assert "campaign x: " in in_process("import", *map(str, results), "--name", "x").out
    again = in_process("import", *map(str, results), "--name", "y").out
    assert "no run was added: the files are in x already" in again
    dry = in_process("import", *map(str, results), "--name", "y", "--dry-run").out
    assert dry.endswith("--dry-run: no result was stored\n")


def test_an_unknown_pattern_is_missing_and_the_result_is_valid(
    tmp_path: Path, imported: Importer
) -> None:
    """fio's terse output does not contain the order of the requests."""
    imported(PARSERS / "fio/outputs/terse/v4.txt", "--name", "terse")
    rows = imported.rows("terse")
    assert rows and all(row["spatiality"] is None for row in rows)
    assert all(row["n"] == 1 and row["bandwidth_bytes_per_s"] for row in rows)


# ---- clocks and delays ----


BUSY_RUNS = [(100.0, 190.0), (230.0, 330.0), (380.0, 475.0), (520.0, 600.0), (660.0, 760.0)]
"""As RUNS, but longer."""


def late_and_punctual(noise_w: float = 1.0) -> str:
    """telegraf's log of a BMC that is LAG_S late with means of MEAN_S, and of two packages."""
    draw = random.Random(4)
    lines = []
    for time_s, mean_w in means():
        late_w = joules(time_s - LAG_S - MEAN_S, time_s - LAG_S) / MEAN_S + draw.gauss(0, noise_w)
        stamp = f"{int(time_s)}000000000\n"
        lines.append(
            f"ipmi_sensor,host=h,name=pwr_consumption,unit=watts value={late_w:.0f} {stamp}"
        )
        lines += [
            f"powerstat_package,host=h,package_id={package} "
            f"current_power_consumption_watts={mean_w / 2 + draw.gauss(0, noise_w / 2):.2f} {stamp}"
            for package in (0, 1)
        ]
    return "".join(lines)


@pytest.mark.parametrize(
    ("options", "offset"),
    [("", []), (f",lag_s={LAG_S},averages_s={MEAN_S}", ["--power-offset", "0"])],
)
def test_the_delay_of_a_late_meter_is_not_that_of_a_punctual_one(
    tmp_path: Path, imported: Importer, options: str, offset: list[str]
) -> None:
    """Of one log: neither by the load steps of the late one, nor by its stated delay."""
    log = tmp_path / "power"
    log.write_text(late_and_punctual())
    results = write_results(tmp_path)
    body = imported(*results, "--dry-run", "--power", f"{log}{options}", *offset)
    for file, (begin, end) in zip(body["files"], RUNS, strict=True):
        energy = file["reports"][0]["phases"][0]["energy"]
        assert {reading["domain"] for reading in energy} == {"system", "package"}
        for reading in energy:
            true_j = joules(START_S + begin, START_S + end)
            assert reading["energy_j"] == pytest.approx(true_j, rel=0.03), reading
            assert not reading["doubtful"]


def test_a_stated_delay_is_no_doubt_about_the_clock(tmp_path: Path, imported: Importer) -> None:
    log = tmp_path / "power"
    lines = [line for line in late_and_punctual().splitlines() if line.startswith("ipmi")]
    log.write_text("\n".join(lines) + "\n")
    stated = f"{log},lag_s={LAG_S},averages_s={MEAN_S}"
    results = write_results(tmp_path)
    body = imported(*results, "--dry-run", "--power", stated, "--power-offset", "0")
    assert not any(reading["doubtful"] for reading in readings(body))
    body = imported(*results, "--dry-run", "--power", stated, "--power-offset", "8")
    assert all(reading["doubtful"] for reading in readings(body))


def long_turbostat(last_s: int = 8000) -> str:
    draw = random.Random(1)
    return "Time_Of_Day_Seconds\tCore\tCPU\tPkgWatt\n" + "".join(
        f"{time_s:.6f}\t-\t-\t{mean_w + draw.gauss(0, 1):.2f}\n"
        for time_s, mean_w in means(last_s=last_s)
    )


def test_the_offset_of_local_times_is_not_that_of_a_log_in_utc(
    tmp_path: Path, imported: Importer
) -> None:
    """`offset_s` behind its name is."""
    local, utc = tmp_path / "gpu.csv", tmp_path / "turbostat.txt"
    local.write_text(
        "timestamp, index, power.draw [W]\n" + "".join(
            f"{iso(t + 3600, '').replace('-', '/').replace('T', ' ')}, 0, {w:.2f} W\n"
            for t, w in means()
        )
    )  # fmt: skip
    utc.write_text(long_turbostat())
    results = write_results(tmp_path)

    def packages(power: Path | str) -> list[float | None]:
        body = imported(*results, "--dry-run", "--power", local, power, "--power-offset", "3600")
        assert body["power"][0]["ahead_s"] == 3600.0
        return [one["energy_j"] for one in readings(body) if one["domain"] == "package"]

    true_j = [joules(START_S + begin, START_S + end) for begin, end in RUNS]
    assert packages(utc) == pytest.approx(true_j, rel=0.02)
    idle_j = [LOW_W * (end - begin) for begin, end in RUNS]
    assert packages(f"{utc},offset_s=3600") == pytest.approx(idle_j, rel=0.02)
    body = imported(*results, "--dry-run", "--power", f"{utc},offset_s=x", code=3)
    assert "not a number of seconds" in body["power"][0]["rejected"]


def test_an_offset_of_the_wrong_sign_is_doubtful(tmp_path: Path, imported: Importer) -> None:
    """The log has no step of load there, and the steps an hour before or after fit."""
    log = tmp_path / "power"
    draw = random.Random(1)
    log.write_text("".join(
        f"{iso(START_S + after_s + 3600, '')} #d,-,18,"
        f"{10 * (watts(START_S + after_s - 0.5) + draw.gauss(0, 1)):.0f},1201{',_' * 16};\n"
        for after_s in range(-7300, 1000)
    ))  # fmt: skip
    results = write_results(tmp_path)
    found = readings(imported(*results, "--dry-run", "--power", log, "--power-offset", "-3600"))
    assert all(one["doubtful"] and "+3600 s fits" in str(one["reasons"]) for one in found)
    found = readings(imported(*results, "--dry-run", "--power", log, "--power-offset", "3600"))
    assert not any(one["doubtful"] for one in found)


def test_local_times_that_step_by_an_hour_are_rejected(tmp_path: Path) -> None:
    """At the begin of summer time one offset is not that of the complete log."""
    text = "#Date Time [ENV]Power\n" + "".join(
        f"{datetime.fromtimestamp(t + 3600 * (t > START_S + 195), UTC):%Y%m%d %H:%M:%S} {w:.0f}\n"
        for t, w in means()
    )
    log = tmp_path / "power"
    log.write_text(text)
    rejected = power_logs.read(log).rejected
    assert rejected is not None and "as by summer time" in rejected


@pytest.mark.parametrize(
    ("metric", "labels", "file_s"),
    [
        ("node_rapl_package_joules_total", {"index": "0"}, 0.0),
        # In a text file of node_exporter, which eeio writes each 5 s.
        ("eeio_energy_joules_total", {"meter": "rapl", "domain": "package"}, 5.0),
        (
            "kepler_node_package_joules_total", {"source": "rapl-sysfs", "package": "0"}, 5.0,
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("scrape_s", "step_s"),
    [(5.0, 1.0), (5.0, 5.0), (15.0, 1.0), (15.0, 2.0), (15.0, 14.0), (60.0, 1.0)],
)  # fmt: skip
def test_a_counter_is_as_late_as_its_scrapes(
    tmp_path: Path, metric: str, labels: dict[str, str], file_s: float, scrape_s: float,
    step_s: float,
) -> None:  # fmt: skip
    """The energy is within its uncertainty, or there is none."""
    log = tmp_path / "power"
    windows = [Window(START_S + a, START_S + b, 0.0, False) for a, b in BUSY_RUNS]
    for phase in (0.0, 0.35, 0.9):

        def read_s(time_s: float, phase: float = phase) -> float:
            scraped_s = time_s - (time_s - START_S - phase * scrape_s) % scrape_s
            return scraped_s - ((scraped_s - START_S) % file_s if file_s else 0.0)

        values = [
            [time_s, f"{5e4 + joules(START_S - 100, read_s(time_s), BUSY_RUNS):.3f}"]
            for time_s in (START_S + k * step_s for k in range(1, int(900 / step_s)))
        ]
        result = [{"metric": {"__name__": metric, "instance": "n1", **labels}, "values": values}]
        body = {"resultType": "matrix", "result": result}
        log.write_text(json.dumps({"status": "success", "data": body}))
        of_log = power_logs.read(log)
        for window in windows:
            (reading,) = energy_of(window, [(of_log, Alignment(0.0))])
            if reading.energy_j is not None:
                true_j = joules(window.start_s, window.end_s, BUSY_RUNS)
                assert abs(reading.energy_j - true_j) <= (reading.uncertainty_j or 0.0)


def test_a_start_that_may_be_another_s_is_the_reason(tmp_path: Path, imported: Importer) -> None:
    """Of two jobs of a group, one of which starts later."""
    (result,) = write_results(tmp_path, RUNS[:1])
    body = json.loads(result.read_text())
    body["jobs"].append(body["jobs"][0] | {"jobname": "b", "job options": {"startdelay": "10"}})
    result.write_text(json.dumps(body))
    log = tmp_path / "power"
    log.write_text(turbostat())
    for reading in readings(imported(result, "--dry-run", "--power", log, code=3)):
        assert not reading["valid"] and "jobs that start later" in reading["reasons"][0]


@pytest.mark.parametrize("update_s", [10.0, 30.0, 60.0])
def test_a_counter_of_a_map_is_as_late_as_its_updates(update_s: float) -> None:
    """As of a smart plug that counts once a minute, read each 5 s."""
    rows = []
    for k in range(1, 180):
        time_s = START_S + 5.0 * k
        updated_s = time_s - (time_s - START_S) % update_s
        rows.append((time_s, 5e4 + joules(START_S, updated_s, BUSY_RUNS)))
    series = power_logs.described("plug", "system", "measured", "counter", rows, 0.02, None, None)
    assert series.delay is not None and series.delay.longest_s == 5.0 + update_s
    log = power_logs.PowerLog(Path("log"), series=(series,))
    for begin, end in BUSY_RUNS:
        window = Window(START_S + begin, START_S + end, 0.0, False)
        (reading,) = energy_of(window, [(log, Alignment(0.0))])
        if reading.energy_j is not None:
            true_j = joules(window.start_s, window.end_s, BUSY_RUNS)
            assert abs(reading.energy_j - true_j) <= (reading.uncertainty_j or 0.0)
