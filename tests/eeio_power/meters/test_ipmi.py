"""IPMI: the long-lived ipmitool against a stand-in on its pipes, and against two other BMCs."""

import os
import shutil
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.eeio_power.bmc import machine_with_bmc
from tests.eeio_power.one_meter import one_meter
from tests.simulators.ipmitool import dcmi_line, node_manager_line
from tests.waiting import free_port, until

from eeio_power.errors import PowerError
from eeio_power.meters import Meter, discover, ipmi, open_meters
from eeio_power.meters.ipmi import parse_dcmi, parse_node_manager, watt_sensors
from eeio_power.reading import BEHIND_SUPPLY
from eeio_power.sampler import Sampler
from eeio_power.system_sensor.controller import around_dcmi, complete_system

PATIENCE_S = 20.0


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return machine_with_bmc(tmp_path, monkeypatch)


def opened(machine: Path, spec: str = "ipmi") -> Meter:
    return one_meter(spec, machine)


def test_one_process_serves_all_readings(machine: Path) -> None:
    meter = opened(machine)
    process = meter._shell._process.pid  # type: ignore[attr-defined]
    assert [meter.read() for _ in range(3)] == [[301.0]] * 3
    (machine / "watts").write_text("87")
    assert meter.read() == [87.0]
    assert meter._shell._process.pid == process  # type: ignore[attr-defined]
    meter.close()
    meter.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_without_dcmi_a_sensor_in_watts_is_read(machine: Path) -> None:
    (machine / "watts").write_text("no")
    meter = opened(machine)
    assert meter.channels[0].name == "ipmi:Pwr Consumption"
    assert meter.read() == [88.0]
    assert opened(machine, "ipmi,sensor=CPU1 Power").read() == [40.0]


@pytest.mark.parametrize("answer", ["garbage rubbish", "garbage  dc 2d", "off 301"])
def test_garbage_and_a_switched_off_measurement_are_failed_reads(
    machine: Path, answer: str
) -> None:
    meter = opened(machine)
    (machine / "watts").write_text(answer)
    with pytest.raises(PowerError, match=r"makes no sense|switched off"):
        meter.read()
    (machine / "watts").write_text("302")
    assert meter.read() == [302.0], "the answer to the old question must not be taken"


