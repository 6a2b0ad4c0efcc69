"""Campaigns made of other people's files: what is computed, and what is named."""

import copy
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.eeio.importing import made

from eeio.errors import EeioError, RejectedError
from eeio.exchange.importing import mapping, runs
from eeio.exchange.importing.imported import Imported
from eeio.exchange.importing.mapping import Key, Labels
from eeio.exchange.importing.power import read_power
from eeio.record.run import EnergyReading
from eeio.units.quantities import MOST_UNCERTAIN


def read(folder: Path, body: dict[str, Any] = made.MAP, **files: str) -> Imported:
    (campaign,) = runs.read(mapping.load(made.write(folder, body, **files)), folder).campaigns
    return campaign


def changed(**campaign: Any) -> dict[str, Any]:
    body = copy.deepcopy(made.MAP)
    body["campaigns"][0] |= campaign
    return body


def test_power_is_the_mean_of_the_samples_scaled_as_the_map_requires(tmp_path: Path) -> None:
    campaign = read(tmp_path)
    first, second = campaign.runs
    (phase,) = first.phases
    system, device = phase.energy
    assert phase.bandwidth_bytes_per_s == 1e6
    assert (first.experiment.operation, first.experiment.request_size_bytes) == ("write", 32768)
    assert first.experiment.cache.buffer == "off"
    # 10 x 1.0 x 2.0 / 2 and 10 x 1.0 x 3.0 / 2
    assert system.power_w == 12.5
    assert system.energy_j == 250.0
    assert system.coverage == 0.5
    # 5 x (2.6 - 2.5), up and down by 5 mW for each sample
    assert device.power_w == pytest.approx(0.5)
    # The accuracy, and the edges: half a period of the highest power at each.
    edges_j = 2 * 0.25 * 0.5 * 20.0 / 10.0
    assert device.uncertainty_j is not None
    assert math.hypot(0.1 * 10.0, edges_j) <= device.uncertainty_j <= 2.0
    assert second.phases[0].energy[0].power_w == 20.0
    assert [reading.power_w for reading in campaign.idle] == [2.5]
    assert campaign.idle_watts == {"system": [2.5]}


def test_an_accuracy_that_is_not_stated_is_that_of_other_logs(tmp_path: Path) -> None:
    system = read(tmp_path).runs[0].phases[0].energy[0]
    assert system.uncertainty_j is not None and system.uncertainty_j > 0.05 * 250.0
    assert "the accuracy of this meter is not stated: 5% is assumed" in system.reasons


def test_one_value_of_a_run_is_its_mean_of_known_accuracy_only(tmp_path: Path) -> None:
    power = f"{made.FACTORS};v;a;d\nwrite;32;0;1;1,0;2,0;2,7\nwrite;32;0;2;1,0;3,0;2,7\n"
    body = changed()
    for source in body["campaigns"][0]["power"]:
        del source["lag_s"], source["averages_s"]
        source.pop("idle", None)
        source["period_s"] = 20.0
    reading = read(tmp_path, body, power=power).runs[0].phases[0].energy[1]
    assert (reading.power_w, reading.coverage) == (pytest.approx(1.0), 1.0)
    assert reading.uncertainty_j == pytest.approx(0.1 * 20.0)
    (reason,) = reading.reasons
    assert "one value of this run" in reason and "delay" in reason


def test_samples_of_a_run_may_be_late_if_the_map_does_not_state_the_delay(tmp_path: Path) -> None:
    body = changed()
    for source in body["campaigns"][0]["power"]:
        del source["lag_s"], source["averages_s"]
    system = read(tmp_path, body).runs[0].phases[0].energy[0]
    assert (system.energy_j, system.valid) == (None, False)
    assert "those of the last 3.5 s of this window are missing" in system.reasons[0]


