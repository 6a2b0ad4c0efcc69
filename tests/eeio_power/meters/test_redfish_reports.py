"""Metric reports of BMCs (Redfish's telemetry), in the shapes that DMTF and makers publish."""

import json
import random
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from tests.eeio_power.one_meter import one_meter
from tests.processes import ran
from tests.simulators import http as doubles
from tests.simulators.http import FakeHttp

from eeio.cli import main
from eeio_power.energy import channel_energy, combined_uncertainty_j
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Meter, open_meters

ROOT = "/redfish/v1/TelemetryService"
POWER = "/redfish/v1/Chassis/1/Power#/PowerControl/0"
MINUTE = {"Schedule": {"RecurrenceInterval": "PT60S"}}


def value(
    watts: Any, age_s: float = 1.0, metric: str = "", source: str = "", zone: timezone = UTC
) -> dict[str, Any]:
    """A metric's value of that many seconds ago; a name that is empty is left out."""
    moment = datetime.now(zone) - timedelta(seconds=age_s)
    names = {"MetricId": metric, "MetricProperty": source}
    return {
        "MetricValue": watts,
        "Timestamp": moment.isoformat(timespec="seconds"),
        **{key: name for key, name in names.items() if name},
    }


def bmc(values: Any, definition: Any = MINUTE, more: Any = None) -> dict[str, Any]:
    """A BMC with 187 W in Power, and a report."""
    body = {"PowerControl": [{"PowerConsumedWatts": 187.0, "PowerMetrics": {"IntervalInMin": 20}}]}
    return {
        **doubles.redfish_of({"1": ("RackMount", body)}, {"1": ["1"]}),
        f"{ROOT}/MetricReports/PowerMetrics": {
            "MetricReportDefinition": {"@odata.id": f"{ROOT}/MetricReportDefinitions/PowerMetrics"},
            "MetricValues": values,
        },
        f"{ROOT}/MetricReportDefinitions/PowerMetrics": definition,
        **(more or {}),
    }


def opened(fake: FakeHttp, options: str = "") -> Meter:
    return one_meter(f"redfish:{fake.address},report=PowerMetrics{options}")


def test_the_mean_of_the_last_interval_is_read() -> None:
    """A report may keep older values; the zone of its times is not ours."""
    source, zone = f"{POWER}/PowerConsumedWatts", timezone(timedelta(hours=-5))
    values = [value(w, age_s, "", source, zone) for w, age_s in
              (("900", 90.0), ("180", 41.0), ("190", 21.0), ("200", 1.0))]  # fmt: skip
    values.append(value("400", 1.0, "", f"{POWER}/PowerMetrics/MaxConsumedWatts"))
    values.append(value("400", 1.0, "odd") | {"Timestamp": "9999-12-31T23:59:59-05:00"})
    with FakeHttp(bmc(values)) as fake:
        meter = opened(fake)
        assert meter.read() == [pytest.approx(190.0)]
        assert meter.native_period_s == 72.0, "the interval, and what report and clock may be late"
        (channel,) = meter.channels
        assert (channel.domain, channel.doubt) == ("system", None)
        assert channel.contents.includes, "as the power of the chassis"
        assert source in str(channel.remark)
        before = len(fake.requests)
        meter.read()
        assert len(fake.requests) == before + 1, "one request a reading"


def test_a_sensor_that_is_the_systems_is_recognised() -> None:
    """OpenBMC's reports name the sensor. Some BMCs leave out the slash after the #."""
    folder = "/redfish/v1/Chassis/1/Sensors"
    paths = bmc([value("241.5", 1.0, "total", f"{folder}/total_power#/Reading")])
    del paths["/redfish/v1/Chassis/1/Power"]
    sensor = {"ReadingType": "Power", "Reading": 240.0, "Name": "total power"}
    paths |= {
        folder: {"Members": [{"@odata.id": f"{folder}/total_power"}]},
        f"{folder}/total_power": sensor,
    }
    with FakeHttp(paths) as fake:
        assert opened(fake).read() == [241.5]
    with FakeHttp(
        bmc([value(99, source=POWER.replace("#/", "#") + "/PowerConsumedWatts")])
    ) as fake:
        assert opened(fake).read() == [99.0]


