"""Industrial I/O, power supplies, perf events and NVMe against files and an ioctl double."""

import errno
import math
import os
import shutil
import struct
from pathlib import Path

import pytest
from tests.eeio_power.one_meter import one_meter
from tests.simulators import FakeRapl
from tests.simulators.nvme import FakeNvme
from tests.simulators.tree import cubietruck, perf_unit, topology, write_tree

from eeio_power.errors import PowerError
from eeio_power.meters import discover, nvme, open_meters, perf
from eeio_power.meters.nvme import interval_power_w
from eeio_power.sampler import Sampler

# --- iio ---------------------------------------------------------------------------------------


def test_iio_reads_a_processed_and_a_scaled_channel(tmp_path: Path) -> None:
    devices = write_tree(
        tmp_path / "sys/bus/iio/devices",
        {"iio:device0/name": "ina226", "iio:device0/in_power2_raw": 480,
         "iio:device0/in_power2_scale": "12.5"},
    )  # fmt: skip
    meter = one_meter("iio", tmp_path)
    assert meter.read() == [pytest.approx(6.0)]
    assert meter.channels[0].name == "iio:ina226/power2"
    write_tree(devices, {"iio:device0/in_power2_input": 6100})
    meter = one_meter("iio", tmp_path)
    assert meter.read() == [pytest.approx(6.1)]
    write_tree(devices, {"iio:device0/in_power2_input": "broken"})
    assert meter.read() == [None]


def test_iio_channels_of_unknown_wiring_are_rejected_until_named(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {"iio:device0/name": "pac1934", "iio:device0/in_power0_input": 1000,
         "iio:device0/in_power1_input": 2000, "iio:device1/name": "pac1934",
         "iio:device1/in_power0_input": 3000},
    )  # fmt: skip
    with pytest.raises(PowerError, match=r"each other.*pac1934/power0 1 W, pac1934/power1 2 W"):
        open_meters([f"iio,root={tmp_path}"])
    only = "pac1934/power1+pac1934@iio:device1/power0"
    assert one_meter(f"iio,root={tmp_path},only={only}").read() == [2.0, 3.0]
    with pytest.raises(PowerError, match="no channel nothing; there are"):
        open_meters([f"iio,root={tmp_path},only=nothing"])


def test_an_iio_number_that_another_device_got_later_is_not_read(tmp_path: Path) -> None:
    for device, milliwatts in (("ina", 6100), ("other", 900)):
        write_tree(
            tmp_path / f"sys/devices/{device}/iio:device0",
            {"name": "ina226", "in_power2_input": milliwatts},
        )
    devices = tmp_path / "sys/bus/iio/devices"
    devices.mkdir(parents=True)
    (devices / "iio:device0").symlink_to("../../../devices/ina/iio:device0")
    (devices / "iio:device1").symlink_to("nowhere")
    meter = one_meter("iio", tmp_path)
    assert meter.read() == [pytest.approx(6.1)]
    (devices / "iio:device0").unlink()
    (devices / "iio:device0").symlink_to("../../../devices/other/iio:device0")
    shutil.rmtree(tmp_path / "sys/devices/ina")
    assert meter.read() == [None]


def test_iio_absent_or_damaged(tmp_path: Path) -> None:
    with pytest.raises(PowerError, match="has no power channel"):
        open_meters(["iio"], tmp_path)
    write_tree(tmp_path, {"iio:device0/name": "x", "iio:device0/in_power0_raw": 1})
    with pytest.raises(PowerError, match="without a scale"):
        open_meters([f"iio,root={tmp_path}"])


@pytest.mark.parametrize("named", ["rail_name_0", "in_power0_label"])
def test_the_only_iio_channel_is_not_the_system_if_it_names_its_rail(
    tmp_path: Path, named: str
) -> None:
    write_tree(
        tmp_path / "sys/bus/iio/devices",
        {"iio:device0/name": "ina3221x", "iio:device0/in_power0_input": 1234,
         f"iio:device0/{named}": "POM_5V_CPU"},
    )  # fmt: skip
    with pytest.raises(PowerError, match=r"parts of .*POM_5V_CPU\) 1.234 W.*only=ina3221x"):
        open_meters(["iio"], tmp_path)
    assert open_meters(["auto"], tmp_path) == []
    assert one_meter("iio,only=ina3221x/power0", tmp_path).read() == [pytest.approx(1.234)]