@pytest.mark.parametrize("answer", ["hang", "die"])
def test_a_bmc_that_hangs_or_dies_is_queried_again(
    machine: Path, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter = opened(machine)
    meter._timeout_s = 0.3  # type: ignore[attr-defined]
    (machine / "watts").write_text(answer)
    with pytest.raises(PowerError, match=r"did not answer|ipmitool ended: Get Device ID"):
        meter.read()
    (machine / "watts").write_text("303")
    meter._timeout_s = PATIENCE_S  # type: ignore[attr-defined]
    assert meter.read() == [303.0]


def test_a_hanging_bmc_shows_in_the_reading(machine: Path, tmp_path: Path) -> None:
    meter = opened(machine)
    meter._timeout_s = 0.2  # type: ignore[attr-defined]
    (machine / "watts").write_text("hang")
    with Sampler([meter], tmp_path / "s.gz") as sampler:
        until(lambda: sampler.rates()[0].failed_reads)
        now_s = time.monotonic()
        (reading,) = sampler.energy(now_s - 0.1, now_s)
    meter.close()
    assert not reading.valid and reading.energy_j is None
    assert any("the BMC did not answer in 0.2 s" in reason for reason in reading.reasons)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("ipmi:lanplus", "give the BMC's address"),
        ("ipmi:lanplus,host=-oProxy", "give the BMC's address"),
        ("ipmi:lanplus,host=bmc", "no password; give password_file=FILE or set IPMI_PASSWORD"),
        ("ipmi:serial", "it is open, lanplus or lan"),
        ("ipmi:open,host=bmc", "a host needs ipmi:lanplus"),
        ("ipmi,mode=fast", "it is dcmi, sdr or nm"),
        ("ipmi,sensor=a\"b", "not a sensor name"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(
    machine: Path, spec: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IPMI_PASSWORD", raising=False)
    with pytest.raises(PowerError, match=message):
        open_meters([spec], machine)


def test_finding(machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def finding(root: Path) -> object:
        (found,) = [f for f in discover(root) if f.spec == "ipmi"]
        return found

    assert finding(machine).available  # type: ignore[attr-defined]
    (machine / "watts").write_text("off 1\nFan1,3000,RPM,ok")
    assert "switched off" in finding(machine).reason  # type: ignore[attr-defined]
    assert "ipmi_devintf" in finding(tmp_path / "x").remedy  # type: ignore[attr-defined]
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert "apt-get install ipmitool" in finding(machine).reason  # type: ignore[attr-defined]


def test_a_dead_bmc_does_not_hold_auto_up(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ipmi, "FIND_ANSWER_S", 0.2)
    (machine / "watts").write_text("hang")
    assert open_meters(["auto"], machine) == []
    (finding,) = [f for f in discover(machine) if f.spec == "ipmi"]
    assert "did not answer in 0.2 s" in (finding.reason or "")
    assert "name it" in (finding.remedy or "")


def test_dcmi_is_parsed() -> None:
    reading = parse_dcmi(dcmi_line(301).split("\n"))
    assert (reading.current_w, reading.period_ms, reading.active) == (301, 1000, True)
    for nonsense in ([], [" 00 2d 01"], ["Fan1,3000,RPM,ok"]):
        with pytest.raises(PowerError, match="makes no sense"):
            parse_dcmi(nonsense)


def test_sensors_are_chosen_or_rejected() -> None:
    lines = ["PS1 Input,88,Watts,ok", "PS2 Input,,Watts,ns", "Fan1,3000,RPM,ok", "rubbish"]
    assert watt_sensors(lines) == {"PS1 Input": 88.0, "PS2 Input": None}, "it is there, silent"
    assert watt_sensors(["System Fan,,,ns", "Ambient,,,ns"]) == {}
    for sensors, chosen in (
        ({"System Level": 88.0}, "System Level"),
        ({"CPU Power": 60.0, "Sys Power": 88.0}, "Sys Power"),
        ({"PS1 Input": 50.0, "PS2 Input": 40.0, "Pwr Consumption": 88.0}, "Pwr Consumption"),
    ):
        assert complete_system(sensors).sensors == (chosen,)


# Names that BMCs of servers show for watts, on ipmitool's manual pages and in users' questions.
@pytest.mark.parametrize(
    ("sensors", "reason"),
    [
        ({"CPU1_Power": 40.0}, "of parts of the machine"),
        ({"MEM Power": 12.0}, "of parts of the machine"),
        ({"GPU1 Power": 250.0}, "of parts of the machine"),
        ({"PS1 Input Power": 88.0}, "a single supply sensor"),
        ({"PSU1_PIN": 88.0, "PSU2_PIN": None}, "PSU2_PIN gives no reading"),
        ({"PS1 Input Power": 88.0, "PS2 Output Power": 80.0}, "not every supply"),
        ({"/SYS/PS0/IN_POWER": 88.0}, "a single supply sensor"),
        ({"AC_PWR_PSU1": 88.0}, "a single supply sensor"),
        ({"Power Supply": 88.0}, "a single supply sensor"),
        ({"P12V Power": 88.0}, "of rails"),
        ({"PVCCIN Power": 88.0}, "none is clearly"),
        ({"Foo Power": 88.0, "Bar Power": 80.0}, "none is clearly the system's"),
    ],
)
def test_a_part_or_one_of_the_supplies_is_never_the_system(
    sensors: dict[str, float | None], reason: str
) -> None:
    chosen = complete_system(sensors)
    assert chosen.sensors == ()
    assert reason in (chosen.reason or "")


@pytest.mark.parametrize(
    ("sensors", "chosen"),
    [
        # ASUS ESC4000A-E10, and a MegaRAC controller: supplies of PMBus.
        ({"PMBPower1": 310.0, "PMBPower2": 305.0}, ("PMBPower1", "PMBPower2")),
        ({"PMB1Power": 92.0, "PMB2Power": 88.0, "CPU0 Power": 60.0}, ("PMB1Power", "PMB2Power")),
        ({"AC_PWR_PSU1": 140.0, "AC_PWR_PSU2": 150.0}, ("AC_PWR_PSU1", "AC_PWR_PSU2")),
        # NVIDIA DGX; OpenBMC.
        ({"PWR_SYSTEM": 3400.0, "PWR_GPU_1": 420.0, "PWR_PSU0": 600.0}, ("PWR_SYSTEM",)),
        ({"total_power": 410.0, "cpu0_power": 120.0}, ("total_power",)),
        ({"Power": 210.0, "CPU Power": 90.0, "Mem Power": 20.0, "Fan Power": 14.0}, ("Power",)),
        ({"Total_Power": 240.0, "CPU_Power": 90.0, "Memory_Power": 20.0}, ("Total_Power",)),
    ],
)
def test_the_systems_sensor_is_found_by_its_name(
    sensors: dict[str, float | None], chosen: tuple[str, ...]
) -> None:
    found = complete_system(sensors)
    assert (found.sensors, found.doubt) == (chosen, None)


@pytest.mark.parametrize(
    ("sensors", "reason"),
    [
        ({"PMBPower1": 310.0}, "a single supply sensor"),
        ({"PSU1_PIN": 310.0, "PSU3_PIN": 300.0}, "a supply is missing"),
        ({"PMBPower1": 310.0, "PMBPower2": None}, "PMBPower2 gives no reading"),
        ({"Rack1 Power": 310.0}, "one of several by its number"),
        ({"Node1 Power": 310.0, "Node2 Power": 320.0}, "of several machines"),
        # A node in a chassis, by the chassis' supplies; a board's part called after the system.
        ({"Sys Power": 310.0, "PSU1 PIN": 640.0, "PSU2 PIN": 650.0}, "other machines too"),
        ({"Pwr Consumption": 300.0, "PS1 Input": 900.0, "PS2 Input": 900.0}, "other machines"),
        ({"System Power": 120.0, "CPU Power": 180.0}, "CPU Power is more than System Power"),
        ({"Total Power": 200.0, "Chassis Power": 900.0}, "Chassis Power is more"),
        ({"PSU1 PIN": 60.0, "PSU2 PIN": 50.0, "GPU Power": 300.0}, "more than the sum"),
    ],
)
def test_a_sensor_that_others_contradict_is_not_the_system(
    sensors: dict[str, float | None], reason: str
) -> None:
    found = complete_system(sensors)
    assert found.sensors == () and reason in (found.reason or "")


def test_a_node_leaves_out_the_fans_and_the_supply_of_its_chassis() -> None:
    for word in ("Node", "Blade"):
        chosen = complete_system({f"{word} Power": 310.0, "PSU1 PIN": 640.0, "PSU2 PIN": 650.0})
        assert chosen.sensors == (f"{word} Power",)
        assert chosen.contents.leaves_out == ("fans", "supply")


def test_a_sum_of_outputs_leaves_out_the_losses_of_the_supplies() -> None:
    outputs = complete_system({"PS1 Output Power": 80.0, "PS2 Output Power": 90.0})
    assert outputs.contents == BEHIND_SUPPLY
    inputs = complete_system(
        {"PSU1_PIN": 80.0, "PSU1_POUT": 70.0, "PSU2_PIN": 9.0, "PSU2_POUT": 8.0}
    )
    assert inputs.sensors == ("PSU1_PIN", "PSU2_PIN") and "supply" not in inputs.contents.leaves_out


def test_supplies_by_an_unknown_word_are_doubtful(machine: Path) -> None:
    (machine / "watts").write_text("no\nFeed1 Power,88,Watts,ok\nFeed2 Power,92,Watts,ok")
    meter = opened(machine)
    assert meter.read() == [180.0]
    assert "assumed to be all supplies" in (meter.channels[0].doubt or "")


@pytest.mark.parametrize("watts", ["32767", "65535"])
def test_the_largest_number_of_a_controller_is_no_power(machine: Path, watts: str) -> None:
    (machine / "watts").write_text(f"{watts}\nPwr Consumption,88,Watts,ok\nCPU Power,40,Watts,ok")
    meter = opened(machine)
    assert meter.read() == [88.0]
    assert f"{watts} W" in (meter.channels[0].remark or "")
    meter.close()
    (machine / "watts").write_text(f"no\nPwr Consumption,{watts},Watts,ok")
    with pytest.raises(PowerError, match="reports no power for sensor"):
        opened(machine)
    (machine / "watts").write_text("300")
    meter = opened(machine)
    (machine / "watts").write_text(watts)
    with pytest.raises(PowerError, match="no measurement"):
        meter.read()


def test_a_rejection_lists_the_sensors_with_their_watts(machine: Path) -> None:
    (machine / "watts").write_text("no\nFoo Power,88,Watts,ok\nBar Power,80,Watts,ok")
    with pytest.raises(PowerError, match=r"Foo Power 88 W, Bar Power 80 W.*ipmi,sensor=Foo Power"):
        opened(machine)


def test_all_numbered_supplies_are_added_and_that_is_reported(machine: Path) -> None:
    supplies = "PS1 Input Power,88,Watts,ok\nPS2 Input Power,92,Watts,ok\nPS1 Output,80,Watts,ok"
    (machine / "watts").write_text(
        f"no\n{supplies}\nPS2 Output,84,Watts,ok\nCPU1 Power,40,Watts,ok"
    )
    meter = opened(machine)
    assert meter.read() == [180.0]
    (channel,) = meter.channels
    assert "sum of the power supplies PS1 Input Power, PS2 Input Power" in (channel.remark or "")
    (machine / "watts").write_text(
        "no\nPS1 Input Power,88,Watts,ok\nPS2 Input Power,,,ns\nCPU1 Power,40,Watts,ok"
    )
    with pytest.raises(PowerError, match="no power for sensor PS2 Input Power"):
        meter.read()
    with pytest.raises(
        PowerError, match=r"PS2 Input Power gives no reading.*if one measures the system, name it"
    ):
        opened(machine)
    (finding,) = [f for f in discover(machine) if f.spec == "ipmi"]
    assert not finding.available


def test_sensors_of_one_name_are_not_taken_for_each_other(machine: Path) -> None:
    """Some BMCs call the sensors of all supplies alike, and only their entities differ."""
    twice = "Input Power,88,Watts,ok,10.1\nInput Power,92,Watts,ok,10.2"
    assert watt_sensors(twice.split("\n")) == {"Input Power": None}
    (machine / "watts").write_text(f"no\n{twice}")
    with pytest.raises(PowerError, match="no power for sensor Input Power"):
        opened(machine)


def test_dcmi_that_is_switched_off_gives_way_to_a_sensor_and_that_is_reported(
    machine: Path,
) -> None:
    (machine / "watts").write_text("off 301\nPwr Consumption,88,Watts,ok")
    meter = opened(machine)
    assert meter.read() == [88.0]
    (channel,) = meter.channels
    assert channel.name == "ipmi:Pwr Consumption"
    assert "DCMI power measurement is switched off: Pwr Consumption" in (channel.remark or "")
    meter.close()
    (finding,) = [f for f in discover(machine) if f.spec == "ipmi"]
    assert finding.available and "switched off" in (finding.reason or "")
    with pytest.raises(PowerError, match="switched off"):
        opened(machine, "ipmi,mode=dcmi")


def test_a_sensor_that_is_named_is_of_what_its_name_states(machine: Path) -> None:
    (machine / "watts").write_text("no\nMEM Power,12,Watts,ok\nGPU1 Power,250,Watts,ok")
    meter = opened(machine, "ipmi,sensor=MEM Power")
    assert [c.domain for c in meter.channels] == ["dram"]
    assert meter.read() == [12.0]
    with pytest.raises(PowerError, match=r"is of a part \(GPU\)"):
        opened(machine, "ipmi,sensor=GPU1 Power")


@pytest.mark.parametrize(
    ("sensor", "domain"),
    [
        ("Mem Proc0 Pwr", "dram"), ("P0_Pkg_Power", "package"), ("HDD Power", "device"),
        ("HSC_Input_Power", "system"), ("PCIE Proc0 Pwr", None), ("Fan Power A", None),
        ("CPUPWR1", "package"), ("P1CPU_Power", "package"), ("MEMTOT_PWR", "dram"),
        ("DIMMA1_PWR", "dram"), ("SYSFAN1", None), ("BMC_Power", None),
    ],
)  # fmt: skip
def test_a_named_sensor_of_a_part_is_never_the_system(
    machine: Path, sensor: str, domain: str | None
) -> None:
    (machine / "watts").write_text(f"no\n{sensor},12,Watts,ok")
    if domain is None:
        with pytest.raises(PowerError, match="no domain of it is measured"):
            opened(machine, f"ipmi,sensor={sensor}")
        return
    meter = opened(machine, f"ipmi,sensor={sensor}")
    assert [c.domain for c in meter.channels] == [domain]
    assert domain != "system" or meter.channels[0].contents.leaves_out == ("supply",)


def test_letters_of_a_part_inside_another_word_are_no_part(machine: Path) -> None:
    for sensor in ("System Member Power", "Score Power"):
        (machine / "watts").write_text(f"no\n{sensor},12,Watts,ok")
        assert [c.domain for c in opened(machine, f"ipmi,sensor={sensor}").channels] == ["system"]


def test_what_contradicts_a_named_sensor_is_noted(machine: Path) -> None:
    supplies = "PSU1_Pout,176,Watts,ok\nPSU2_Pout,148,Watts,ok"
    (machine / "watts").write_text(f"no\nSystemTotalPower,68,Watts,ok\n{supplies}")
    meter = opened(machine, "ipmi,sensor=SystemTotalPower")
    assert meter.read() == [68.0]
    assert meter.channels[0].remark == (
        "the supplies draw 324 W and SystemTotalPower is 68 W: they may feed other machines too"
    )
    assert meter.channels[0].doubt is None


def test_supplies_that_are_all_silent_make_the_systems_power_doubtful(machine: Path) -> None:
    """The standby power of a machine that is off."""
    (machine / "watts").write_text("no\nPOWER_USAGE,8,Watts,ok\nPSU1_PIN,,Watts,ns")
    meter = opened(machine)
    assert meter.read() == [8.0]
    assert meter.channels[0].doubt == "8 W, and PSU1_PIN give no reading: the machine may be off"
    meter.close()
    (machine / "watts").write_text(
        "no\nPOWER_USAGE,90,Watts,ok\nPSU1_PIN,88,Watts,ok\nPSU2_PIN,,Watts,ns"
    )
    meter = opened(machine)
    assert (meter.read(), meter.channels[0].doubt) == ([90.0], None)
    meter.close()
    # HPE's supplies are silent while a machine runs; DCMI of one that is off reads as low.
    (machine / "watts").write_text("no\nPower Meter,630,Watts,ok\nPS1 Output,,Watts,ns")
    meter = opened(machine)
    assert (meter.read(), meter.channels[0].doubt) == ([630.0], None)


@pytest.mark.parametrize(
    ("sensors", "why"),
    [
        # One silent supply hides no contradiction of the others.
        ({"SystemTotalPower": 68, "PSU1_Pout": None, "PSU2_Pout": 0, "PSU3_Pout": 176},
         "the supplies draw 176 W"),
        ({"Power Meter": 630, "PS 1 Output": 900, "PS 2 Output": None}, "the supplies draw 900 W"),
        ({"Chassis PWR": 356.7, "Single MLB PWR": 39.9}, "may be of several machines (Single MLB"),
        ({"Power": 126, "Power1": 126, "Power2": 120}, "Power may be one of several"),
        ({"Total_Power": 120, "Total_Power_2": 110}, "Total_Power may be one of several"),
        ({"PSU1_PIN": 110, "PSU2_PIN": 0, "PSU1_POUT": 100, "PSU2_POUT": 105}, "draw 110 W"),
    ],
)  # fmt: skip
def test_what_is_known_of_supplies_and_machines_contradicts_a_system(
    sensors: dict[str, float | None], why: str
) -> None:
    chosen = complete_system(sensors)
    assert chosen.sensors == () and why in str(chosen.reason)


@pytest.mark.parametrize(
    ("total_w", "doubt", "note"),
    [(180, None, None), (174, None, None), (168, None, "may leave out"), (150, "180 W", None)],
)
def test_a_total_below_the_inputs_of_the_supplies_is_noted_or_doubtful(
    total_w: float, doubt: str | None, note: str | None
) -> None:
    chosen = complete_system({"Total_Power": total_w, "PSU1_PIN": 88, "PSU2_PIN": 92})
    assert chosen.sensors == ("Total_Power",)
    assert (doubt or "") in str(chosen.doubt) and (note or "") in str(chosen.note)
    assert (chosen.doubt is None, chosen.note is None) == (doubt is None, note is None)


@pytest.mark.parametrize(
    ("dcmi_w", "sensors", "doubt"),
    [
        (1050.0, {"Node Power": None}, "Node Power gives no power"),
        (1050.0, {"Node Power": 0.0}, "Node Power gives no power"),
        (1050.0, {"Node Power": 1000.0}, None),
        (8.0, {"PSU1_PIN": None, "PSU2_PIN": None}, "the machine may be off"),
        (180.0, {"PSU1_PIN": None, "PSU2_PIN": None}, None),
        (180.0, {"PS1 Input": 500.0, "PS2 Input": None}, "the supplies draw 500 W"),
    ],
)
def test_dcmi_is_doubtful_next_to_what_contradicts_it(
    dcmi_w: float, sensors: dict[str, float | None], doubt: str | None
) -> None:
    found = around_dcmi(dcmi_w, sensors)
    assert found.sensors == ()
    assert (found.doubt is None) if doubt is None else (doubt in str(found.doubt))


@pytest.mark.parametrize(
    ("sensors", "found"),
    [
        ({"PSU_POWER_IN": 180, "PSU_0_POWER_IN": 88, "PSU_1_POWER_IN": 92}, 180),
        ({"PSU_POWER_IN": None, "PSU_0_POWER_IN": 88, "PSU_1_POWER_IN": 92}, 180),
        ({"PSU_POWER_IN": 400, "PSU_0_POWER_IN": 88, "PSU_1_POWER_IN": 92}, "PSU_POWER_IN is 400"),
        ({"PS 1 Input": 150, "PS 2 Input": 2550}, "PS 2 Input is 2550 W"),
        ({"PS0/IN_POWER": 3550, "PS1/IN_POWER": 3500, "BL5/VPS": 515}, "several machines (BL5/VPS"),
    ],
)
def test_a_total_of_supplies_is_not_one_of_them(
    sensors: dict[str, float | None], found: int | str
) -> None:
    """Names and values of a ZT Triton; a Sun chassis lists its blades next to its supplies."""
    chosen = complete_system(sensors)
    if isinstance(found, int):
        assert sum(sensors[name] or 0.0 for name in chosen.sensors) == found
    else:
        assert not chosen.sensors and found in (chosen.reason or "")


def test_the_node_managers_domains(machine: Path) -> None:
    (machine / "watts").write_text("nm 301 120 40")
    meter = opened(machine, "ipmi,mode=nm")
    assert [(c.name, c.domain) for c in meter.channels] == [
        ("ipmi:nm-platform", "system"), ("ipmi:nm-cpu", "package"), ("ipmi:nm-memory", "dram"),
    ]  # fmt: skip
    assert meter.read() == [301.0, 120.0, 40.0]
    assert meter._shell._command[-6:-2] == ["-b", "0", "-t", "0x2c"]  # type: ignore[attr-defined]
    (machine / "watts").write_text("nm 0 120 40")
    with pytest.raises(PowerError, match=r"reports 0 W \(Node Manager\)"):
        meter.read()
    (machine / "watts").write_text("nm off")
    with pytest.raises(PowerError, match="Node Manager's power measurement is off"):
        meter.read()
    meter.close()
    (machine / "watts").write_text("nm 301 120 -")
    meter = opened(machine, "ipmi,mode=nm")
    assert [c.domain for c in meter.channels] == ["system", "package"], "no memory domain there"
    meter.close()
    (machine / "watts").write_text("no")
    with pytest.raises(PowerError, match="statistics make no sense"):
        opened(machine, "ipmi,mode=nm")
    reading = parse_node_manager(node_manager_line(301, 0).split("\n"))
    assert (reading.current_w, reading.period_s, reading.active) == (301, 60, True)


@pytest.mark.parametrize("device", ["dev/ipmi/0", "dev/ipmidev/0"])
def test_the_other_names_of_the_device(machine: Path, device: str) -> None:
    """ipmitool's open interface tries them after /dev/ipmi0."""
    (machine / "dev/ipmi0").unlink()
    (machine / device).parent.mkdir()
    (machine / device).write_text("")
    (finding,) = [f for f in discover(machine) if f.spec == "ipmi"]
    assert finding.available
    opened(machine).close()


# --- peers that somebody else wrote ------------------------------------------------------------

needs_ipmitool = pytest.mark.skipif(
    shutil.which("ipmitool") is None, reason="ipmitool is not installed"
)

PYGHMI_BMC = """
import struct, sys
from pyghmi.ipmi import bmc

class Bmc(bmc.Bmc):
    def handle_raw_request(self, request, session):
        data = bytearray(request["data"])
        if (request["netfn"], request["command"], data[:1]) == (0x2C, 2, b"\\xdc"):
            reading = struct.pack("<HHHHIIB", 301, 10, 400, 200, 123456, 1000, 0x40)
            session.send_ipmi_response(data=[0xDC, *reading])
        else:
            super().handle_raw_request(request, session)

Bmc({"admin": "password"}, port=int(sys.argv[1])).listen()
"""


@pytest.fixture
def bmc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """pyghmi's BMC with DCMI, on a loopback port."""
    pytest.importorskip("pyghmi", reason="pyghmi is not installed")
    monkeypatch.setenv("IPMI_PASSWORD", "password")
    port = free_port(socket.SOCK_DGRAM)
    process = subprocess.Popen(
        [sys.executable, "-c", PYGHMI_BMC, str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield port
    process.kill()
    process.wait(PATIENCE_S)


def open_when_up(spec: str) -> Meter:
    """Open a BMC that may be starting still."""
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            meter = one_meter(spec)
        except PowerError:
            if time.monotonic() > deadline_s:
                raise
        else:
            return meter


@needs_ipmitool
def test_dcmi_over_the_network_against_pyghmi(bmc: int) -> None:
    meter = open_when_up(f"ipmi:lanplus,host=127.0.0.1,port={bmc},user=admin")
    assert meter.channels[0].name == "ipmi:dcmi"
    assert [meter.read() for _ in range(5)] == [[301.0]] * 5


@needs_ipmitool
def test_a_wrong_password_is_rejected(bmc: int, tmp_path: Path) -> None:
    open_when_up(f"ipmi:lanplus,host=127.0.0.1,port={bmc},user=admin").close()
    (tmp_path / "password").write_text("opensesame\n")
    spec = f"ipmi:lanplus,host=127.0.0.1,port={bmc},user=admin,password_file={tmp_path}/password"
    with pytest.raises(PowerError, match=r"Unable to establish|ipmitool ended") as caught:
        open_meters([spec])
    assert "opensesame" not in str(caught.value)


LAN_CONF = """
name "eeio"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  user 2 true "admin" "password" admin 10 none md2 md5 straight
"""

EMULATION = """
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
main_sdr_add 0x20 {record}
sensor_add 0x20 0 1 0x03 0x01 poll 100 file "{watts}" div=4
mc_enable 0x20
"""


def full_sensor_record(name: str) -> str:
    """A full sensor record (IPMI 2.0, table 43-1): sensor 1, current, watts, value = 4 x raw."""
    watts = 6
    body = bytes(
        [0x20, 0, 1, 3, 1, 0x7F, 0x68, 3, 1, 0, 0, 0, 0, 0, 0, 0, watts, 0, 0, 4]
        + [0] * 9 + [0xFF] + [0] * 12 + [0xC0 | len(name)]
    ) + name.encode("ascii")  # fmt: skip
    return " ".join(f"0x{byte:02x}" for byte in bytes([1, 0, 0x51, 1, len(body)]) + body)


@needs_ipmitool
@pytest.mark.skipif(shutil.which("ipmi_sim") is None, reason="openipmi (ipmi_sim) is not installed")
def test_a_sensor_over_the_network_against_openipmi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenIPMI's simulator refuses DCMI, and polls its sensor's value from a file."""
    monkeypatch.setenv("IPMI_PASSWORD", "password")
    port, watts = free_port(socket.SOCK_DGRAM), tmp_path / "watts"
    watts.write_text("352\n")
    (tmp_path / "state").mkdir()
    (tmp_path / "lan.conf").write_text(textwrap.dedent(LAN_CONF.format(port=port)))
    record = full_sensor_record("Pwr Consumption")
    (tmp_path / "sim.emu").write_text(EMULATION.format(record=record, watts=watts))
    command = ["ipmi_sim", "-c", "lan.conf", "-f", "sim.emu", "-s", "state", "-n"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    try:
        meter = open_when_up(f"ipmi:lanplus,host=127.0.0.1,port={port},user=admin")
        assert meter.channels[0].name == "ipmi:Pwr Consumption"
        for expected in (352, 120):
            watts.write_text(f"{expected}\n")
            until(lambda expected=expected: meter.read() == [expected])  # type: ignore[misc]
        meter.close()
    finally:
        process.kill()
        process.wait(PATIENCE_S)


def test_the_reading_commands_are_the_only_raw_ones() -> None:
    """DCMI's and the Node Manager's, beside the line with the token, of which nothing is sent."""
    source = Path(ipmi.__file__).read_text(encoding="utf-8")
    assert source.count('"raw ') == 3
    assert '"raw 0x2e 0xc8 0x57 0x01 0x00 0x01 {domain} 0x00"' in source
    assert ipmi.TOKEN_LINE.format("eeio-1") == "raw eeio-1 0"


def test_sensors_that_do_not_answer_leave_dcmi(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sensors only show whether DCMI is of a shared chassis."""
    tool = Path(shutil.which("ipmitool") or "")
    tool.write_text(
        '#!/bin/sh\nwhile read -r line; do case "$line" in\n'
        '*eeio*) line=${line#raw }; echo "Given netfn \\"${line% 0}\\" is invalid.";;\n'
        f"raw*) printf '%s\\n' '{dcmi_line(301)}';;\nsdr*) sleep 30;;\nesac; done\n"
    )
    monkeypatch.setattr(ipmi, "FIND_ANSWER_S", 0.5)
    assert ipmi.find(machine).available
    meter = ipmi.open_meter("ipmi", {}, machine, 0.5)
    assert meter.read() == [301.0] and meter.channels[0].doubt is None
    meter.close()