def test_an_unknown_metric_is_listed_and_can_be_named() -> None:
    names = ("SystemPowerConsumption", "TotalCPUPower", "TotalFanPower", "CPUAndMemoryPower")
    values = [value(str(187 - 50 * k), 1.0, name) for k, name in enumerate(names)]
    units = {f"{ROOT}/MetricDefinitions/{name}": {"Units": "W"} for name in names}
    with FakeHttp(bmc(values, more=units)) as fake:
        with pytest.raises(
            PowerError, match=r"metric=: SystemPowerConsumption 187, TotalCPUPower 137"
        ):
            opened(fake)
        meter = opened(fake, ",metric=SystemPowerConsumption")
        (channel,) = meter.channels
        assert (channel.domain, meter.read()) == ("system", [187.0])
        assert not channel.contents.includes and not channel.contents.leaves_out
        assert "was named: its name does not show what it contains" in str(channel.doubt)
        meter = opened(fake, ",metric=TotalCPUPower")
        (channel,) = meter.channels
        assert (channel.domain, meter.read()) == ("package", [137.0]) and channel.doubt
        with pytest.raises(PowerError, match=r"of a part \(FAN\)"):
            opened(fake, ",metric=TotalFanPower")
        with pytest.raises(PowerError, match="of several parts"):
            opened(fake, ",metric=CPUAndMemoryPower")
        with pytest.raises(PowerError, match="no metric has the name Attic; there are System"):
            opened(fake, ",metric=Attic")


def dell(watts: str, part: str) -> dict[str, Any]:
    return value(watts, 1.0, "PowerInput") | {"Oem": {"Dell": {"ContextID": part}}}


@pytest.mark.parametrize(
    ("metric", "why"),
    [
        # Lenovo's report has these, and no identifiers.
        (f"{POWER}/PowerMetrics/MaxConsumedWatts", "not the power of the last 60 s"),
        (f"{POWER}/PowerMetrics/MinConsumedWatts", "not the power of the last 60 s"),
        ("PeakPower", "not the power of the last 60 s"),
        ("Largest", "not the power of the last 60 s"),
        ("Hourly", "not the power of the last 60 s"),
        ("OfAnHour", "not the power of the last 60 s"),
        ("Extreme", "not the power of the last 60 s"),
        ("Energy", "not the power of the last 60 s"),
        ("Kilo", "is in kW, not in W"),
        ("Text", "has a value that is not the power of a machine"),
        ("Digits", "has a value that is not the power of a machine"),
        ("Zero", "has a value that is not the power of a machine"),
        ("Missing", "has a value that is not the power of a machine"),
        ("Twice", "several values of one time"),
        ("Alike", "several values of one time"),
        ("PowerInput", r"2 metrics are PowerInput: PowerInput PSU.1 100, PowerInput PSU.2 140"),
        ("OfCard", r"is of a part \(GPU\)"),
    ],
)
def test_what_is_no_power_is_rejected(metric: str, why: str) -> None:
    names = ("PeakPower", "Largest", "Hourly", "OfAnHour", "Extreme", "Energy", "Kilo", "Text",
             "Digits", "Zero", "Missing", "Twice", "Twice", "Alike", "Alike")  # fmt: skip
    reported = ("230",) * 7 + ("warm", "1_000", "0", "65535", "230", "231", "230", "230")
    values = [value(w, 1.0, name) for name, w in zip(names, reported, strict=True)]
    values += [value("200", 9.0, "Missing"), dell("100", "PSU.1"), dell("140", "PSU.2")]
    values += [value("230", 1.0, source=f"{POWER}/PowerMetrics/{key}ConsumedWatts")
               for key in ("Max", "Min")]  # fmt: skip
    values[6]["MetricDefinition"] = {"@odata.id": f"{ROOT}/MetricDefinitions/Other"}
    values.append(value("90", 1.0, "OfCard"))
    definition = {**MINUTE, "Metrics": [
        {"MetricId": "Largest", "CollectionFunction": "Maximum"},
        {"MetricId": "Hourly", "CollectionFunction": "Average", "CollectionDuration": "PT1H"},
    ]}  # fmt: skip
    reported_of = {
        "Other": {"Units": "kW"}, "Energy": {"Units": "W", "MetricType": "Counter"},
        "OfAnHour": {"CalculationAlgorithm": "AverageOverInterval",
                     "CalculationTimeInterval": "PT1H"},
        "Extreme": {"CalculationAlgorithm": "MaximumOverInterval"},
        "OfCard": {"Units": "W", "PhysicalContext": "GPU"},
    }  # fmt: skip
    more = {f"{ROOT}/MetricDefinitions/{name}": body for name, body in reported_of.items()}
    with FakeHttp(bmc(values, definition, more)) as fake, pytest.raises(PowerError, match=why):
        opened(fake, f",metric={metric}")