# --- power_supply ------------------------------------------------------------------------------


def test_a_cubietrucks_mains_input(tmp_path: Path) -> None:
    folder = cubietruck(tmp_path / "sys/class/power_supply")
    meter = one_meter("power_supply", tmp_path)
    assert meter.read() == [pytest.approx(5.012 * 0.640)]
    assert [c.domain for c in meter.channels] == ["system"]
    write_tree(folder, {"axp20x-usb/online": 1, "axp20x-usb/voltage_now": 5_000_000,
                        "axp20x-usb/current_now": 100_000})  # fmt: skip
    assert meter.read() == [pytest.approx(5.012 * 0.640 + 0.5)]
    write_tree(folder, {"axp20x-ac/current_now": "?"})
    assert meter.read() == [None], "half of the input is not the input"
    write_tree(folder, {"axp20x-ac/online": 0, "axp20x-usb/online": 0})
    (finding,) = [f for f in discover(tmp_path) if f.spec == "power_supply"]
    assert not finding.available
    assert "no supply with a sensor is in use" in (finding.reason or "")


@pytest.mark.parametrize(
    "unmeasured",
    [
        {"axp20x-battery/type": "Battery", "axp20x-battery/status": "Discharging",
         "axp20x-battery/power_now": 2_000_000},
        {"dock/type": "USB", "dock/online": 1},
        {"axp20x-ac/online": 0},
        {"axp20x-ac/current_now": -640_000},
    ],
)  # fmt: skip
def test_an_input_that_is_not_all_that_feeds_the_board_is_not_the_system(
    tmp_path: Path, unmeasured: dict[str, int | str]
) -> None:
    folder = cubietruck(tmp_path / "sys/class/power_supply")
    meter = one_meter("power_supply", tmp_path)
    assert meter.read() != [None]
    write_tree(folder, unmeasured)
    assert meter.read() == [None]
    write_tree(folder, {"axp20x-ac/online": 1, "axp20x-ac/current_now": 640_000, "dock/online": 0,
                        "axp20x-battery/status": "Full"})  # fmt: skip
    assert meter.read() == [pytest.approx(5.012 * 0.640)]


@pytest.mark.parametrize(
    ("current_ua", "power_w"),
    [(200_000, 5.012 * 0.640 - 0.8), (-200_000, 5.012 * 0.640 - 0.8), (600_000, None), ("?", None)],
)
def test_what_flows_into_a_charging_battery_is_not_the_systems(
    tmp_path: Path, current_ua: int | str, power_w: float | None
) -> None:
    folder = cubietruck(tmp_path / "sys/class/power_supply")
    write_tree(folder, {"axp20x-battery/type": "Battery", "axp20x-battery/status": "Charging",
                        "axp20x-battery/voltage_now": 4_000_000,
                        "axp20x-battery/current_now": current_ua})  # fmt: skip
    meter = one_meter("power_supply", tmp_path)
    assert meter.read() == [None if power_w is None else pytest.approx(power_w)]
    assert (meter.complaint is None) == (power_w is not None)  # type: ignore[attr-defined]
    assert meter.channels[0].accuracy_relative == 0.15


def test_what_is_plugged_in_later_feeds_the_machine_too(tmp_path: Path) -> None:
    folder = laptop(tmp_path, {})
    meter = one_meter("power_supply", tmp_path)
    write_tree(folder, {"USBC/type": "USB", "USBC/online": 1})
    assert meter.read() == [None], "a charger that is too weak"
    write_tree(folder, {"USBC/online": "?"})
    assert meter.read() == [None], "nobody knows whether it is plugged in"
    shutil.rmtree(folder / "USBC")
    write_tree(folder, {"BAT2/type": "Battery", "BAT2/status": "Discharging",
                        "BAT2/power_now": 2_000_000})  # fmt: skip
    assert meter.read() == [pytest.approx(6.83)], "a third battery"


