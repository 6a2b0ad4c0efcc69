"""Power logs of public bug reports, and their kinds: right energies, or a rejection."""

import json
import random
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.eeio.importing.importer import Importer

from eeio.exchange.importing import power_logs
from eeio.exchange.importing.power_logs import readings
from eeio_power.errors import PowerError

CASES = Path(__file__).parents[2] / "data/imports/cases-power"
START_S = 1764000000.0
RUNS = [(40.0, 70.0), (100.0, 140.0)]
"""s after START_S, as in `power-results`: 160 W, and 100 W between them."""
WANTED_J = [4800.0, 6400.0]
PUNCTUAL = ",lag_s=0,averages_s=0"


def watts(after_s: float) -> float:
    return 160.0 if any(begin < after_s <= end for begin, end in RUNS) else 100.0


def energies(imported: Importer, log: Path, options: str = "") -> dict[str, list[float | None]]:
    """Domain -> the energies of the results."""
    body = imported(
        CASES / "power-results", "--dry-run", "--power", f"{log}{options}", "--power-offset", "0"
    )
    assert body["power"][0]["rejected"] is None, body["power"][0]["rejected"]
    found: dict[str, list[float | None]] = {}
    for file in body["files"]:
        for reading in file["reports"][0]["phases"][0]["energy"]:
            found.setdefault(reading["domain"], []).append(reading["energy_j"])
    return found


@pytest.mark.parametrize(
    ("name", "domain", "options"),
    [
        ("turbostat_show_two_sockets.txt", "package", ""),
        ("telegraf_precision_1ms.txt", "package", ""),
        ("dcmi_date_12h_jammy.txt", "system", PUNCTUAL),
        ("codecarbon_sorted_columns.csv", "package", ""),
        ("nvidia_header_again.csv", "accelerator", ""),
    ],
)
def test_logs_of_public_cases_give_the_energy(
    imported: Importer, name: str, domain: str, options: str
) -> None:
    found = energies(imported, CASES / name, options)
    assert found[domain] == pytest.approx(WANTED_J, rel=0.03)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("dcmi_deactivated.txt", "`Power reading state is: deactivated`"),
        ("perf_decimal_comma.txt", "line 3: decimal commas .* LC_ALL=C"),
        # Of Kepler's modes it has one only.
        ("kepler_restarted.json", "the mode idle is missing"),
    ],
)
def test_logs_of_public_cases_are_rejected_with_the_reason(name: str, reason: str) -> None:
    assert _rejected(CASES / name, reason)


def _rejected(log: Path, reason: str) -> bool:

    rejected = power_logs.read(log).rejected
    assert rejected is not None and re.search(reason, rejected), rejected
    return True


# ---- forms of the same power ----


def _steps() -> list[tuple[float, float]]:
    """Times, and the mean power of the second before."""
    return [(START_S + second, watts(second)) for second in range(1, 200)]


def _date(time_s: float, form: str) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime(form)


def dcmi(form: str) -> str:
    return "".join(
        f"{_date(time_s, form)}\n    Instantaneous power reading:    {power_w:.0f} Watts\n"
        "    Power reading state is:                   activated\n"
        for time_s, power_w in _steps()
    )


def sensors_with_own_times() -> str:
    return "".join(
        f"{time_s + place / 4:.2f} PS{place + 1} Input | {power_w / 2:.0f} Watts | ok\n"
        for time_s, power_w in _steps()
        for place in (0, 1)
    )


def perf(separator: str, decimal: str, parts: Sequence[str] = ("",)) -> str:
    rows = [f"# started on {_date(START_S, '%a %b %d %H:%M:%S %Y')}\n\n"]
    for time_s, power_w in _steps():
        for part in parts:
            cells = [f"{time_s - START_S:.9f}", f"{power_w / len(parts):.2f}"]
            cells = [cell.replace(".", decimal) for cell in cells]
            cells[1:1] = [part, "1"] if part else []
            rows.append(
                separator.join([*cells, "Joules", "power/energy-pkg/", "1000", "100"]) + "\n"
            )
    return "".join(rows)


def perf_twice() -> str:
    """Appended by a second start of perf."""
    first, second = [], []
    for time_s, power_w in _steps():
        of, begin_s = (first, 0.0) if time_s <= START_S + 85 else (second, 85.0)
        after_s = time_s - START_S - begin_s
        of.append(f"  {after_s:.9f},{power_w:.2f},Joules,power/energy-pkg/,1000,100.00,,\n")
    starts = (_date(START_S + begin_s, "%a %b %d %H:%M:%S %Y") for begin_s in (0.0, 85.0))
    return "".join(
        f"# started on {start}\n\n{''.join(rows)}\n"
        for start, rows in zip(starts, (first, second), strict=True)
    )