def test_dmtfs_own_example_is_doubtful() -> None:
    odd = "/redfish/v1/Chassis/Tray_1/Power#/0/PowerConsumedWatts"
    values = [value("100", 1.0, "AverageConsumedWatts", odd)]
    with FakeHttp(bmc(values)) as fake:
        meter = opened(fake, ",metric=AverageConsumedWatts")
        assert "was named" in str(meter.channels[0].doubt)
        assert "nor that it is in W" in str(meter.channels[0].doubt)


@pytest.mark.parametrize(
    "metrics",
    [
        [{"MetricId": "p", "CollectionFunction": "Average", "CollectionDuration": "PT1H"}],
        [{"MetricId": "q", "CollectionFunction": "Average"},
         {"MetricProperties": [f"{POWER}/PowerConsumedWatts"], "CollectionFunction": "Maximum"}],
        [{"MetricProperties": ["/redfish/v1/Chassis/1/Power#/PowerControl/{P}/PowerConsumedWatts"],
          "CollectionFunction": "Minimum"}],
        [{"MetricId": "p", "CollectionTimeScope": "StartupInterval"}],
        [{"MetricId": "p", "CollectionDuration": "P1M"}],
    ],
)  # fmt: skip
def test_the_systems_own_property_may_be_collected_as_something_else(metrics: Any) -> None:
    source = f"{POWER}/PowerConsumedWatts".replace("#/", "#")
    values = [value("187", 1.0, "p", source)]
    with (
        FakeHttp(bmc(values, {**MINUTE, "Metrics": metrics})) as fake,
        pytest.raises(PowerError, match="not the power of the last 60 s"),
    ):
        opened(fake)
    # OpenBMC writes a duration of 0 as PT.
    for function, duration in (("Average", "PT30S"), ("", "PT"), ("", "PT0S")):
        how = [{"MetricId": "p", "CollectionFunction": function, "CollectionDuration": duration}]
        with FakeHttp(bmc(values, {**MINUTE, "Metrics": how})) as fake:
            meter = opened(fake)
            assert (meter.read(), meter.channels[0].doubt) == ([187.0], None)


@pytest.mark.parametrize(("behind_s", "is_read"), [(0, True), (8, True), (-50, True), (14, False)])
def test_the_clock_of_the_server_may_be_ten_seconds_behind(
    monkeypatch: pytest.MonkeyPatch, behind_s: int, is_read: bool
) -> None:
    """OpenBMC keeps its Date header for 10 s."""
    now = datetime.now(UTC).timestamp()
    monkeypatch.setattr("eeio_power.http_json._date_s", lambda header: now - behind_s)
    values = [value("187", 0.0, source=f"{POWER}/PowerConsumedWatts")]
    with FakeHttp(bmc(values)) as fake:
        if not is_read:
            with pytest.raises(PowerError, match="ahead of the BMC's clock"):
                opened(fake)
            return
        assert opened(fake).read() == [187.0]


@pytest.mark.parametrize("source", ["", "#/Reading", "#Reading", "/#/Reading"])
def test_the_sensor_behind_the_environment_metrics_is_the_systems(source: str) -> None:
    sensor = "/redfish/v1/Chassis/1/Sensors/total_power"
    paths = bmc([value("241", 1.0, "p", f"{sensor}{source}")])
    del paths["/redfish/v1/Chassis/1/Power"]
    excerpt = {"DataSourceUri": sensor, "Reading": 240.0}
    paths["/redfish/v1/Chassis/1/EnvironmentMetrics"] = {"PowerWatts": excerpt}
    paths[sensor] = {"Reading": 240.0, "ReadingUnits": "W", "PhysicalContext": "Chassis"}
    with FakeHttp(paths) as fake:
        meter = opened(fake)
        assert (meter.read(), meter.channels[0].doubt) == ([241.0], None)


