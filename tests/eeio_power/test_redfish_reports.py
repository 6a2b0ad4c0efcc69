"""Metric reports of BMCs (Redfish's telemetry), in the shapes that DMTF and makers publish."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from tests.simulators import http as doubles
from tests.simulators.http import FakeHttp

from eeio_power.errors import PowerError
from eeio_power.meters import Meter, open_meters

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
    (meter,) = open_meters([f"redfish:{fake.address},report=PowerMetrics{options}"])
    return meter


def test_the_mean_of_the_last_interval_is_read() -> None:
    """A report may keep older values; the zone of its times is not ours."""
    source, zone = f"{POWER}/PowerConsumedWatts", timezone(timedelta(hours=-5))
    values = [value(w, age_s, "", source, zone) for w, age_s in
              (("900", 70.0), ("180", 41.0), ("190", 21.0), ("200", 1.0))]  # fmt: skip
    values.append(value("400", 1.0, "", f"{POWER}/PowerMetrics/MaxConsumedWatts"))
    with FakeHttp(bmc(values)) as fake:
        meter = opened(fake)
        assert meter.read() == [pytest.approx(190.0)]
        assert meter.native_period_s == 60.0
        (channel,) = meter.channels
        assert (channel.domain, channel.doubt) == ("system", None)
        assert channel.contents.includes, "as the power of the chassis"
        assert source in str(channel.remark)
        before = len(fake.requests)
        meter.read()
        assert len(fake.requests) == before + 1, "one request a reading"
        meter.close()


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
        meter = opened(fake)
        assert meter.read() == [241.5]
        meter.close()
    with FakeHttp(
        bmc([value(99, source=POWER.replace("#/", "#") + "/PowerConsumedWatts")])
    ) as fake:
        meter = opened(fake)
        assert meter.read() == [99.0]
        meter.close()


def test_an_unknown_metric_is_listed_and_can_be_named() -> None:
    values = [value("187", 1.0, "SystemPowerConsumption"), value("71", 1.0, "TotalCPUPower"),
              value("12", 1.0, "TotalFanPower")]  # fmt: skip
    units = {f"{ROOT}/MetricDefinitions/{name}": {"Units": "W"}
             for name in ("SystemPowerConsumption", "TotalCPUPower", "TotalFanPower")}  # fmt: skip
    with FakeHttp(bmc(values, more=units)) as fake:
        with pytest.raises(PowerError, match=r"metric=: SystemPowerConsumption 187, TotalCPUPower"):
            opened(fake)
        meter = opened(fake, ",metric=SystemPowerConsumption")
        (channel,) = meter.channels
        assert (channel.domain, channel.doubt, meter.read()) == ("system", None, [187.0])
        assert not channel.contents.includes and not channel.contents.leaves_out
        meter.close()
        meter = opened(fake, ",metric=TotalCPUPower")
        assert (meter.channels[0].domain, meter.read()) == ("package", [71.0])
        meter.close()
        with pytest.raises(PowerError, match="of a part"):
            opened(fake, ",metric=TotalFanPower")
        with pytest.raises(PowerError, match="0 metrics have the name Attic"):
            opened(fake, ",metric=Attic")


@pytest.mark.parametrize(
    ("metric", "why"),
    [
        # Lenovo's report has these three, and no identifiers.
        (f"{POWER}/PowerMetrics/MaxConsumedWatts", "not the power of a time"),
        (f"{POWER}/PowerMetrics/MinConsumedWatts", "not the power of a time"),
        ("PeakPower", "not the power of a time"),
        ("Hourly", "not the power of a time"),
        ("Kilo", "is in kW, not in W"),
        ("Text", "is not a number"),
        ("Zero", "0 W for a running machine"),
        ("Twice", "several values of one time"),
    ],
)
def test_what_is_no_power_is_rejected(metric: str, why: str) -> None:
    values = [value("230", 1.0, source=f"{POWER}/PowerMetrics/{key}ConsumedWatts")
              for key in ("Max", "Min", "Average")]  # fmt: skip
    values += [value("230", 1.0, name) for name in ("PeakPower", "Hourly", "Kilo")]
    values += [value("warm", 1.0, "Text"), value("0", 1.0, "Zero")]
    values += [value("230", 1.0, "Twice"), value("231", 1.0, "Twice")]
    definition = {**MINUTE, "Metrics": [{"MetricId": "Hourly", "CollectionFunction": "Maximum"}]}
    units = {f"{ROOT}/MetricDefinitions/Kilo": {"Units": "kW"}}
    with FakeHttp(bmc(values, definition, units)) as fake, pytest.raises(PowerError, match=why):
        opened(fake, f",metric={metric}")


@pytest.mark.parametrize(
    ("metric", "doubt"),
    [
        (f"{POWER}/PowerMetrics/AverageConsumedWatts", "is a mean over 1200 s"),
        ("AverageConsumedWatts", "a mean over a time that the BMC does not give"),
        ("SystemPower", "the unit of SystemPower is unknown: W is assumed"),
    ],
)
def test_what_may_be_something_else_is_doubtful(metric: str, doubt: str) -> None:
    """DMTF's own example is the second."""
    odd = "/redfish/v1/Chassis/Tray_1/Power#/0/PowerConsumedWatts"
    values = [value("230", 1.0, source=f"{POWER}/PowerMetrics/AverageConsumedWatts"),
              value("100", 1.0, "AverageConsumedWatts", odd),
              value("230", 1.0, "SystemPower")]  # fmt: skip
    with FakeHttp(bmc(values)) as fake:
        meter = opened(fake, f",metric={metric}")
        assert doubt in str(meter.channels[0].doubt)
        meter.close()


def test_a_long_interval_may_contain_a_mean() -> None:
    values = [value("230", 1.0, source=f"{POWER}/PowerMetrics/AverageConsumedWatts")]
    hourly = {"Schedule": {"RecurrenceInterval": "P0DT1H"}}
    with FakeHttp(bmc(values, hourly)) as fake:
        meter = opened(fake, f",metric={POWER}/PowerMetrics/AverageConsumedWatts")
        assert (meter.native_period_s, meter.channels[0].doubt) == (3600.0, None)
        meter.close()


@pytest.mark.parametrize(
    ("values", "options", "why"),
    [
        (400.0, ",metric=x", r"is 4\d\d s old, with 60 s between reports"),
        (-400.0, ",metric=x", r"is [34]\d\d s ahead of the BMC's clock"),
        ([{"MetricId": "x", "MetricValue": "187", "Timestamp": "2026-01-01T00:00:00"}],
         ",metric=x", "no time with a zone"),
        ([{"MetricId": "x", "MetricValue": "187"}], ",metric=x", "no time with a zone"),
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
            assert (meter.native_period_s, meter.read()) == (10.0, [187.0])
            meter.close()


def test_a_report_that_stops_becomes_too_old() -> None:
    values = [value("187", 0.0, source=f"{POWER}/PowerConsumedWatts")]
    with FakeHttp(bmc(values)) as fake:
        meter = opened(fake, ",period_s=1")
        values[0] = value("187", 30.0, source=f"{POWER}/PowerConsumedWatts")
        with pytest.raises(PowerError, match="s old, with 1 s between reports"):
            meter.read()
        values[0] = value("187", 0.0, "other")
        with pytest.raises(PowerError, match="is not in the report"):
            meter.read()
        meter.close()


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
