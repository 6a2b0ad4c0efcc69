"""PASS and WARN against the profiles, and the breakdown of a window."""

from dataclasses import replace

import pytest

from eeio_power.false_readings import judged
from eeio_power.meters import Channel
from eeio_power.profile_rules import ALL, OPTIONAL, PROFILES, Share, above_idle, breakdown, grade
from eeio_power.reading import Domain, EnergyReading, Kind
from eeio_power.samples import MeterInfo


def reading(
    power_w: float | None = 200.0,
    domain: Domain = "system",
    *,
    meter: str = "plug",
    kind: Kind = "measured",
    window_s: float = 1000.0,
    uncertainty: float = 0.005,
    rate_hz: float = 10.0,
) -> EnergyReading:
    energy_j = None if power_w is None else power_w * window_s
    return EnergyReading(
        domain=domain,
        meter=meter,
        kind=kind,
        power_w=power_w,
        energy_j=energy_j,
        uncertainty_j=None if energy_j is None else uncertainty * energy_j,
        coverage=1.0,
        largest_gap_s=1.0 / rate_hz,
        samples=int(window_s * rate_hz),
        lost=0,
        valid=power_w is not None,
        reasons=() if power_w is not None else ("no reading in the window",),
    )


def info(native_period_s: float = 0.1, resolution_w: float = 0.01) -> MeterInfo:
    channel = Channel("plug:system", "system", "power_w", resolution=resolution_w)
    return MeterInfo("plug", "plug", "measured", native_period_s, native_period_s, (channel,))


@pytest.mark.parametrize("name", PROFILES)
def test_a_good_reading_passes_every_profile(name: str) -> None:
    found = grade(reading(), info(), PROFILES[name], 1000.0, settled_s=60.0)
    assert (found.verdict, found.reasons) == ("PASS", ())


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("spec", {"uncertainty_j": 4000.0}, "uncertainty 2.0%; spec: 1%"),
        ("spec", {"samples": 500}, "0.50 readings per second; spec requires 1"),
        ("spec", {"coverage": 0.9}, "coverage 90.0%; spec: 99%"),
        ("spec", {"largest_gap_s": 6.0}, "a gap of 6.00 s"),
        ("spec", {"kind": "device-reported"}, "requires a meter"),
        ("spec", {"domain": "package"}, "package is a part"),
        ("lab", {"kind": "modelled"}, "modelled power: no profile accepts it"),
        ("green500-l1", {"valid": False, "reasons": ("it wrapped",)}, "it wrapped"),
    ],
)
def test_each_missed_limit_is_reported(name: str, changes: dict[str, object], message: str) -> None:
    worse = replace(reading(), **changes)  # type: ignore[arg-type]
    found = grade(worse, info(), PROFILES[name], 1000.0, settled_s=60.0)
    assert found.verdict == "WARN"
    assert any(message in reason for reason in found.reasons)


def test_windows_meters_and_settling_are_judged() -> None:
    short = grade(reading(window_s=5.0), info(), PROFILES["spec"], 5.0, settled_s=60.0)
    assert any("a window of 5.0 s; spec: 60 s" in r for r in short.reasons)
    slow = grade(reading(rate_hz=1.0), info(1.0), PROFILES["lab"], 20.0, settled_s=60.0)
    assert any("20 of the meter's periods; lab requires 60" in r for r in slow.reasons)
    assert any("a value every 1 s; lab requires 10" in r for r in slow.reasons)
    for settled_s, message in ((None, "is unknown"), (3.0, "settled for 3.0 s; spec: 30 s")):
        found = grade(reading(), info(), PROFILES["spec"], 1000.0, settled_s)
        assert any(message in r for r in found.reasons)


@pytest.mark.parametrize(
    ("power_w", "resolution_w", "verdict"),
    [
        (5, 0.01, "PASS"),
        (5, 0.1, "WARN"),
        (50, 0.1, "PASS"),
        (50, 1.0, "WARN"),
        (500, 1.0, "PASS"),
        (500, 0.0, "WARN"),
    ],
)
def test_emerald_wants_finer_steps_for_less_power(
    power_w: float, resolution_w: float, verdict: str
) -> None:
    found = grade(reading(power_w), info(0.1, resolution_w), PROFILES["emerald"], 1000.0)
    assert found.verdict == verdict


# --- breakdown ---------------------------------------------------------------------------------


def shares(*readings: EnergyReading) -> dict[str, Share]:
    found = breakdown(readings, 1000.0)
    parts = {reading.domain for reading in readings}
    wanted = tuple(part for part in ALL if part in parts or part not in OPTIONAL)
    assert tuple(share.part for share in found) == wanted
    return {share.part: share for share in found}