def test_a_battery_counts_only_while_it_feeds_the_machine(tmp_path: Path) -> None:
    folder = write_tree(
        tmp_path / "sys/class/power_supply",
        {"AC/type": "Mains", "AC/online": 0, "BAT0/type": "Battery", "BAT0/status": "Discharging",
         "BAT0/voltage_now": 12_000_000, "BAT0/current_now": -1_000_000,
         "mouse/type": "Battery", "mouse/scope": "Device", "mouse/power_now": 1},
    )  # fmt: skip
    meter = one_meter("power_supply", tmp_path)
    assert meter.read() == [pytest.approx(12.0)]
    write_tree(folder, {"AC/online": 1, "BAT0/status": "Charging"})
    assert meter.read() == [None]
    with Sampler([meter], tmp_path / "s.gz", rate_hz=1.0) as sampler:
        assert "BAT0 is charging): the mains feeds the system" in (
            sampler.rates()[0].last_error or ""
        )
    (finding,) = [f for f in discover(tmp_path) if f.spec == "power_supply"]
    assert not finding.available
    assert "without a sensor" in (finding.reason or "")


@pytest.mark.parametrize("port", ["ucsi-source-psy-USBC000:001", "tcpm-source-psy-4-0022"])
def test_what_a_charger_agreed_to_is_not_what_flows(tmp_path: Path, port: str) -> None:
    folder = tmp_path / "sys/class/power_supply"
    write_tree(
        folder,
        {f"{port}/type": "USB", f"{port}/online": 1, f"{port}/voltage_now": 20_000_000,
         f"{port}/current_now": 3_250_000},
    )  # fmt: skip
    assert open_meters(["auto"], tmp_path) == [], "65 W is the contract, whatever the load"
    with pytest.raises(PowerError, match="no supply with a sensor"):
        open_meters(["power_supply"], tmp_path)
    write_tree(folder, {"BAT0/type": "Battery", "BAT0/status": "Discharging",
                        "BAT0/power_now": 9_000_000})  # fmt: skip
    meter = one_meter("power_supply", tmp_path)
    assert meter.read() == [None], "the charger feeds the machine too"
    write_tree(folder, {f"{port}/online": 0})
    assert meter.read() == [pytest.approx(9.0)]


def laptop(root: Path, files: dict[str, int | str]) -> Path:
    """A ThinkPad's supplies: BAT0 and AC with the values of procfs' fixture of
    /sys/class/power_supply, and beside it the second battery that such laptops have."""
    return write_tree(
        root / "sys/class/power_supply",
        {"AC/type": "Mains", "AC/online": 0,
         "BAT0/type": "Battery", "BAT0/status": "Discharging", "BAT0/power_now": 4_830_000,
         "BAT0/voltage_now": 12_229_000,
         "BAT1/type": "Battery", "BAT1/status": "Not charging", "BAT1/power_now": 0,
         "BAT1/voltage_now": 12_229_000, **files},
    )  # fmt: skip


def test_a_battery_next_to_a_weak_charger_is_not_the_system(tmp_path: Path) -> None:
    """A 15 W charger, online, and a battery that gives the 3 W which it lacks."""
    folder = laptop(tmp_path, {"AC/online": 1, "BAT0/power_now": 3_000_000})
    meter = one_meter("power_supply", tmp_path)
    assert meter.read() == [None]
    (finding,) = [f for f in discover(tmp_path) if f.spec == "power_supply"]
    assert not finding.available
    assert "AC is plugged in together with BAT0" in (finding.reason or "")
    assert open_meters(["auto"], tmp_path) == []
    write_tree(folder, {"BAT0/charge_behaviour": "auto inhibit-charge [force-discharge]"})
    assert meter.read() == [pytest.approx(3.0)], "told to discharge, it feeds the machine alone"
    write_tree(folder, {"BAT0/charge_behaviour": "[auto] inhibit-charge force-discharge"})
    assert meter.read() == [None]


def test_of_two_batteries_those_that_discharge_are_added(tmp_path: Path) -> None:
    folder = laptop(tmp_path, {})
    meter = one_meter("power_supply", tmp_path)
    assert meter.read() == [pytest.approx(4.83)], "the other one rests"
    write_tree(folder, {"BAT1/status": "Unknown"})
    assert meter.read() == [pytest.approx(4.83)], "as older kernels call it"
    write_tree(folder, {"BAT1/status": "Discharging", "BAT1/power_now": 1_170_000})
    assert meter.read() == [pytest.approx(6.0)]
    write_tree(folder, {"BAT1/power_now": "?"})
    assert meter.read() == [None]
    for state, word in (("Charging", "charging"), ("Unknown", "unknown")):
        write_tree(folder, {"BAT1/status": state, "BAT1/power_now": 1_170_000})
        assert meter.read() == [None]
        with Sampler([meter], tmp_path / f"{state}.gz", rate_hz=1.0) as sampler:
            error = sampler.rates()[0].last_error or ""
            assert f"BAT1 is {word} and shows 1.2 W: in or out?" in error