def nvidia(header: str, row: str, again: str = "", apart_s: float = 0.3) -> str:
    lines = [header]
    for time_s, power_w in _steps():
        for gpu in (0, 1):
            stamp = _date(time_s + gpu * apart_s, "%Y/%m/%d %H:%M:%S.%f")[:-3]
            lines.append(row.format(time=stamp, gpu=gpu, watts=f"{power_w / 2:.2f}"))
        if again and time_s == START_S + 100:
            lines.append(again)
    return "\n".join(lines) + "\n"


def turbostat_with_time_of_each_processor(jitter_s: float, processors: int = 4) -> str:
    draw = random.Random(3)
    lines = ["Time_Of_Day_Seconds\tBusy%\tPkgWatt"]
    for time_s, power_w in _steps():
        lines.append(f"{time_s:.6f}\t5.00\t{power_w:.2f}")
        for processor in range(processors):
            of_socket = f"\t{power_w / 2:.2f}" if processor % 2 == 0 and processor < 4 else ""
            lines.append(f"{time_s + draw.uniform(-jitter_s, jitter_s):.6f}\t5.00{of_socket}")
    return "\n".join(lines) + "\n"


def turbostat_summary() -> str:
    lines = ["turbostat version 2024.05.10", "cpu0: MSR_RAPL_POWER_UNIT", ""]
    for place, (time_s, power_w) in enumerate(_steps()):
        lines += ["PkgWatt\tTime_Of_Day_Seconds"] if place % 50 == 0 else []
        lines.append(f"{power_w:.2f}\t{time_s:.6f}")
    return "\n".join([*lines, "199.001234 sec"]) + "\n"


def powerapi(lost: Callable[[int], bool], first: str = "timestamp") -> str:
    """Without the ticks of socket 1 that are lost."""
    columns = sorted(("sensor", "target", "power", "scope", "socket", "timestamp"))
    columns = [first, *(column for column in columns if column != first)]
    lines = [",".join(columns)]
    for tick, (time_s, power_w) in enumerate(_steps()):
        for socket in (0, 1):
            values = {
                "timestamp": f"{int(time_s * 1000) + 7 * socket}", "sensor": "s", "target": "rapl",
                "power": str(power_w / 2), "scope": "cpu", "socket": str(socket),
            }  # fmt: skip
            if not (socket == 1 and lost(tick)):
                lines.append(",".join(values[column] for column in columns))
    return "\n".join(lines) + "\n"


def powerapi_of_mongodb(form: str) -> str:
    def stamp(time_s: float) -> Any:
        if form == "number":
            return {"$date": {"$numberLong": str(int(time_s * 1000))}}
        return {"$date": _date(time_s, "%Y-%m-%dT%H:%M:%SZ")}

    return "".join(
        json.dumps({
            "_id": {"$oid": "65"}, "sensor": "s", "target": "rapl", "timestamp": stamp(time_s),
            "metadata": {"scope": "cpu", "socket": socket}, "power": power_w / 2,
        }) + "\n"
        for time_s, power_w in _steps() for socket in (0, 1)
    )  # fmt: skip


def scaphandre() -> str:
    return json.dumps([
        {"host": {"consumption": 9e9, "timestamp": time_s, "components": {}}, "consumers": [],
         "sockets": [{"id": k, "consumption": power_w * 5e5, "domains": []} for k in (0, 1)]}
        for time_s, power_w in _steps()
    ])  # fmt: skip


def kepler(restarted_s: float = 85.0, overlap_s: float = 0.0, of_second: float = 0.0) -> str:
    """Two modes of a package, of an exporter that started again in another pod."""

    def counter(begin_s: float, end_s: float, at_begin_j: float) -> list[list[Any]]:
        values, joules = [], at_begin_j
        for time_s, power_w in _steps():
            joules += power_w / 2
            if begin_s <= time_s - START_S < end_s:
                values.append([time_s, f"{joules:.3f}"])
        return values

    series = [
        {"metric": {"__name__": "kepler_node_package_joules_total", "instance": "n1:9102",
                    "package": "0", "mode": mode, "source": "rapl-sysfs", "pod": pod},
         "values": counter(begin_s, end_s, at_begin_j)}
        for mode in ("dynamic", "idle")
        for pod, begin_s, end_s, at_begin_j in (
            ("kepler-a", 0.0, restarted_s + overlap_s, 50_000.0),
            ("kepler-b", restarted_s, 200.0, of_second),
        )
    ]  # fmt: skip
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}})


