"""What Redfish reports of servers, chassis and supplies."""

import time
from pathlib import Path
from typing import Any

import pytest
from tests.eeio_power.meters.test_http_meters import (
    CASES,
    GB200,
    control,
    metrics,
    opened,
    supplies,
    watts,
)
from tests.simulators import http as doubles
from tests.simulators.http import FakeHttp

from eeio_power.errors import PowerError
from eeio_power.meters import discover, open_meters
from eeio_power.sampler import Sampler


def test_redfish_names_what_there_is_instead_of_the_systems_power() -> None:
    mean = {"AverageConsumedWatts": 148, "IntervalInMin": 0.25}
    answer = {"PowerControl": [
        {"PowerMetrics": mean}, {"PhysicalContext": "CPU", "PowerConsumedWatts": 90},
    ]}  # fmt: skip
    instead = r"only 148 W, a mean over 15 s, 90 W of CPU\)"
    with (
        FakeHttp(doubles.redfish_of({"1": ("RackMount", answer)}, {"1": ["1"]})) as fake,
        pytest.raises(PowerError, match=instead),
    ):
        opened("redfish", fake)
    with (
        FakeHttp(doubles.redfish_of({"1": ("RackMount", {})}, {})) as fake,
        pytest.raises(PowerError, match="it lists no computer system"),
    ):
        opened("redfish", fake)


def test_redfish_rejects_readings_when_a_supply_was_added() -> None:
    """The others then draw less, and their sum is not the machine's power any more."""
    answer = supplies(88.0, 92.0)
    answer["PowerSupplies"].append({"Status": {"State": "Absent"}})
    with FakeHttp(doubles.redfish_of({"1": ("RackMount", answer)}, {"1": ["1"]})) as fake:
        meter = opened("redfish", fake)
        before = len(fake.requests)
        assert meter.read() == [180.0] and len(fake.requests) == before + 1
        answer["PowerSupplies"][2] = {"PowerInputWatts": 60.0}
        with pytest.raises(PowerError, match="the power supplies changed"):
            meter.read()


def test_redfish_doubts_a_chassis_next_to_a_system_without_one() -> None:
    """On an HGX machine the board of the GPUs is a system with a chassis, too."""
    chassis = {"HGX_Chassis_0": ("RackMount", metrics(2420.5))}
    paths = doubles.redfish_of(chassis, {"HGX_Baseboard_0": ["HGX_Chassis_0"], "System_0": []})
    with FakeHttp(paths) as fake:
        assert "System_0 links to no chassis" in (opened("redfish", fake).channels[0].doubt or "")


def test_redfish_of_a_server_in_an_enclosure_leaves_out_its_fans() -> None:
    paths = doubles.redfish_of(
        {"1": ("RackMount", metrics(133.0)), "Around": ("Enclosure", None)}, {"1": ["1"]}
    )
    where = "/redfish/v1/Chassis/1"
    inside = {"Links": {"ContainedBy": {"@odata.id": "/redfish/v1/Chassis/Around"}}}
    with FakeHttp({**paths, where: {**paths[where], **inside}}) as fake:
        assert opened("redfish", fake).channels[0].contents.leaves_out == ("fans", "supply")


def test_a_redfish_chassis_of_several_systems_is_none_of_theirs() -> None:
    paths = doubles.redfish_of({"1": ("Enclosure", metrics(1200.0))}, {"a": ["1"], "b": ["1"]})
    with FakeHttp(paths) as fake:
        with pytest.raises(PowerError, match=r"several systems .* are in the chassis 1"):
            opened("redfish", fake)
        assert opened("redfish", fake, ",chassis=1").read() == [1200.0]


def test_redfish_reports_no_watts_of_a_part_and_no_0_w_later() -> None:
    """A starting BMC reports 0 W for a while, and may list its entries in another order."""
    answer = control((300.0, None), (40.0, "CPU"))
    with FakeHttp(doubles.redfish_of({"1": ("RackMount", answer)}, {"1": ["1"]})) as fake:
        meter = opened("redfish", fake)
        assert meter.read() == [300.0]
        answer["PowerControl"].reverse()
        with pytest.raises(PowerError, match="entries of PowerControl changed"):
            meter.read()
        answer["PowerControl"].reverse()
        answer["PowerControl"][0]["PowerConsumedWatts"] = 0
        with pytest.raises(PowerError, match="0 W for a running machine"):
            meter.read()
        with pytest.raises(PowerError, match="0 W for a running machine"):
            opened("redfish", fake)