def test_naming_the_systems_own_property_is_no_doubt() -> None:
    source = f"{POWER}/PowerConsumedWatts"
    with FakeHttp(bmc([value("187", 1.0, "p", source), value("99", 1.0, "q", source)])) as fake:
        with pytest.raises(PowerError, match="2 metrics are the system's power"):
            opened(fake)
        meter = opened(fake, ",metric=p")
        assert (meter.read(), meter.channels[0].doubt) == ([187.0], None)
        assert meter.channels[0].contents.includes


@pytest.mark.parametrize(
    ("metric", "watts", "doubt"),
    [
        ("LastHourPower", "187", "may be a mean over a longer time"),
        ("p", "18.7", "is 18.7 W, and the BMC reports 187 W elsewhere"),
        ("p", "32766", "is 32766 W, and the BMC reports 187 W elsewhere"),
    ],
)
def test_a_report_that_contradicts_the_bmc_is_doubtful(metric: str, watts: str, doubt: str) -> None:
    with FakeHttp(bmc([value(watts, 1.0, metric, f"{POWER}/PowerConsumedWatts")])) as fake:
        assert doubt in str(opened(fake).channels[0].doubt)


def test_a_mean_of_the_systems_power_is_doubtful() -> None:
    values = [value("187", 1.0, "AverageConsumedWatts", f"{POWER}/PowerConsumedWatts")]
    with FakeHttp(bmc(values)) as fake:
        assert "may be a mean over a longer time" in str(opened(fake).channels[0].doubt)


def test_a_machine_that_is_off_or_one_of_several(tmp_path: Path) -> None:
    values = [value("187", 1.0, "p", f"{POWER}/PowerConsumedWatts")]
    paths = bmc(values)
    dmi = tmp_path / "sys/class/dmi/id/chassis_type"
    dmi.parent.mkdir(parents=True)
    dmi.write_text("25\n")
    with FakeHttp(paths) as fake:
        spec = f"redfish:{fake.address},report=PowerMetrics"
        assert "name its chassis with chassis=" in str(one_meter(spec, tmp_path).channels[0].doubt)
    paths["/redfish/v1/Systems/1"]["PowerState"] = "Off"
    with FakeHttp(paths) as fake:
        for options in ("", ",metric=p"):
            with pytest.raises(PowerError, match="is off, and this machine runs"):
                opened(fake, options)


@pytest.mark.parametrize(
    ("values", "options", "why"),
    [
        (80.0, ",metric=x", r"is \d+ s old, with 60 s between reports"),
        (400.0, ",metric=x", r"is 4\d\d s old, with 60 s between reports"),
        (-400.0, ",metric=x", r"is [34]\d\d s ahead of the BMC's clock"),
        ([{"MetricId": "x", "MetricValue": "187", "Timestamp": "2026-01-01T00:00:00"}],
         ",metric=x", "a time without a zone, or none"),
        ([{"MetricId": "x", "MetricValue": "187"}], ",metric=x", "a time without a zone, or none"),
        ([], ",metric=x", "the report has no values: is it enabled"),
        ("none", ",metric=x", "not a metric report"),
    ],
)  # fmt: skip
def test_old_values_and_odd_reports_are_rejected(values: Any, options: str, why: str) -> None:
    values = [value("187", values, "x")] if isinstance(values, float) else values
    with FakeHttp(bmc(values)) as fake, pytest.raises(PowerError, match=why):
        opened(fake, options)


def test_the_interval_has_to_be_known() -> None:
    values = [value("187", 1.0, source=f"{POWER}/PowerConsumedWatts")]
    for definition in ({}, {"Schedule": {"RecurrenceInterval": "P1M"}}, [], None):
        with FakeHttp(bmc(values, definition)) as fake:
            with pytest.raises(PowerError, match="is unknown; give period_s="):
                opened(fake)
            meter = opened(fake, ",period_s=10")
            assert (meter.native_period_s, meter.read()) == (22.0, [187.0])


def test_a_report_that_stops_becomes_too_old() -> None:
    values = [value("187", 0.0, source=f"{POWER}/PowerConsumedWatts")]
    with FakeHttp(bmc(values)) as fake:
        meter = opened(fake)
        values[0] = value("187", 100.0, source=f"{POWER}/PowerConsumedWatts")
        with pytest.raises(PowerError, match="s old, with 60 s between reports"):
            meter.read()
        values[0] = value("187", 0.0, "other")
        with pytest.raises(PowerError, match="is not in the report"):
            meter.read()