def codecarbon(columns: Sequence[str]) -> str:
    lines = [",".join(columns)]
    for place, (begin_s, end_s) in enumerate(RUNS):
        values = {
            "timestamp": _date(START_S + end_s, "%Y-%m-%dT%H:%M:%S"), "run_id": f"{place}a",
            "duration": str(end_s - begin_s), "cpu_energy": repr(WANTED_J[place] / 3.6e6),
            "gpu_energy": "0.0", "ram_energy": "0.0", "project_name": "p", "os": "Linux",
        }  # fmt: skip
        lines += [",".join(columns)] if place else []
        lines.append(",".join(values[column] for column in columns))
    return "\n".join(lines) + "\n"


def telegraf(apart_s: float, digits: int = 9) -> str:
    """Packages, and GPUs whose power state changes."""
    lines = ["# comment"]
    for place, (time_s, power_w) in enumerate(_steps()):
        for part in (0, 1):
            stamp = f"{round((time_s + part * apart_s) * 10**digits)}"
            lines += [
                f"powerstat_package,host=h,package_id={part} "
                f"current_power_consumption_watts={power_w / 2} {stamp}",
                f"nvidia_smi,host=h,index={part},pstate=P{place % 2},uuid=GPU-{part} "
                f"power_draw={power_w / 2} {stamp}",
            ]
    return "\n".join(lines) + "\n"