EM = {
    "id": 0, "a_act_power": 400.0, "b_act_power": 410.5, "c_act_power": 389.5,
    "total_act_power": 1200.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "answer", "options", "power_w"),
    [
        ("PM1", {"id": 0, "apower": 42.5, "aenergy": {"total": 2.0}}, "", 42.5),
        ("EM1", {"id": 0, "act_power": 51.0}, "", 51.0),
        ("EM", EM, "", 1200.0),
        ("EM", EM, ",phase=b", 410.5),
        ("EM", EM, ",component=em", 1200.0),
    ],
)
def test_shellys_other_components(
    path: str, answer: dict[str, Any], options: str, power_w: float
) -> None:
    """Keys of Shelly's Gen2+ API: PM1, EM1 and EM (Pro 3EM)."""
    with FakeHttp({f"/rpc/{path}.GetStatus?id=0": answer}) as fake:
        meter = opened("shelly", fake, options)
        assert meter.read()[0] == power_w
        assert [c.domain for c in meter.channels if c.in_domain_total] == ["system"]
        with pytest.raises(PowerError, match="component=relay: it is one of switch, pm1"):
            opened("shelly", fake, ",component=relay")
        with pytest.raises(PowerError, match="phase=d"):
            opened("shelly", fake, ",phase=d")


def test_a_shelly_of_which_a_clamp_is_turned_round_has_no_sum() -> None:
    answer = {**EM, "b_act_power": -410.5, "total_act_power": 379.0}
    with FakeHttp({"/rpc/EM.GetStatus?id=0": lambda: answer}) as fake:
        with pytest.raises(PowerError, match=r"phase b reports -410\.5 W: reverse its clamp"):
            opened("shelly", fake, ",component=em")
        meter = opened("shelly", fake, ",phase=a")
        assert meter.read() == [400.0]
        meter.close()
        answer |= {"b_act_power": -0.3, "total_act_power": 789.2}
        meter = opened("shelly", fake, ",component=em")
        assert meter.read() == [789.2], "an unused clamp reads a little below zero"


@pytest.mark.parametrize(("name", "paths"), CASES)
def test_how_long_an_answer_may_take_can_be_set(name: str, paths: Any) -> None:
    with FakeHttp(paths(watts())) as fake:
        meter = opened(name, fake, ",timeout_s=17.5")
        assert meter.client._timeout_s == 17.5  # type: ignore[attr-defined]
        assert meter.read()[0] == 87.5
        meter.close()
        for wrong in ("0", "-1", "x", "61"):
            with pytest.raises(PowerError, match="timeout_s"):
                opened(name, fake, f",timeout_s={wrong}")


@pytest.mark.parametrize("name", ["redfish", "shelly", "tasmota"])
def test_the_network_is_not_searched(name: str, tmp_path: Path) -> None:
    (finding,) = [f for f in discover(tmp_path) if f.spec == name]
    assert not finding.available
    assert f"--meter {name}:" in (finding.remedy or "")
    with pytest.raises(PowerError, match="which"):
        open_meters([name])
    with pytest.raises(PowerError, match=name):
        open_meters([f"{name}:127.0.0.1:1"])


def test_an_absurd_reading_is_left_out_and_reported(tmp_path: Path) -> None:
    values = iter([100.0, 100.0, -60.0, 9e9, 100.0])
    with FakeHttp(doubles.tasmota(lambda: next(values, 100.0))) as fake:
        meter = opened("tasmota", fake)
        errors = []
        with Sampler([meter], tmp_path / "s.gz", rate_hz=1e-3) as sampler:
            for _ in range(4):
                now_s = time.monotonic()
                sampler.energy(now_s - 1e-3, now_s)
                errors.append(sampler.rates()[0].last_error or "")
            (reading,) = sampler.energy(sampler.samples().meters[0].times_s[0] - 0.1, now_s)
    assert any("-60 W is negative" in error for error in errors)
    assert any("9e+09 W is more than the 4000 W" in error for error in errors)
    assert reading.valid
    assert reading.power_w == pytest.approx(100.0)


# --- other machines' controllers ------------------------------------------------------------------


def test_redfish_lists_the_others_if_the_system_links_to_parts_only() -> None:
    """GB200: System_0 links to component chassis, and the shelf has the power."""
    linked = {"System_0": ["HGX_CPU_0", "HGX_GPU_0"]}
    with FakeHttp(doubles.redfish_of(GB200, linked)) as fake:
        with pytest.raises(PowerError, match=r"parts only.*Chassis_0 4210 W.*chassis=Chassis_0"):
            opened("redfish", fake)
        assert opened("redfish", fake, ",chassis=Chassis_0").read() == [4210.0]


def test_redfish_of_a_machine_that_is_off_is_another_machines() -> None:
    paths = doubles.redfish_of({"1": ("RackMount", metrics(12.0))}, {"a": ["1"]})
    paths["/redfish/v1/Systems/a"]["PowerState"] = "Off"
    for options in ("", ",chassis=1"):
        with FakeHttp(paths) as fake, pytest.raises(PowerError, match="another machine's BMC"):
            opened("redfish", fake, options)