def test_a_sentinel_is_a_missing_sample_and_is_named(tmp_path: Path) -> None:
    campaign = read(tmp_path)
    device = campaign.runs[1].phases[0].energy[1]
    assert not device.valid
    assert (device.power_w, device.lost) == (None, 20)
    assert any("20 samples of device power without a value" in r for r in campaign.remarks)


def test_zero_power_is_invalid_with_its_reason(tmp_path: Path) -> None:
    campaign = read(tmp_path, power=made.POWER.replace("write;32;0;2;2,0;2,0", "write;32;0;2;0;0"))
    system = campaign.runs[1].phases[0].energy[0]
    assert not system.valid
    assert "0 W" in system.reasons[0]


def test_an_unknown_word_is_named_with_its_line(tmp_path: Path) -> None:
    campaign = read(tmp_path, runs=made.RUNS + "erase;32;0;1;1;1;1\n")
    assert len(campaign.runs) == 2
    assert any("runs.csv:4" in r and "'erase'" in r for r in campaign.remarks)


def test_the_same_run_twice_counts_once_when_it_is_the_same(tmp_path: Path) -> None:
    campaign = read(tmp_path, runs=made.RUNS + "write;32;0;2;1200000;24000000;20.0\n")
    assert [run.validity for run in campaign.runs] == [(), ()]
    assert any("duplicate run" in remark for remark in campaign.remarks)


def test_the_same_run_with_two_values_is_not_used(tmp_path: Path) -> None:
    campaign = read(tmp_path, runs=made.RUNS + "write;32;0;2;99;99;2.0\n")
    assert campaign.runs[0].valid
    assert "different values" in campaign.runs[1].validity[0]
    assert campaign.runs[1].phases == ()


@pytest.mark.parametrize("rate", ["0", "-1", "", "fast"])
def test_a_bandwidth_that_is_none_makes_the_run_invalid(tmp_path: Path, rate: str) -> None:
    campaign = read(tmp_path, runs=made.RUNS + f"read;32;0;1;{rate};5;2.0\n")
    bad = next(run for run in campaign.runs if run.experiment.operation == "read")
    assert "bandwidth" in bad.validity[0]


def test_a_row_whose_figures_contradict_each_other_is_an_invalid_run(tmp_path: Path) -> None:
    rows = made.RUNS.replace("1200000;24000000", "1200000;240000000")
    campaign = read(tmp_path, runs=rows)
    good, bad = campaign.runs
    assert good.valid
    assert bad.phases == ()
    (reason,) = bad.validity
    message = "runs.csv:3: 240000000 bytes at 1.2e+06 bytes/s take 200 s, but its window is 20 s"
    assert message in reason
    assert any(message in remark for remark in campaign.remarks)


def test_unequal_and_few_repetitions_are_named(tmp_path: Path) -> None:
    campaign = read(tmp_path, runs=made.RUNS + "read;32;0;1;5;5;2.0\n")
    text = " ".join(campaign.remarks)
    assert "sequential read 32768 B, buffer off: 1 repetitions where others have 2" in text
    assert "only 2 repetitions" in text


def test_what_the_map_leaves_out_is_counted(tmp_path: Path) -> None:
    body = changed(leave_out=[{"factors": {"operation": "read"}, "reason": "not wanted"}])
    campaign = read(tmp_path, body, runs=made.RUNS + "read;32;1;1;5;5;2.0\n")
    assert len(campaign.runs) == 2
    assert "1 runs with operation=read left out: not wanted" in campaign.remarks


def test_remarks_name_files_within_the_folder(tmp_path: Path) -> None:
    campaign = read(tmp_path, runs=made.RUNS + "erase;32;0;1;1;1;1\n")
    assert not any(str(tmp_path) in remark for remark in campaign.remarks)


def test_a_machine_reports_what_the_map_does_not_contain(tmp_path: Path) -> None:
    machine = read(tmp_path).machine
    assert (machine.hostname, machine.device) == ("board", "sda")
    assert machine.missing["cpu_model"] == "not in the map"