def test_a_metric_requires_a_report_and_a_sum_a_metric() -> None:
    values = [value("187", 1.0, "x")]
    supplies = [{"Name": f"PSU{n}", "PowerInputWatts": 100.0} for n in (1, 2)]
    paths = bmc(values)
    paths["/redfish/v1/Chassis/1/Power"] = {"PowerSupplies": supplies}
    with FakeHttp(paths) as fake:
        with pytest.raises(PowerError, match="metric= requires report="):
            open_meters([f"redfish:{fake.address},metric=x"])
        with pytest.raises(PowerError, match="is a sum, so no metric contains it"):
            opened(fake)


def test_without_a_clock_of_the_bmc_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eeio_power.http_json._date_s", lambda header: None)
    values = [value("187", 1.0, source=f"{POWER}/PowerConsumedWatts")]
    with FakeHttp(bmc(values)) as fake, pytest.raises(PowerError, match="no Date header"):
        opened(fake)


@pytest.mark.parametrize("interval_s", [1.0, 5.0, 60.0])
@pytest.mark.parametrize("idle_w", [25.0, 100.0, 200.0])
def test_the_uncertainty_contains_late_reports(interval_s: float, idle_w: float) -> None:
    """Windows of 200 W on an idle machine: a reading is the mean of an interval that ended at most
    an interval and 12 s before, which is the meter's native period."""
    busy_w = 200.0
    draw = random.Random(7)
    period_s = interval_s + 12.0
    channel = Channel("p", "system", "power_w", accuracy_relative=0.05, resolution=1.0)
    for window_s in [period_s * factor for factor in (4.0, 10.0, 40.0)] * 20:
        start_s = 10.0 * period_s + draw.uniform(0.0, period_s)
        end_s = start_s + window_s
        late_s, report_s = draw.uniform(0.0, 12.0), draw.uniform(0.0, interval_s)

        def mean_w(until_s: float, start_s: float = start_s, end_s: float = end_s) -> float:
            since_s = until_s - interval_s
            busy_s = max(0.0, min(until_s, end_s) - max(since_s, start_s))
            return idle_w + (busy_w - idle_w) * busy_s / interval_s

        first_s = draw.uniform(0.0, period_s)
        polls_s = [first_s + k * period_s for k in range(int(end_s / period_s) + 10)]
        polls_s = sorted([*polls_s, end_s + 0.01])
        ended_s = [
            report_s + (poll_s - late_s - report_s) // interval_s * interval_s for poll_s in polls_s
        ]
        found = channel_energy(
            channel, polls_s, [mean_w(at_s) for at_s in ended_s], period_s, period_s, start_s, end_s
        )
        assert found.energy_j is not None
        error_j = found.energy_j - busy_w * window_s
        assert abs(error_j) <= combined_uncertainty_j([found]), (window_s, error_j)


def test_a_report_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    values = [value("187", 1.0, "p", f"{POWER}/PowerConsumedWatts"), value("12", 1.0, "other")]
    with FakeHttp(bmc(values)) as fake:
        spec = f"redfish:{fake.address},report=PowerMetrics"
        assert main(["meter", "list", "--meter", spec, "--format", "json"]) == 0
        (channel,) = json.loads(capsys.readouterr().out)["probed"][0]["channels"]
        assert (channel["domain"], channel["value"], channel["doubt"]) == ("system", 187.0, None)
        assert main(["meter", "list", "--meter", f"{spec},metric=other"]) == 0
        assert "doubtful: other was named: its name does not show" in capsys.readouterr().out
        assert main(["meter", "list", "--meter", f"{spec},metric=q"]) == 2
        assert "no metric has the name q" in capsys.readouterr().err
        # Half a second is no window of a meter with a reading a minute.
        arguments = ["record", "power", "--meter", spec, "--format", "json", "--", "sleep", "0.5"]
        done = ran([sys.executable, "-m", "eeio", *arguments], code=3)
        (window,) = json.loads(done.stdout)["readings"]
        assert window["energy_j"] is None and not window["valid"] and window["reasons"]