@pytest.mark.parametrize("watts_now", [32767.0, 65535.0])
def test_the_largest_number_is_no_power_of_redfish(watts_now: float) -> None:
    for answer in (metrics(watts_now), control((watts_now, None))):
        paths = doubles.redfish_of({"1": ("RackMount", answer)}, {"a": ["1"]})
        with FakeHttp(paths) as fake, pytest.raises(PowerError, match=f"{watts_now:g} W"):
            opened("redfish", fake)


def sensors(place: str, values: dict[str, tuple[float | None, str]]) -> dict[str, Any]:
    """A chassis' sensors in watts by name, with their contexts."""
    return {
        f"{place}/Sensors": {
            "Members": [{"@odata.id": f"{place}/Sensors/{name}"} for name in values]
        },
        **{
            f"{place}/Sensors/{name}": {
                "Reading": value, "ReadingUnits": "W", "PhysicalContext": context,
            }
            for name, (value, context) in values.items()
        },
    }  # fmt: skip


CHASSIS = "/redfish/v1/Chassis/1"


@pytest.mark.parametrize(
    ("values", "power_w"),
    [
        # OpenBMC, and a DGX H100 without PowerConsumedWatts.
        ({"total_power": (410.0, ""), "ps0_input_power": (205.0, "PowerSupply"),
          "ps1_input_power": (210.0, "PowerSupply")}, 410.0),
        ({"PWR_SYSTEM": (3400.0, "Chassis"), "PWR_GPU_1": (420.0, "GPU")}, 3400.0),
        ({"ps0_input_power": (205.0, "PowerSupply"), "ps1_input_power": (210.0, "PowerSupply")},
         415.0),
    ],
)  # fmt: skip
def test_redfish_reads_sensors_where_the_older_places_are_gone(
    values: dict[str, tuple[float | None, str]], power_w: float
) -> None:
    paths = doubles.redfish_of({"1": ("RackMount", None)}, {"a": ["1"]})
    with FakeHttp({**paths, **sensors(CHASSIS, values)}) as fake:
        assert opened("redfish", fake).read() == [power_w]


def supply_paths(powers_w: dict[str, float | None], key: str = "InputPowerWatts") -> dict[str, Any]:
    """PowerSubsystem with these supplies; None: not present."""
    place = f"{CHASSIS}/PowerSubsystem"
    found: dict[str, Any] = {
        place: {"PowerSupplies": {"@odata.id": f"{place}/PowerSupplies"}},
        f"{place}/PowerSupplies": {
            "Members": [{"@odata.id": f"{place}/PowerSupplies/{name}"} for name in powers_w]
        },
    }
    for name, power_w in powers_w.items():
        supply = f"{place}/PowerSupplies/{name}"
        state = "Absent" if power_w is None else "Enabled"
        metrics_of = {"@odata.id": f"{supply}/Metrics"}
        found[supply] = {"Id": name, "Status": {"State": state}, "Metrics": metrics_of}
        if power_w is not None:
            found[f"{supply}/Metrics"] = {key: {"Reading": power_w}}
    return found


def test_redfish_adds_the_supplies_of_the_power_subsystem() -> None:
    paths = doubles.redfish_of({"1": ("RackMount", None)}, {"a": ["1"]})
    supplies = supply_paths({"powersupply0": 187.0, "powersupply1": 190.0, "powersupply2": None})
    with FakeHttp({**paths, **supplies}) as fake:
        meter = opened("redfish", fake)
        assert meter.read() == [377.0]
        assert "powersupply0, powersupply1" in (meter.channels[0].remark or "")
        assert "supply" in meter.channels[0].contents.includes
    with FakeHttp({**paths, **supply_paths({"0": 170.0, "1": 171.0}, "OutputPowerWatts")}) as fake:
        assert "supply" in opened("redfish", fake).channels[0].contents.leaves_out
    del supplies[f"{CHASSIS}/PowerSubsystem/PowerSupplies/powersupply1/Metrics"]
    with (
        FakeHttp({**paths, **supplies}) as fake,
        pytest.raises(PowerError, match="1 of 2 supplies"),
    ):
        opened("redfish", fake)


def test_redfish_of_a_node_and_of_an_enclosure() -> None:
    for kind, leaves_out, doubtful in (
        ("Sled", ("fans", "supply"), False),
        ("Enclosure", (), True),
    ):
        paths = doubles.redfish_of({"1": (kind, metrics(900.0))}, {"a": ["1"]})
        with FakeHttp(paths) as fake:
            meter = opened("redfish", fake)
            assert meter.channels[0].contents.leaves_out == leaves_out
            assert (meter.channels[0].doubt is not None) == doubtful