def test_supplies_without_sensors(tmp_path: Path) -> None:
    write_tree(tmp_path, {"AC/type": "Mains", "AC/online": 1})
    with pytest.raises(PowerError, match="no supply with a sensor"):
        open_meters([f"power_supply,root={tmp_path}"])


# --- nvme --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1, 2])
def test_a_drives_interval_power(tmp_path: Path, scale: int) -> None:
    write_tree(tmp_path, {"dev/nvme0": ""})
    drive = FakeNvme(lambda: 6.25, scale)
    options = {"device": "/dev/nvme0"}
    meter = nvme.open_meter("nvme:/dev/nvme0", options, tmp_path, drive.ioctl)
    assert meter.read() == [pytest.approx(6.25)]
    assert meter.kind == "device-reported"
    assert meter.channels[0].domain == "device"
    assert set(drive.opcodes) == {0x02}, "Get Log Page and nothing else"
    drive.gone = True
    with pytest.raises(OSError, match="No such device"):
        meter.read()
    meter.close()
    with (tmp_path / "another").open("w") as another:
        meter.close()
        assert os.fstat(another.fileno()), "the number of the drive's descriptor is another's now"


def test_a_drive_that_reports_no_power_is_rejected(tmp_path: Path) -> None:
    write_tree(tmp_path, {"dev/nvme0": ""})
    drive = FakeNvme(lambda: 0.0, scale=0)
    with pytest.raises(PowerError, match=r"does not report its power.*NVMe 2\.3"):
        nvme.open_meter("nvme", {"device": "/dev/nvme0"}, tmp_path, drive.ioctl)
    drive = FakeNvme(lambda: 0.0, scale=2)
    with pytest.raises(PowerError, match="0 W: its power measurement is switched off"):
        nvme.open_meter("nvme", {"device": "/dev/nvme0"}, tmp_path, drive.ioctl)
    assert interval_power_w(struct.pack("<240xI268x", 625 | 3 << 16)) is None
    assert interval_power_w(bytes(512)) is None
    assert interval_power_w(struct.pack("<240xI268x", 2 << 16)) == 0.0


def test_drives_are_named_by_their_controller(tmp_path: Path) -> None:
    with pytest.raises(PowerError, match="which drive"):
        open_meters(["nvme"])
    with pytest.raises(PowerError, match="not an NVMe controller"):
        open_meters(["nvme:/dev/nvme0n1"])
    with pytest.raises(PowerError, match="No such file"):
        open_meters(["nvme:/dev/nvme0"], tmp_path)
    write_tree(tmp_path, {"dev/nvme0": ""})
    (finding,) = [f for f in discover(tmp_path) if f.spec.startswith("nvme")]
    assert not finding.available
    assert "ioctl" in (finding.reason or "")


# --- perf --------------------------------------------------------------------------------------