def test_the_rest_is_what_no_part_has() -> None:
    found = shares(
        reading(200.0, uncertainty=0.01),
        reading(80.0, "package", meter="rapl", uncertainty=0.05),
        reading(10.0, "dram", meter="rapl", uncertainty=0.2),
        reading(8.0, "device", meter="nvme0", kind="device-reported", uncertainty=0.1),
    )
    assert found["rest"].power_w == pytest.approx(102.0)
    assert found["rest"].uncertainty_w == pytest.approx((4 + 16 + 4 + 0.64) ** 0.5)
    assert found["rest"].kind == "device-reported", "no better than its worst part"
    assert found["rest"].reason is None


def test_what_was_not_measured_is_none_with_the_reason() -> None:
    found = shares(reading(200.0), reading(80.0, "package", meter="rapl"))
    assert found["dram"].power_w is None
    assert found["dram"].reason == "no meter reads dram"
    assert found["rest"].power_w == pytest.approx(120.0)
    assert found["rest"].reason == "includes dram, device, which is not measured"
    found = shares(reading(None))
    assert found["rest"].power_w is None
    assert found["rest"].reason == "the system is not known: no reading in the window"


def test_estimates_and_contradictions_give_no_rest() -> None:
    assert shares(reading(kind="modelled"))["rest"].reason == "the system is an estimate"
    found = shares(reading(200.0), reading(80.0, "package", kind="modelled", meter="model"))
    assert found["rest"].power_w == pytest.approx(200.0), "nothing modelled is subtracted"
    found = shares(reading(50.0), reading(80.0, "package", meter="rapl"))
    assert found["rest"].power_w is None
    assert "30.0 W more than the system" in (found["rest"].reason or "")


def test_the_better_of_two_meters_is_taken() -> None:
    found = shares(
        reading(300.0, meter="model", kind="modelled", uncertainty=0.0),
        reading(210.0, meter="bmc", uncertainty=0.05),
        reading(200.0, meter="plug", uncertainty=0.01),
    )
    assert (found["system"].meter, found["system"].power_w) == ("plug", pytest.approx(200.0))


def test_above_idle_is_a_view() -> None:
    busy = breakdown([reading(200.0), reading(80.0, "package", meter="rapl")], 1000.0)
    idle = breakdown([reading(150.0), reading(40.0, "package", meter="rapl")], 1000.0)
    found = {share.part: share for share in above_idle(busy, idle)}
    assert found["system"].power_w == pytest.approx(50.0)
    assert found["package"].power_w == pytest.approx(40.0)
    assert found["rest"].power_w == pytest.approx(10.0)
    assert found["dram"].reason == "busy: no meter reads dram"
    assert busy[0].power_w == pytest.approx(200.0)
    other = breakdown([reading(150.0, meter="bmc")], 1000.0)
    assert "two meters are not compared" in (above_idle(busy, other)[0].reason or "")


def test_rests_of_different_parts_are_not_compared() -> None:
    busy = breakdown([reading(200.0), reading(80.0, "package", meter="rapl")], 1000.0)
    idle = breakdown([reading(150.0)], 1000.0)
    rest = above_idle(busy, idle)[-1]
    assert rest.power_w is None, "the idle rest has the idle package in it"
    assert "do not include the same parts" in (rest.reason or "")


def test_two_drives_are_two_parts_and_no_contradiction() -> None:
    drives = [reading(power_w, "device", meter=f"nvme{k}", kind="device-reported", uncertainty=0.1)
              for k, power_w in enumerate((5.0, 8.0))]  # fmt: skip
    assert [found.reasons for found in judged(drives)] == [(), ()]
    found = shares(reading(100.0), *drives)
    assert (found["device"].meter, found["device"].power_w) == ("nvme0", 5.0)
    for part in ("device", "rest"):
        assert "the power from nvme1, if it measures another device" in (found[part].reason or "")
    assert found["rest"].power_w == pytest.approx(95.0)


# --- two meters of one domain ------------------------------------------------------------------


def test_meters_that_contradict_each_other_both_say_so() -> None:
    plug, bmc = reading(200.0), reading(150.0, meter="bmc", uncertainty=0.05)
    for found in judged([plug, bmc]):
        assert found.valid, "a remark, not a verdict"
        assert any("more apart than both uncertainties" in reason for reason in found.reasons)
    assert judged([plug, replace(bmc, power_w=199.0, energy_j=199e3)])[0].reasons == ()
    assert judged([plug, replace(bmc, domain="package")])[0].reasons == ()
    assert judged([plug, replace(bmc, kind="modelled")])[0].reasons == ()


def test_a_module_stands_in_the_place_of_its_package_and_memory() -> None:
    found = shares(
        reading(20.0, uncertainty=0.01),
        reading(12.0, "module", meter="hwmon", uncertainty=0.02),
        reading(7.0, "package", meter="rapl", uncertainty=0.05),
        reading(2.0, "device", meter="nvme0", kind="device-reported", uncertainty=0.1),
    )
    assert found["module"].power_w == 12.0
    assert found["rest"].power_w == pytest.approx(20.0 - 12.0 - 2.0), "the package is in the module"