GPU_ROW = "{time}, {gpu}, {watts} W"
FORMS: dict[str, tuple[str, str, str]] = {
    "date of en_US": (dcmi("%a %b %d %I:%M:%S %p UTC %Y"), "system", PUNCTUAL),
    "date of en_US before 2019": (dcmi("%a %d %b %Y %I:%M:%S %p UTC"), "system", PUNCTUAL),
    "date of en_GB": (dcmi("%a %e %b %H:%M:%S UTC %Y"), "system", PUNCTUAL),
    "date with a numeric zone": (dcmi("%a %b %e %H:%M:%S +00 %Y"), "system", PUNCTUAL),
    "ISO time of 12 hours": (dcmi("%Y-%m-%d %I:%M:%S %p"), "system", PUNCTUAL),
    "supplies with times of their own": (sensors_with_own_times(), "system", PUNCTUAL),
    "perf -x;": (perf(";", "."), "package", ""),
    "perf -x; with decimal commas": (perf(";", ","), "package", ""),
    "perf --per-socket": (perf(",", ".", ("S0", "S1")), "package", ""),
    "perf -A": (perf(",", ".", ("CPU0",)).replace(",CPU0,1,", ",CPU0,"), "package", ""),
    "perf twice": (perf_twice(), "package", ""),
    "GPUs 0.3 s apart": (
        nvidia("timestamp, index, power.draw [W]", GPU_ROW), "accelerator", "",
    ),
    "GPUs 0.7 s apart": (
        nvidia("timestamp, index, power.draw [W]", GPU_ROW, apart_s=0.7), "accelerator", "",
    ),
    "GPUs in other columns": (
        nvidia("power.draw [W], uuid, timestamp", "{watts}, GPU-{gpu}, {time}"), "accelerator", "",
    ),
    "GPUs with another header in between": (
        nvidia(
            "timestamp, index, power.draw [W]", GPU_ROW,
            "timestamp, index, power.draw [W]\nFailed to initialize NVML: Unknown Error",
        ), "accelerator", "",
    ),
    "processors with times of their own": (
        turbostat_with_time_of_each_processor(0.0005), "package", "",
    ),
    "processors with times 50 ms apart": (
        turbostat_with_time_of_each_processor(0.05, processors=64), "package", "",
    ),
    "turbostat --Summary": (turbostat_summary(), "package", ""),
    "PowerAPI without some ticks": (powerapi(lambda tick: tick % 9 == 4), "package", ""),
    "PowerAPI in another order": (powerapi(lambda tick: False, "socket"), "package", ""),
    "MongoDB": (powerapi_of_mongodb("text"), "package", ""),
    "MongoDB with numbers": (powerapi_of_mongodb("number"), "package", ""),
    "Scaphandre": (scaphandre(), "package", ""),
    "Scaphandre with sorted keys": (
        json.dumps(json.loads(scaphandre()), sort_keys=True), "package", "",
    ),
    "Kepler restarted": (kepler(), "package", PUNCTUAL),
    "Kepler with sorted keys": (
        json.dumps(json.loads(kepler()), sort_keys=True, indent=1), "package", PUNCTUAL,
    ),
    "lines that end with CR and LF": (
        turbostat_summary().replace("\n", "\r\n"), "package", "",
    ),
    "Kepler restarted with more": (kepler(of_second=60_000.0), "package", PUNCTUAL),
    "codecarbon in another order": (
        codecarbon(("ram_energy", "os", "run_id", "gpu_energy", "timestamp", "cpu_energy",
                    "project_name", "duration")), "package", "",
    ),
    "packages 0.3 s apart": (telegraf(0.3), "package", ""),
    "packages in ms": (telegraf(0.005, digits=3), "package", ""),
    "GPUs of telegraf": (telegraf(0.02), "accelerator", PUNCTUAL),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_the_power_in_other_forms(tmp_path: Path, imported: Importer, form: str) -> None:
    text, domain, options = FORMS[form]
    log = tmp_path / "power"
    log.write_text(text)
    assert energies(imported, log, options)[domain] == pytest.approx(WANTED_J, rel=0.03)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        # Parts of a reading that the log does not name.
        (nvidia("timestamp, name, power.draw [W]", "{time}, H100, {watts} W"), "several GPUs"),
        (powerapi(lambda tick: False).replace(",socket", ",core"), "values come in groups"),
        # Half a period apart, and a value is missing.
        (
            telegraf(0.5).replace("powerstat_package,host=h,package_id=1", "# lost", 1),
            "no reading has all of its parts",
        ),
        (
            turbostat_with_time_of_each_processor(0.0005).replace("80.00", "70.00"),
            "cannot be told from those of each",
        ),
        (kepler(overlap_s=20.0), "differ in pod"),
        (kepler().replace("1764000033.0", "NaN"), "nan s is not a time"),
        (turbostat_summary().replace("1764000001.", "1064000001."), "time between two readings"),
        (kepler().replace('"idle"', '"dynamic"'), "the mode idle is missing"),
        # Lines that no rule explains.
        (dcmi("%s") + "segmentation fault\n", "line 598: not understood: 'segmentation fault'"),
        (telegraf(0.0) + "cpu usage\n", r"line 798: not understood: 'cpu usage'"),
        (perf(",", ".") + "  200.0,<no,energy>\n", "line 202: not understood"),
        (nvidia("timestamp, index, power.draw [W]", GPU_ROW) + "1, 2\n", "3 columns are expected"),
        (turbostat_summary().replace("160.00\t", "160.00\t1\t", 1), "line 45: not understood"),
        (scaphandre() + "\nkilled", "line 2: not understood: 'killed'"),
        (codecarbon(("timestamp", "run_id", "duration", "cpu_energy", "gpu_energy", "ram_energy"))
         + "a,b\n", "line 5: not understood: 'a,b'"),
        ("2025-11-24 13:00:01 PM\n" + dcmi("%s"), "line 1: '2025-11-24 13:00:01 PM' is not a time"),
    ],
)  # fmt: skip
def test_a_log_that_is_not_understood_is_rejected(tmp_path: Path, text: str, reason: str) -> None:
    log = tmp_path / "power"
    log.write_text(text)
    assert _rejected(log, reason)


def test_a_reading_without_one_of_its_parts_is_missing(tmp_path: Path, imported: Importer) -> None:
    """Socket 1 is not in the log for the time of the first result."""
    log = tmp_path / "power"
    log.write_text(powerapi(lambda tick: 30 <= tick < 80))
    (series,) = power_logs.read(log).series
    assert sum(value != value for value in series.values) == 50
    first_j, second_j = energies(imported, log)["package"]
    assert first_j is None and second_j == pytest.approx(WANTED_J[1], rel=0.03)


def test_an_answer_of_a_controller_without_a_valid_state_is_missing(tmp_path: Path) -> None:
    answers = dcmi("%s").split("activated\n")
    answers[7] += "de"
    log = tmp_path / "power"
    log.write_text("activated\n".join(answers))
    (series,) = power_logs.read(log).series
    assert [value != value for value in series.values].index(True) == 7
    assert sum(value != value for value in series.values) == 1