class Counters:
    """Pipes that hold one 8-byte count for each read."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, int]] = []
        self.ends: list[int] = []

    def open(self, event_type: int, config: int, cpu: int) -> int:
        self.asked.append((event_type, config, cpu))
        read_end, write_end = os.pipe()
        self.ends.append(write_end)
        return read_end

    def count(self, joules: float) -> None:
        for end in self.ends:
            os.write(end, round(joules * 2**32).to_bytes(8, "little"))


def test_perf_opens_each_packages_counters_on_its_cpu(tmp_path: Path) -> None:
    unit = perf_unit(tmp_path / "sys/bus/event_source/devices/power")
    topology(tmp_path, {0: (0, 0), 18: (1, 0)})
    counters = Counters()
    meter = perf.open_meter("perf", {"root": str(unit)}, tmp_path, counters.open)
    assert counters.asked == [(9, 2, 0), (9, 3, 0), (9, 2, 18), (9, 3, 18)], "no energy-cores"
    assert [c.name for c in meter.channels] == [
        "perf:package-0", "perf:package-0/dram", "perf:package-1", "perf:package-1/dram",
    ]  # fmt: skip
    assert [c.domain for c in meter.channels] == ["package", "dram"] * 2
    counters.count(12.5)
    assert meter.read() == [12.5] * 4
    for end in counters.ends:
        os.close(end)
    with pytest.raises(OSError, match="perf:package-0 has no count"):
        meter.read()  # how the kernel tells an event in error; it is not 0 J
    meter.close()


def perf_counters(root: Path, cpumask: str, options: dict[str, str]) -> list[tuple[str, int]]:
    """Names and CPUs of the package counters that are opened."""
    perf_unit(root / "sys/bus/event_source/devices/power", cpumask)
    counters = Counters()
    meter = perf.open_meter("perf", options, root, counters.open)
    cpus = [cpu for _, config, cpu in counters.asked if config == 2]
    names = [c.name.removeprefix("perf:") for c in meter.channels if c.domain == "package"]
    meter.close()
    return list(zip(names, cpus, strict=True))


def test_perf_counts_a_package_of_amd_once_whatever_cpumask_contains(tmp_path: Path) -> None:
    """`0,8,16,...,88` is what a 96-core EPYC of 12 dies showed before Linux 6.12 (the commit that
    mended arch/x86/events/rapl.c, D. Ugwekar, September 2024); newest kernels list every CPU."""
    write_tree(tmp_path, {"proc/cpuinfo": "processor\t: 0\nvendor_id\t: AuthenticAMD"})
    topology(tmp_path, {cpu: (0, cpu // 8) for cpu in range(96)})
    assert perf_counters(tmp_path, "0,8,16,24,32,40,48,56,64,72,80,88", {}) == [("package-0", 0)]
    assert perf_counters(tmp_path, "0-95", {}) == [("package-0", 0)]
    topology(tmp_path, {cpu: (1, 12 + cpu // 8) for cpu in range(96, 192)})
    assert perf_counters(tmp_path, "0-191", {}) == [("package-0", 0), ("package-1", 96)]


def test_perf_counts_each_package_of_intel_once_and_dies_that_have_counters(tmp_path: Path) -> None:
    write_tree(tmp_path, {"proc/cpuinfo": "vendor_id\t: GenuineIntel"})
    topology(tmp_path, {cpu: (cpu // 64, 0) for cpu in range(128)})
    assert perf_counters(tmp_path, "0-127", {}) == [("package-0", 0), ("package-1", 64)], (
        "a mask of all CPUs is not 64 counters a package"
    )
    # Cascade Lake-AP (Xeon Platinum 9242): two dies a package, each with counters of its own.
    two_dies = tmp_path / "two_dies"
    write_tree(two_dies, {"proc/cpuinfo": "vendor_id\t: GenuineIntel"})
    topology(two_dies, {cpu: (0, cpu // 24) for cpu in range(48)})
    assert perf_counters(two_dies, "0,24", {}) == [("package-0-die-0", 0), ("package-0-die-1", 24)]
    assert perf_counters(two_dies, "0,24", {"dies": "once"}) == [("package-0", 0)]
    meter = perf.open_meter("perf", {}, two_dies, Counters().open)
    assert [c.counts for c in meter.channels] == ["package-0", "package-0 dram"] * 2
    meter.close()


def test_perf_notices_a_package_that_cpumask_does_not_name(tmp_path: Path) -> None:
    topology(tmp_path, {cpu: (cpu // 64, 0) for cpu in range(128)})
    perf_unit(tmp_path / "sys/bus/event_source/devices/power", "0")
    with pytest.raises(PowerError, match="cpumask names no CPU of the package of cpu100"):
        open_meters(["perf"], tmp_path)


def test_perf_without_the_unit_or_the_right(tmp_path: Path) -> None:
    with pytest.raises(PowerError, match="modprobe rapl"):
        open_meters(["perf"], tmp_path)
    unit = perf_unit(tmp_path / "sys/bus/event_source/devices/power")
    with pytest.raises(PowerError, match=r"cpu0/topology/physical_package_id cannot.*share"):
        open_meters(["perf"], tmp_path)
    topology(tmp_path, {0: (0, 0), 18: (1, 0)})

    def reject(event_type: int, config: int, cpu: int) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    with pytest.raises(PowerError, match="perf_event_paranoid"):
        perf.open_meter("perf", {}, tmp_path, reject)
    write_tree(unit, {"events/energy-pkg.unit": "Bananas"})
    with pytest.raises(PowerError, match="in 'Bananas', not in Joules"):
        open_meters(["perf"], tmp_path)


def test_auto_takes_one_of_the_two_ways_to_rapl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    perf_unit(tmp_path / "sys/bus/event_source/devices/power")
    topology(tmp_path, {0: (0, 0), 18: (1, 0)})
    monkeypatch.setattr(perf.open_meter, "__defaults__", (Counters().open,))
    assert [m.name for m in open_meters(["auto"], tmp_path)] == ["perf"]
    FakeRapl(tmp_path / "sys/class/powercap")
    assert [m.name for m in open_meters(["auto"], tmp_path)] == ["rapl"]


def test_the_kernels_perf_events_count(tmp_path: Path) -> None:
    """A software event, which every kernel has, through the same system call."""
    software, cpu_clock = 1, 0
    try:
        fd = perf.open_event(software, cpu_clock, 0)
    except OSError as error:
        pytest.skip(f"perf events are not allowed here: {error.strerror}")
    try:
        first = int.from_bytes(os.read(fd, 8), "little")
        assert sum(math.sqrt(k) for k in range(100_000)) > 0
        assert int.from_bytes(os.read(fd, 8), "little") > first
    finally:
        os.close(fd)


def test_the_machines_own_rapl_events(tmp_path: Path) -> None:
    try:
        meter = one_meter("perf")
    except PowerError as error:
        pytest.skip(f"no RAPL events here: {error}")
    assert all(value is not None and value >= 0.0 for value in meter.read())


# --- other machines' boards -----------------------------------------------------------------------


def test_an_iio_channel_that_feeds_a_module_is_the_module(tmp_path: Path) -> None:
    """Kria's INA260 at SOM_5V0; a label may be that of the device."""
    folder = tmp_path / "sys/bus/iio/devices/iio:device0"
    files = {"name": "ina260", "in_power_input": "6100", "label": "SOM_5V0"}
    write_tree(folder, files)
    meter = one_meter("iio", tmp_path)
    assert [(c.domain, c.doubt) for c in meter.channels] == [("module", None)]
    assert meter.read() == [6.1]