_KILOWATT = "op;kb;cache;rep;v;a;d\n" + "".join(
    f"write;32;0;{rep};1,22{k};1;1,0{k}4\n" for rep in (1, 2) for k in range(10)
)
"""A board of 1.2 kW, as an instrument with separators of thousands writes it."""


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"power": _KILOWATT}, r"power\.csv: 1,220 may be 1220 or 1\.220: write numbers with a"),
        ({"power": _KILOWATT.replace(";1;", ";0.5;")}, r"comma of 1,220 is not known to be decim"),
        ({"runs": made.RUNS.replace("20000000", "20,000,000")}, r"runs\.csv: the comma of 20,000"),
        ({"runs": ""}, "runs.csv: empty"),
        ({"runs": "op;kb;cache;rep;rate;bytes;s\n"}, "a header and no row"),
        ({"runs": made.RUNS + "write;32\n"}, "runs.csv:4: 2 cells"),
        ({"runs": made.RUNS.replace("rate", "speed")}, "no column 'rate'"),
        ({"power": made.POWER.replace(";v;", ";x;")}, "no column 'v'"),
        ({"power": made.POWER.replace(";v;a;d", ";v;v;d")}, r"power\.csv: .* column 'v' 2 times"),
        ({"zero": "d\nOL\n"}, "has no number"),
        ({"runs": made.FACTORS + ";rate;bytes;s\nerase;32;0;1;1;1;1\n"}, "no run in it"),
    ],
)
def test_files_that_are_not_what_the_map_describes(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    with pytest.raises(EeioError, match=message):
        read(tmp_path, **files)


def test_a_folder_without_the_files_is_rejected(tmp_path: Path) -> None:
    path = made.write(tmp_path)
    (tmp_path / "runs.csv").unlink()
    with pytest.raises(RejectedError, match="contains none of the files"):
        runs.read(mapping.load(path), tmp_path)
    with pytest.raises(RejectedError, match="no such folder"):
        runs.read(mapping.load(path), tmp_path / "nowhere")


def test_one_missing_campaign_of_two_is_a_remark(tmp_path: Path) -> None:
    body = copy.deepcopy(made.MAP)
    other = copy.deepcopy(body["campaigns"][0])
    other["name"], other["runs"]["table"] = "other", "other.csv"
    body["campaigns"].append(other)
    body["not_imported"] = [{"files": "zero.csv", "reason": "the sensor at rest"}]
    found = runs.read(mapping.load(made.write(tmp_path, body)), tmp_path)
    assert [campaign.name for campaign in found.campaigns] == ["board"]
    assert found.remarks == [
        "other: other.csv is missing", "zero.csv: not imported: the sensor at rest",
    ]  # fmt: skip


LOG = """\
write_32_0_1
start
Qui Ago 17 21:43:09 BRT 2017
end
Qui Ago 17 21:44:09 BRT 2017
write_32_0_2
start
Qui Ago 17 21:46:09 BRT 2017
end
Qui Ago 17 21:47:09 BRT 2017
"""


def _scope_w(minute: int) -> float:
    """The last minute shows the resolution."""
    return {42: 10.0, 43: 10.0, 44: 10.0, 48: 20.1}.get(minute, 20.0)


SCOPE = (
    "Model;DSO;\r\n;;\r\nTime (s);Watt;\r\n"
    + "".join(
        f"2017-08-17 21:{minute}:{second:02}.{half}00;{_scope_w(minute)};\r\n"
        for minute in range(42, 49)
        for second in range(60)
        for half in (0, 5)
    )
)  # fmt: skip
NAME = r"(?P<operation>[a-z]+)_(?P<size>\d+)_(?P<cache>\d)_(?P<repetition>\d+)"


def _logged(**power: Any) -> dict[str, Any]:
    source = {
        "domain": "system", "meter": "scope", "csv": "scope.csv",
        "map": "time:Time (s)+power_w:Watt", "tz": "America/Sao_Paulo", "lag_s": 0,
        "averages_s": 0.5, **power,
    }  # fmt: skip
    return changed(log={"file": "log.csv", "name": NAME}, power=[source])


def test_a_log_with_times_is_cut_by_the_runs_of_another_log(tmp_path: Path) -> None:
    campaign = read(tmp_path, _logged(mean="samples"), log=LOG, scope=SCOPE)
    readings = [run.phases[0].energy[0] for run in campaign.runs]
    assert [reading.power_w for reading in readings] == [10.0, 20.0]
    # 60 s with both ends.
    assert [reading.samples for reading in readings] == [121, 121]
    assert [run.duration_s for run in campaign.runs] == [60.0, 60.0]
    assert campaign.runs[0].started_utc == "2017-08-18T00:43:09+00:00"


def test_the_clock_of_the_log_may_be_ahead(tmp_path: Path) -> None:
    campaign = read(tmp_path, _logged(mean="samples", offset_s=180.0), log=LOG, scope=SCOPE)
    first, second = campaign.runs
    assert first.phases[0].energy[0].power_w == 20.0
    assert second.phases[0].energy[0].reasons == ("no sample of this run in scope.csv",)
    assert "scope.csv: no sample during write_32_0_2" in campaign.remarks


# Runs of 10 s, 100 W when idle and 300 W under load.
_RUNS_S = [(60.0 + 25.0 * k, 70.0 + 25.0 * k) for k in range(4)]


def _late(form: str, real_lag_s: float) -> dict[str, str]:
    """The log of the runs, and one a second of a meter that is late."""
    start = datetime(2026, 11, 1, 12, tzinfo=UTC)

    def loaded_s(time_s: float) -> float:
        return sum(min(max(time_s - begin_s, 0.0), end_s - begin_s) for begin_s, end_s in _RUNS_S)

    log, rows = [], ["time;value"]
    for k, (begin_s, end_s) in enumerate(_RUNS_S, 1):
        begin, end = (f"{start + timedelta(seconds=s):%a %b %d %H:%M:%S UTC %Y}"
                      for s in (begin_s, end_s))  # fmt: skip
        log += [f"write_32_0_{k}", "start", begin, "end", end]
    for second in range(240):
        real_s = second - real_lag_s
        noise_w = 0.1 * (second % 3)
        value = 100.0 + noise_w + 200.0 * (loaded_s(real_s) > loaded_s(real_s - 1e-6))
        if form == "energy_j":
            value = 1e5 + 100.0 * real_s + 200.0 * loaded_s(real_s)
        rows.append(f"{start + timedelta(seconds=second):%Y-%m-%dT%H:%M:%S+00:00};{value:.1f}")
    runs_ = "".join(f"write;32;0;{k};1000000;10000000;10.0\n" for k in range(1, 5))
    return {"log": "\n".join(log) + "\n", "scope": "\n".join(rows) + "\n",
            "runs": f"{made.FACTORS};rate;bytes;s\n{runs_}"}  # fmt: skip


def _late_readings(folder: Path, form: str, real_lag_s: float, **power: Any) -> list[EnergyReading]:
    body = _logged(map=f"time:time+{form}:value", accuracy=0.05, **power)
    (source,) = body["campaigns"][0]["power"]
    for key in [key for key, value in source.items() if value is None]:
        del source[key]
    found = read(folder, body, **_late(form, real_lag_s))
    return [run.phases[0].energy[0] for run in found.runs]


@pytest.mark.parametrize("domain", ["system", "device"])
@pytest.mark.parametrize("lag_s", [0.0, 2.0, 5.0])
def test_a_log_of_unknown_delay_is_uncertain_by_what_it_may_be_late(
    tmp_path: Path, domain: str, lag_s: float
) -> None:
    found = _late_readings(tmp_path, "power_w", lag_s, domain=domain, lag_s=None, averages_s=None)
    for reading in found:
        if reading.energy_j is not None and reading.uncertainty_j is not None:
            assert abs(reading.energy_j - 3000.0) <= reading.uncertainty_j
        relative = reading.uncertainty_relative
        assert relative is None or relative > MOST_UNCERTAIN
        assert any("readings are 2.5 ± 2.5 s late" in reason for reason in reading.reasons)


@pytest.mark.filterwarnings("error")  # a whole number of seconds is a time as well
@pytest.mark.parametrize("lag_s", [0.0, 2.0])
def test_a_stated_delay_of_a_log_is_undone(tmp_path: Path, lag_s: float) -> None:
    found = _late_readings(tmp_path, "power_w", lag_s, lag_s=lag_s, averages_s=1)
    for reading in found:
        assert reading.energy_j is not None and reading.uncertainty_j is not None
        assert abs(reading.energy_j - 3000.0) <= reading.uncertainty_j
        # date(1) omits parts of a second, which may be 200 W at an edge.
        assert 200.0 <= reading.uncertainty_j <= 600.0


def test_a_counter_in_a_log_gives_its_energy(tmp_path: Path) -> None:
    found = _late_readings(tmp_path, "energy_j", 2.0, lag_s=2, averages_s=None)
    for reading in found:
        assert reading.energy_j == pytest.approx(3000.0, abs=5.0)
        assert reading.power_w == pytest.approx(300.0, abs=0.5)
    unknown = _late_readings(tmp_path, "energy_j", 2.0, lag_s=None, averages_s=None)
    assert all(any("late" in why for why in reading.reasons) for reading in unknown)


@pytest.mark.parametrize(("lag_s", "known"), [(None, False), (0.0, True)])
def test_a_log_of_one_run_does_not_contain_what_comes_late(
    tmp_path: Path, lag_s: float | None, known: bool
) -> None:
    """It lags by 2 s and ends with the run of 20 s, so that 2 s of idle power are in it."""
    lines = "".join(
        f"2026-11-01T12:00:{second:02}+00:00;{(100 if second <= 2 else 300) + 0.1 * (second % 3)}\n"
        for second in range(1, 21)
    )
    (tmp_path / "a.csv").write_text(f"time;w\n{lines}")
    body = {"domain": "system", "meter": "m", "csv_of_run": "{run}.csv",
            "map": "time:time+power_w:w", "accuracy": 0.05, "averages_s": 1.0,
            "lag_s": lag_s}  # fmt: skip
    if lag_s is None:
        del body["averages_s"], body["lag_s"]
    key: Key = ((), 1)
    power = read_power(body, tmp_path, Labels({}, {}), {}, {}, {key: "a"})
    reading = power.reading(key, 20.0)
    assert (reading.energy_j is not None) == known
    if not known:
        assert "those of the last 3.2 s of this window are missing" in reading.reasons[0]


@pytest.mark.parametrize("power", [{"mean": "samples"}, {"idle_until": "2026-11-01T12:00:10"}])
def test_a_counter_has_no_samples_of_power(tmp_path: Path, power: dict[str, str]) -> None:
    with pytest.raises(EeioError, match="a counter has no samples of power"):
        _late_readings(tmp_path, "energy_j", 0.0, **power)


def test_one_reading_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(EeioError, match="one reading is too few"):
        read(tmp_path, _logged(), log=LOG, scope="Time (s);Watt\r\n2017-08-17 21:43:09;10\r\n")


def test_the_mean_of_samples_adds_its_distance_to_the_uncertainty(tmp_path: Path) -> None:
    found = _late_readings(tmp_path, "power_w", 2.0, lag_s=0, averages_s=1, mean="samples")
    plain = _late_readings(tmp_path, "power_w", 2.0, lag_s=0, averages_s=1)
    for mean, integral in zip(found, plain, strict=True):
        assert mean.energy_j is not None and integral.energy_j is not None
        assert mean.uncertainty_j == pytest.approx(
            (integral.uncertainty_j or 0.0) + abs(mean.energy_j - integral.energy_j)
        )


def test_idle_samples_before_the_first_run(tmp_path: Path) -> None:
    body = _logged(mean="samples", idle_until="2017-08-17 21:42:00.5")
    campaign = read(tmp_path, body, log=LOG, scope=SCOPE)
    assert campaign.idle_watts["system"] == [10.0, 10.0]


def test_a_run_of_the_log_without_a_result_is_named(tmp_path: Path) -> None:
    extra = LOG + "read_32_0_1\nstart\nThu Aug 17 21:47:39 BRT 2017\nend\n" \
        "Thu Aug 17 21:47:49 BRT 2017\n"  # fmt: skip
    campaign = read(tmp_path, _logged(mean="samples"), log=extra, scope=SCOPE)
    bad = next(run for run in campaign.runs if run.experiment.operation == "read")
    assert "there is no result of it" in bad.validity[0]


def test_spans_without_a_tool(tmp_path: Path) -> None:
    spans = "when;test;w\n" + "".join(
        f"2026-01-31 12:{minute:02}:{second:02};t{minute + 1};{5 + minute}\n"
        for minute, last in ((0, 30), (1, 40))
        for second in range(last + 1)
    )
    body = changed(
        factors={"level": "filesystem", "operation": "write", "spatiality": "sequential"},
        runs={"spans": "spans.csv", "run": "test", "time": "when", "tz": "UTC",
              "name": r"t(?P<repetition>\d)"},
        power=[{"domain": "system", "meter": "m", "csv": "spans.csv", "mean": "samples",
                "map": "time:when+power_w:w", "tz": "UTC", "lag_s": 0, "averages_s": 1}],
    )  # fmt: skip
    campaign = read(tmp_path, body, spans=spans)
    assert [run.phases[0].bandwidth_bytes_per_s for run in campaign.runs] == [None, None]
    assert [run.phases[0].energy[0].power_w for run in campaign.runs] == [5.0, 6.0]
    assert [run.duration_s for run in campaign.runs] == [30.0, 40.0]


def test_processor_columns_of_a_table(tmp_path: Path) -> None:
    cpu = made.FACTORS + ";cpu;f0;f1\nwrite;32;0;1;50;1000;3000\nwrite;32;0;1;x;2000;\n"
    body = changed(
        processor={"table": "cpu.csv", "use_percent": "cpu", "frequency_mhz": ["f0", "f1"]}
    )
    first, second = read(tmp_path, body, cpu=cpu).runs
    assert first.processor is not None
    assert first.processor.times_s == (0.0, 1.0)
    assert first.processor.use == (0.5, None)
    assert first.processor.frequency_hz == (2e9, 2e9)
    assert second.processor is None


def test_blocks_of_frequencies(tmp_path: Path) -> None:
    start = 1503016989 + 58  # the log's first run, 00:43:09 UTC, ends 60 s later
    blocks = f"{start}\n" + "1000\n3000\n" * 2 + f"2000\n2000\n2000\n2000\n{start + 4}\n"
    body = _logged(mean="samples") | {}
    body["campaigns"][0]["processor"] = {"blocks": "blocks.csv", "values_per_sample": 2}
    campaign = read(tmp_path, body, log=LOG, scope=SCOPE, blocks=blocks)
    series = campaign.runs[0].processor
    assert series is not None
    assert series.times_s == (58.0, 59.0, 60.0)
    assert series.frequency_hz == (2e9, 2e9, 2e9)
    assert "use" in series.missing


@pytest.mark.parametrize("text", ["1 2 3", "1503016989 5 6", "1503016989 1 2 3 1503016990", ""])
def test_torn_blocks_are_rejected(tmp_path: Path, text: str) -> None:
    body = _logged(mean="samples")
    body["campaigns"][0]["processor"] = {"blocks": "blocks.csv", "values_per_sample": 2}
    with pytest.raises(EeioError, match=r"blocks\.csv"):
        read(tmp_path, body, log=LOG, scope=SCOPE, blocks=text)