def test_a_last_line_without_its_end_is_not_used(tmp_path: Path) -> None:
    log = tmp_path / "power"
    log.write_text(turbostat_summary().replace("199.001234 sec\n", "") + "1")
    read = power_logs.read(log)
    assert read.rejected is None and "may be cut off" in read.notes[0]


@pytest.mark.parametrize("of_second", [0.0, 60_000.0])
def test_the_energy_of_a_result_in_which_a_counter_begins_again_is_missing(
    tmp_path: Path, imported: Importer, of_second: float
) -> None:
    """Also if it begins with more than before."""
    log = tmp_path / "power"
    log.write_text(kepler(restarted_s=120.0, of_second=of_second))
    first_j, second_j = energies(imported, log, PUNCTUAL)["package"]
    assert first_j == pytest.approx(WANTED_J[0], rel=0.03) and second_j is None


def test_the_sum_of_counters_falls_if_one_of_them_does() -> None:
    """Also if the others rise by more, and at each start of the program."""
    values = [
        (float(second), part, joules)
        for second, of_second in enumerate([(10.0, 5.0), (20.0, 9.0), (90.0, 1.0), (95.0, 4.0)])
        for part, joules in zip("ab", of_second, strict=True)
    ]
    totals = [total for _, total in readings.summed_counters("m", [values])]
    assert totals == pytest.approx([15.0, 29.0, 0.0, 8.0], abs=0.01) and totals[2] < totals[1]
    later = [(time_s + 10, part, joules + 100) for time_s, part, joules in values[:4]]
    totals = [total for _, total in readings.summed_counters("m", [values[:4], later])]
    assert totals == pytest.approx([15.0, 29.0, 0.0, 14.0], abs=0.01)


@pytest.mark.parametrize("power_w", [0.0, 40.0])
def test_equal_totals_are_no_block(power_w: float) -> None:
    """Of a machine whose power does not change, also over a gap."""
    times_s = [*range(50), *range(60, 5000)]
    assert readings.totals([(float(time_s), power_w) for time_s in times_s]) == list(range(4990))


def test_a_total_need_not_be_the_exact_sum() -> None:
    """Each socket is read over an interval that is a little shorter or longer."""
    rows: list[tuple[float, float | None]] = []
    for second in range(20):
        rows += [(second, 300.0), (second + 0.001, 150.5), (second, None), (second, 151.2)]
    assert readings.totals(rows) == list(range(0, 80, 4))


def test_values_belong_together_within_half_of_the_period() -> None:
    values = [
        (second + apart_s, part, 1.0)
        for second in range(10)
        for part, apart_s in (("a", 0.0), ("b", 0.49))
        if (second, part) != (4, "a")
    ]
    rows = readings.summed("m", values)
    missing = [time_s for time_s, total in rows if total != total]
    assert len(rows) == 10 and missing == [4.49]
    with pytest.raises(PowerError, match="clock runs backwards"):
        readings.summed("m", values[::-1])


@pytest.mark.parametrize(("period_s", "form"), [(1, "mean"), (5, "sample"), (60, "sample")])
def test_records_of_a_watts_up_apart_are_samples(
    tmp_path: Path, imported: Importer, period_s: int, form: str
) -> None:
    """With a note that loads in step with them are not in the uncertainty."""
    log = tmp_path / "power.log"
    log.write_text(
        "".join(
            f"{START_S + second:.1f} #d,-,18,{10 * watts(second - 1):.0f},1201{',_' * 16};\n"
            for second in range(0, 600, period_s)
        )
    )
    (series,) = power_logs.read(log).series
    assert (series.form, series.period_s) == (form, period_s)
    results = CASES / "power-results"
    no_energy = 3 if period_s == 60 else 0
    body = imported(results, "--dry-run", "--power", log, "--power-offset", "0", code=no_energy)
    energies_of = [phase["energy"][0] for f in body["files"] for phase in f["reports"][0]["phases"]]
    for energy, wanted_j in zip(energies_of, WANTED_J, strict=True):
        is_known = energy["energy_j"] is not None
        assert is_known or form == "sample"
        assert not is_known or abs(energy["energy_j"] - wanted_j) <= energy["uncertainty_j"]
        remarks = [reason for reason in energy["reasons"] if "in step with its readings" in reason]
        assert bool(remarks) == (form == "sample" and is_known)