@pytest.mark.parametrize("millivolts", ["850", "3300"])
def test_an_iio_channel_on_a_rail_is_not_the_system(tmp_path: Path, millivolts: str) -> None:
    folder = tmp_path / "sys/bus/iio/devices/iio:device0"
    shunt = {"in_voltage0_raw": "12", "in_voltage0_scale": "0.0025"}
    bus = {"in_voltage1_input": millivolts}
    write_tree(folder, {"name": "ina226", "in_power2_input": "3100", **shunt, **bus})
    volts = f"{int(millivolts) / 1e3:g}"
    with pytest.raises(PowerError, match=f"one rail.*3.1 W at {volts} V"):
        open_meters(["iio"], tmp_path)
    write_tree(folder, {"in_voltage1_input": "12000"})
    assert "is assumed" in (one_meter("iio", tmp_path).channels[0].doubt or "")


@pytest.mark.parametrize(
    ("input_name", "kind"), [("axp20x-ac", "Mains"), ("bq25890-charger-0", "USB")]
)
def test_unplugged_inputs_with_sensors_do_not_hide_the_battery(
    tmp_path: Path, input_name: str, kind: str
) -> None:
    """PinePhone, Librem 5 and boards with an AXP209: on their battery."""
    folder = write_tree(
        tmp_path / "sys/class/power_supply",
        {
            f"{input_name}/type": kind, f"{input_name}/online": 0,
            f"{input_name}/voltage_now": 0, f"{input_name}/current_now": 0,
            "battery/type": "Battery", "battery/status": "Discharging",
            "battery/voltage_now": 3_800_000, "battery/current_now": -500_000,
        },
    )  # fmt: skip
    (finding,) = [f for f in discover(tmp_path) if f.spec == "power_supply"]
    assert finding.available
    meter = one_meter("power_supply", tmp_path)
    assert meter.channels[0].name == "power_supply:battery"
    assert meter.read() == [pytest.approx(1.9)]
    write_tree(folder, {f"{input_name}/online": 1})
    assert meter.read() == [None]
    write_tree(folder, {f"{input_name}/online": 0, "battery/status": "Unknown"})
    (finding,) = [f for f in discover(tmp_path) if f.spec == "power_supply"]
    assert not finding.available and "unplug" not in (finding.remedy or "")
