"""hwmon chips against simulated folders."""

import shutil
from pathlib import Path

import pytest
from tests.eeio_power.one_meter import one_meter
from tests.simulators import FakeHwmon
from tests.simulators.tree import write_tree

from eeio_power.energy import meter_energy
from eeio_power.errors import PowerError
from eeio_power.meters import discover, open_meters

UW = 1_000_000


@pytest.fixture
def hwmon(tmp_path: Path) -> FakeHwmon:
    return FakeHwmon(tmp_path / "sys/class/hwmon")


def test_an_acpi_power_meter_is_the_system(hwmon: FakeHwmon) -> None:
    chip = hwmon.add_chip(
        "power_meter", {"power1_average": 211 * UW, "power1_average_interval": 2000}
    )
    meter = one_meter(f"hwmon,root={hwmon.root}")
    (channel,) = meter.channels
    assert (channel.name, channel.domain) == ("hwmon:power_meter/power1", "system")
    assert channel.quantity == "power_w"
    assert channel.in_domain_total
    assert meter.native_period_s == 2.0
    assert meter.read() == [211.0]
    hwmon.set(chip, "power1_average", 305 * UW)
    assert meter.read() == [305.0]
    hwmon.remove(chip, "power1_average")
    assert meter.read() == [None]


def test_ina_chips_by_power_by_energy_and_by_voltage_and_current(tmp_path: Path) -> None:
    power = FakeHwmon(tmp_path / "power")
    power.add_chip(
        "ina226",
        {
            "in0_input": 3,
            "in1_input": 5000,
            "curr1_input": 900,
            "power1_input": 4_475_000,
            "update_interval": 2,
        },
    )
    meter = one_meter(f"hwmon,root={power.root}")
    assert meter.read() == [4.475]
    assert meter.native_period_s == 0.002

    energy = FakeHwmon(tmp_path / "energy")
    energy.add_chip("ina228", {"power1_input": 4_475_000, "energy1_input": 123_456_789})
    meter = one_meter(f"hwmon,root={energy.root}")
    assert [c.quantity for c in meter.channels] == ["energy_j"]
    assert meter.read() == [pytest.approx(123.456789)]

    pair = FakeHwmon(tmp_path / "pair")
    pair.add_chip("ina219", {"in0_input": 3, "in1_input": 5000, "curr1_input": 900})
    assert one_meter(f"hwmon,root={pair.root}").read() == [pytest.approx(4.5)]


def test_ina3221_labels_tell_the_input_from_its_rails(hwmon: FakeHwmon) -> None:
    files: dict[str, int | str] = {"in4_input": 1, "in5_input": 1, "in6_input": 1, "curr4_input": 9}
    labels = ("VDD_IN", "VDD_CPU_CV", "VDD_GPU")
    for n, (label, current_ma) in enumerate(zip(labels, (2000, 600, 500), strict=True), start=1):
        files |= {f"in{n}_label": label, f"in{n}_input": 5000, f"curr{n}_input": current_ma}
    hwmon.add_chip("ina3221", files)
    meter = one_meter(f"hwmon,root={hwmon.root}")
    assert [(c.name, c.domain, c.in_domain_total) for c in meter.channels] == [
        ("hwmon:ina3221/power1", "module", True),
        ("hwmon:ina3221/power2", "package", False),
    ], "no shunt voltage x current sum, and no GPU; the carrier board and its drives are not in it"
    assert "drives" in meter.channels[0].contents.leaves_out
    assert meter.read() == [pytest.approx(10.0), pytest.approx(3.0)]


def test_other_chips_are_not_the_system(hwmon: FakeHwmon) -> None:
    hwmon.add_chip("amdgpu", {"power1_average": 90 * UW, "power1_label": "PPT"})
    hwmon.add_chip("nvme", {"temp1_input": 40_000})
    hwmon.add_chip("coretemp", {"temp1_input": 50_000})
    hwmon.add_chip("BAT0", {"power1_input": 12 * UW})
    with pytest.raises(PowerError, match="no ACPI power meter or INA2xx"):
        open_meters([f"hwmon,root={hwmon.root}"])


def test_a_battery_and_a_disabled_rail_are_left_out(hwmon: FakeHwmon) -> None:
    hwmon.add_chip("power_meter", {"power1_average": 9 * UW, "power1_is_battery": 1})
    hwmon.add_chip(
        "ina3221",
        {"in1_input": 5000, "curr1_input": 800, "in2_input": 0, "curr2_input": 0, "in2_enable": 0},
    )
    meter = one_meter(f"hwmon,root={hwmon.root}")
    assert [c.name for c in meter.channels] == ["hwmon:ina3221/power1"]


def test_sensors_that_may_contain_each_other_are_never_added_up(hwmon: FakeHwmon) -> None:
    hwmon.add_chip("ina226", {"power1_input": 12 * UW})
    hwmon.add_chip("ina226", {"power1_input": 5 * UW})
    with pytest.raises(PowerError, match=r"contain each other.*only=ina226/power1\+ina226@hwmon1"):
        open_meters([f"hwmon,root={hwmon.root}"])
    (finding,) = [f for f in discover(hwmon.root.parents[2]) if f.spec == "hwmon"]
    assert not finding.available
    assert "only=" in (finding.remedy or "")
    assert open_meters(["auto"], hwmon.root.parents[2]) == []
    meter = one_meter(f"hwmon,root={hwmon.root},only=ina226/power1+ina226@hwmon1/power1")
    assert [c.in_domain_total for c in meter.channels] == [True, True]
    with pytest.raises(PowerError, match="no sensor ina9/power1"):
        open_meters([f"hwmon,root={hwmon.root},only=ina9/power1"])


def test_a_rail_of_unknown_label_next_to_others_is_not_taken_for_the_supply(
    hwmon: FakeHwmon,
) -> None:
    hwmon.add_chip("ina226", {"power1_input": 5 * UW, "power1_label": "5V_B"})
    hwmon.add_chip("ina226", {"power1_input": 2 * UW, "power1_label": "CPU"})
    with pytest.raises(PowerError, match="contain each other"):
        open_meters([f"hwmon,root={hwmon.root}"])
    meter = one_meter(f"hwmon,root={hwmon.root},only=ina226@hwmon1/power1+ina226/power1")
    assert [c.domain for c in meter.channels] == ["system", "system"]


def test_parts_only_are_no_system(hwmon: FakeHwmon) -> None:
    hwmon.add_chip("ina226", {"power1_input": 5 * UW, "power1_label": "DDR"})
    hwmon.add_chip("ina226", {"power1_input": 2 * UW, "power1_label": "CPU"})
    with pytest.raises(PowerError, match="parts of the machine"):
        open_meters([f"hwmon,root={hwmon.root}"])


def test_a_module_meter_is_not_added_to_its_parts(hwmon: FakeHwmon) -> None:
    # As a Grace Hopper module shows itself.
    for label, watts in [
        ("Module Power Socket 0", 500),
        ("Grace Power Socket 0", 220),
        ("CPU Power Socket 0", 150),
        ("SysIO Power Socket 0", 20),
    ]:
        hwmon.add_chip("power_meter", {"power1_average": watts * UW, "power1_oem_info": label})
    meter = one_meter(f"hwmon,root={hwmon.root}")
    values = zip(meter.channels, meter.read(), strict=True)
    assert [value for channel, value in values if channel.in_domain_total] == [500.0]


@pytest.mark.parametrize(
    "label",
    ["NVMe input", "CPU total", "Memory module 1", "PCIe slot input", "Fan total", "USB input"],
)
def test_the_input_of_a_part_is_no_input_of_the_system(hwmon: FakeHwmon, label: str) -> None:
    hwmon.add_chip("ina226", {"power1_input": 5 * UW, "power1_label": label})
    with pytest.raises(PowerError, match="parts of the machine"):
        open_meters([f"hwmon,root={hwmon.root}"])


def test_of_two_totals_that_with_the_word_is_the_system_if_it_is_the_largest(
    hwmon: FakeHwmon,
) -> None:
    chips = [
        hwmon.add_chip("power_meter", {"power1_average": watts * UW, "power1_oem_info": label})
        for label, watts in [("Total Power", 600), ("System Power", 500)]
    ]
    meter = one_meter(f"hwmon,root={hwmon.root}")
    assert [c.name for c in meter.channels if c.in_domain_total] == ["hwmon:power_meter/power1"]
    hwmon.set(chips[1], "power1_average", 700 * UW)
    with pytest.raises(PowerError, match="is more than power_meter/power1"):
        open_meters([f"hwmon,root={hwmon.root}"])


def test_totals_of_one_kind_add_up(hwmon: FakeHwmon) -> None:
    for socket in (0, 1):
        label = f"Module Power Socket {socket}"
        hwmon.add_chip("power_meter", {"power1_average": 500 * UW, "power1_oem_info": label})
    meter = one_meter(f"hwmon,root={hwmon.root}")
    assert meter.read() == [500.0, 500.0]
    assert all(channel.in_domain_total for channel in meter.channels)


def test_a_total_is_not_added_to_another_total(hwmon: FakeHwmon) -> None:
    for watts in (600, 300):
        hwmon.add_chip(
            "power_meter", {"power1_average": watts * UW, "power1_oem_info": "Total Power"}
        )
    with pytest.raises(PowerError, match="several may be the system's"):
        open_meters([f"hwmon,root={hwmon.root}"])


def test_the_inputs_of_a_board_add_up(hwmon: FakeHwmon) -> None:
    for _ in range(2):
        hwmon.add_chip("ina226", {"power1_input": 60 * UW, "power1_label": "12V input"})
    meter = one_meter(f"hwmon,root={hwmon.root}")
    assert [c.in_domain_total for c in meter.channels] == [True, True]


def test_a_module_without_a_sensor_makes_the_sum_of_modules_none(hwmon: FakeHwmon) -> None:
    """Grace Hopper of two sockets, of which one module's meter is gone and its parts' are not."""
    grace_hopper(hwmon, 2, ("Module", "CPU"))
    gone = [
        chip
        for chip in hwmon.root.iterdir()
        for file in chip.glob("**/power1_oem_info")
        if file.read_text().strip() == "Module Power Socket 1"
    ]
    shutil.rmtree(gone[0])
    with pytest.raises(PowerError, match="a module has no sensor of its own"):
        open_meters([f"hwmon,root={hwmon.root}"])


def test_an_acpi_meter_goes_before_a_rail(hwmon: FakeHwmon) -> None:
    hwmon.add_chip("ina226", {"power1_input": 12 * UW})
    hwmon.add_chip("power_meter", {"power1_average": 30 * UW})
    meter = one_meter(f"hwmon,root={hwmon.root}")
    values = zip(meter.channels, meter.read(), strict=True)
    assert [value for channel, value in values if channel.in_domain_total] == [30.0]
    assert meter.native_period_s == 1.0


def test_two_acpi_meters_without_a_total_are_not_added_up(hwmon: FakeHwmon) -> None:
    hwmon.add_chip("power_meter", {"power1_average": 30 * UW})
    hwmon.add_chip("power_meter", {"power1_average": 25 * UW})
    with pytest.raises(PowerError, match="contain each other"):
        open_meters([f"hwmon,root={hwmon.root}"])


def test_a_jetsons_input_is_the_modules_and_never_the_systems(hwmon: FakeHwmon) -> None:
    """Orin Nano: ina3221's labels in NVIDIA's Jetson Linux guide; Nano: POM_5V_IN."""
    rails = {"VDD_IN": (4984, 1216), "VDD_CPU_GPU_CV": (4976, 240), "VDD_SOC": (4976, 416)}
    files: dict[str, int | str] = {}
    for n, (label, (voltage_mv, current_ma)) in enumerate(rails.items(), start=1):
        files |= {f"in{n}_label": label, f"in{n}_input": voltage_mv, f"curr{n}_input": current_ma}
    folder = hwmon.add_chip("ina3221", files)
    (finding,) = [f for f in discover(hwmon.root.parents[2]) if f.spec == "hwmon"]
    assert (finding.available, finding.domains) == (True, ("module",))
    meter = one_meter(f"hwmon,root={hwmon.root}")
    counted = [(c.name, c.domain) for c in meter.channels if c.in_domain_total]
    assert counted == [("hwmon:ina3221/power1", "module")]
    assert meter.read()[0] == pytest.approx(4.984 * 1.216)
    named = one_meter(f"hwmon,root={hwmon.root},only=ina3221/power1")
    assert [c.domain for c in named.channels] == ["module"], "naming it adds no drives to it"
    hwmon.set(folder, "in1_label", "POM_5V_IN")
    meter = one_meter(f"hwmon,root={hwmon.root}")
    assert [c.domain for c in meter.channels if c.in_domain_total] == ["module"]


def grace_hopper(hwmon: FakeHwmon, sockets: int, labels: tuple[str, ...]) -> None:
    """ACPI meters of a Grace Hopper node, labelled as in NVIDIA's Grace tuning guide, their files
    in hwmonN/device/ without a name, as Alumet's test of its plug-in has them."""
    for socket in range(sockets):
        for word, watts in zip(labels, (300, 120, 80, 25), strict=False):
            folder = hwmon.root / f"hwmon{len(list(hwmon.root.iterdir()))}"
            write_tree(
                folder / "device",
                {"power1_average": watts * UW, "power1_average_interval": 50,
                 "power1_oem_info": f"{word} Power Socket {socket}"},
            )  # fmt: skip


def test_grace_hoppers_modules_are_found_in_the_device_folder_and_added(hwmon: FakeHwmon) -> None:
    grace_hopper(hwmon, 2, ("Module", "Grace", "CPU", "SysIO"))
    meter = one_meter(f"hwmon,root={hwmon.root}")
    counted = [(c.name, c.domain) for c in meter.channels if c.in_domain_total]
    assert counted == [
        ("hwmon:power_meter/power1", "module"), ("hwmon:power_meter@hwmon4/power1", "module"),
    ]  # fmt: skip
    assert {c.domain for c in meter.channels if not c.in_domain_total} == {"package"}
    assert meter.native_period_s == 0.05
    assert sum(w for w in meter.read() if w is not None) == 2 * (300 + 120 + 80 + 25)


@pytest.mark.parametrize("label", ["", "NVLink Power Socket 0"])
def test_an_acpi_meter_of_unknown_label_next_to_others_is_not_the_system(
    hwmon: FakeHwmon, label: str
) -> None:
    """A Grace whose firmware has one more meter than we know, or one without its label."""
    for name, watts in (("Grace Power Socket 0", 92), ("CPU Power Socket 0", 61), (label, 12)):
        hwmon.add_chip("power_meter", {"power1_average": watts * UW, "power1_oem_info": name})
    with pytest.raises(PowerError, match=r"contain each other|parts of the machine"):
        open_meters([f"hwmon,root={hwmon.root}"])


@pytest.mark.parametrize("label", ["CPU", "GPU"])
def test_a_channel_without_a_label_next_to_labelled_ones_is_not_the_system(
    hwmon: FakeHwmon, label: str
) -> None:
    hwmon.add_chip(
        "ina3221",
        {"in1_label": label, "in1_input": 5000, "curr1_input": 900,
         "in2_input": 5000, "curr2_input": 100},
    )  # fmt: skip
    with pytest.raises(PowerError, match="contain each other"):
        open_meters([f"hwmon,root={hwmon.root}"])


def test_plain_grace_has_parts_only(hwmon: FakeHwmon) -> None:
    grace_hopper(hwmon, 1, ("Grace", "CPU", "SysIO"))
    with pytest.raises(PowerError, match=r"parts .*: power_meter/power1 .*, power_meter@hwmon1"):
        open_meters([f"hwmon,root={hwmon.root}"])


def test_an_acpi_meter_whose_files_are_in_its_device_folder(hwmon: FakeHwmon) -> None:
    """acpi_power_meter of Linux 6.1 (Debian 12): hwmonN holds no name and no sensor."""
    folder = hwmon.root / "hwmon0"
    write_tree(folder, {"device/power1_average": 211 * UW, "device/hid": "ACPI000D"})
    meter = one_meter(f"hwmon,root={hwmon.root}")
    assert [(c.name, c.domain) for c in meter.channels] == [("hwmon:power_meter/power1", "system")]
    assert meter.read() == [211.0]
    write_tree(folder, {"device/hid": "PNP0C0A"})
    with pytest.raises(PowerError, match="no ACPI power meter"):
        open_meters([f"hwmon,root={hwmon.root}"])
    write_tree(folder, {"device/name": "power_meter"})
    assert one_meter(f"hwmon,root={hwmon.root}").read() == [211.0]


def supply(input_v: int, output_w: int, input_w: int | None) -> dict[str, int | str]:
    """The files of a PMBus driver (Documentation/hwmon/pmbus.rst; labels of ibm-cffps.rst)."""
    files: dict[str, int | str] = {
        "in1_label": "vin", "in1_input": input_v * 1000, "in2_label": "vout1", "in2_input": 12_300,
        "power2_label": "pout1", "power2_input": output_w * UW, "curr1_label": "iin",
    }  # fmt: skip
    if input_w is not None:
        files |= {"power1_label": "pin", "power1_input": input_w * UW}
    return files


def test_the_inputs_of_all_pmbus_supplies_are_the_system(hwmon: FakeHwmon) -> None:
    first = hwmon.add_chip("cffps1", supply(230, 180, 200))
    hwmon.add_chip("cffps1", supply(229, 150, 170))
    hwmon.add_chip("tps53679", supply(12, 60, 66))
    meter = one_meter(f"hwmon,root={hwmon.root}")
    counted = [c for c in meter.channels if c.in_domain_total]
    assert [c.name for c in counted] == [
        "hwmon:cffps1/power1", "hwmon:cffps1@hwmon1/power1",
    ]  # fmt: skip
    assert counted[0].contents.leaves_out == (), "the losses of the supplies are in it"
    assert "sum of 2 power supplies" in (counted[0].remark or "")
    assert all("tps53679" not in c.name for c in meter.channels), "a regulator is no supply"
    values = dict(zip([c.name for c in meter.channels], meter.read(), strict=True))
    assert [values[c.name] for c in counted] == [200.0, 170.0]
    hwmon.set(first, "power1_input", "")
    assert meter.read()[0] is None, "then the sum is missing, too"
    with pytest.raises(PowerError, match="hwmon0/power1_input: cannot be read"):
        open_meters([f"hwmon,root={hwmon.root}"])
    hwmon.remove(first, "power1_input")
    counted = [c for c in one_meter(f"hwmon,root={hwmon.root}").channels if c.in_domain_total]
    assert [c.name for c in counted] == [
        "hwmon:cffps1/power2", "hwmon:cffps1@hwmon1/power2",
    ], "one input and one output are no sum"  # fmt: skip


def test_a_supply_whose_voltage_does_not_answer_is_not_left_out_of_the_sum(
    hwmon: FakeHwmon,
) -> None:
    hwmon.add_chip("cffps1", supply(230, 180, 200))
    silent = hwmon.add_chip("cffps1", supply(229, 150, 170))
    hwmon.set(silent, "in1_input", "")
    with pytest.raises(PowerError, match="hwmon1/in1_input: cannot be read"):
        open_meters([f"hwmon,root={hwmon.root}"])


def test_a_supply_that_is_not_plugged_in_yet_counts_with_its_kind(hwmon: FakeHwmon) -> None:
    """Plugged in later it would have been half of the power that nobody adds."""
    hwmon.add_chip("cffps1", supply(230, 180, 200))
    unplugged = hwmon.add_chip("cffps1", supply(0, 0, 0))
    untold = hwmon.add_chip("cffps1", supply(230, 90, 100))
    hwmon.remove(untold, "in1_label")
    meter = one_meter(f"hwmon,root={hwmon.root}")
    counted = [c.in_domain_total for c in meter.channels]
    assert sum(counted) == 3
    hwmon.set(unplugged, "power1_input", 150 * UW)
    values = [v or 0.0 for v, is_in in zip(meter.read(), counted, strict=True) if is_in]
    assert sum(values) == 450.0


@pytest.mark.parametrize("input_v", [0, None])
def test_what_may_be_a_supply_of_another_kind_makes_no_sum(
    hwmon: FakeHwmon, input_v: int | None
) -> None:
    hwmon.add_chip("cffps1", supply(230, 180, 200))
    other = hwmon.add_chip("dps800", supply(input_v or 0, 0, 0))
    if input_v is None:
        hwmon.remove(other, "in1_label")
    with pytest.raises(PowerError, match="dps800/power1"):
        open_meters([f"hwmon,root={hwmon.root}"])


def test_supplies_without_an_input_sensor_are_read_behind_their_losses(hwmon: FakeHwmon) -> None:
    hwmon.add_chip("cffps1", supply(230, 180, None))
    meter = one_meter(f"hwmon,root={hwmon.root}")
    (channel,) = meter.channels
    assert (channel.domain, meter.read()) == ("system", [180.0])
    assert channel.contents.leaves_out == ("supply",)


def test_regulators_on_the_board_are_no_system(hwmon: FakeHwmon) -> None:
    hwmon.add_chip("tps53679", supply(12, 60, 66))
    with pytest.raises(PowerError, match=r"each other: tps53679/power1 .*, tps53679/power2"):
        open_meters([f"hwmon,root={hwmon.root}"])
    assert one_meter(f"hwmon,root={hwmon.root},only=tps53679/power1").read() == [66.0]


def test_a_corsair_supply_by_its_total(hwmon: FakeHwmon) -> None:
    """Labels of Documentation/hwmon/corsair-psu.rst and its driver."""
    labels = ("power total", "power +12v", "power +5v", "power +3.3v")
    files: dict[str, int | str] = {"in0_label": "v_in", "in0_input": 230_000}
    for n, (label, watts) in enumerate(zip(labels, (146, 120, 16, 10), strict=True), start=1):
        files |= {f"power{n}_label": label, f"power{n}_input": watts * UW}
    hwmon.add_chip("corsairpsu", files)
    meter = one_meter(f"hwmon,root={hwmon.root}")
    assert [(c.name, c.domain) for c in meter.channels] == [("hwmon:corsairpsu/power1", "system")]
    assert meter.read() == [146.0]
    assert meter.channels[0].contents.leaves_out == ("supply",)


def test_a_number_that_another_chip_got_later_is_not_read(tmp_path: Path) -> None:
    """hwmon0 is a link of the class; after its driver was loaded again it leads to a GPU."""
    for device, chip, watts in (("acpi", "power_meter", 200), ("gpu", "amdgpu", 35)):
        chips = FakeHwmon(tmp_path / f"sys/devices/{device}/hwmon")
        chips.add_chip(chip, {"power1_average": watts * UW})
    folder = tmp_path / "sys/class/hwmon"
    folder.mkdir(parents=True)
    (folder / "hwmon0").symlink_to("../../devices/acpi/hwmon/hwmon0")
    (folder / "hwmon1").symlink_to("nowhere")
    (folder / "hwmon2").symlink_to("hwmon2")
    meter = one_meter("hwmon", tmp_path)
    assert meter.read() == [200.0]
    (folder / "hwmon0").unlink()
    (folder / "hwmon0").symlink_to("../../devices/gpu/hwmon/hwmon0")
    shutil.rmtree(tmp_path / "sys/devices/acpi")
    assert meter.read() == [None], "and not the 35 W of the GPU"


# --- other machines' chips ------------------------------------------------------------------------


@pytest.mark.parametrize("millivolts", [800, 1100, 3300])
def test_a_single_sensor_on_a_rail_is_not_the_system(hwmon: FakeHwmon, millivolts: int) -> None:
    hwmon.add_chip("ina226", {"in1_input": millivolts, "curr1_input": 900, "power1_input": 3 * UW})
    volts = f"{millivolts / 1e3:g}"
    with pytest.raises(PowerError, match=rf"one rail.*power1 3 W at {volts} V.*only=ina226"):
        open_meters([f"hwmon,root={hwmon.root}"])
    assert open_meters([f"hwmon,root={hwmon.root},only=ina226/power1"])[0].read() == [3.0]


def test_a_single_sensor_without_a_label_is_doubtful_until_it_is_named(hwmon: FakeHwmon) -> None:
    hwmon.add_chip("ina226", {"in1_input": 12_000, "curr1_input": 900, "power1_input": 11 * UW})
    assert "is assumed" in (one_meter(f"hwmon,root={hwmon.root}").channels[0].doubt or "")
    assert one_meter(f"hwmon,root={hwmon.root},only=ina226/power1").channels[0].doubt is None


def test_a_label_of_the_chip_itself_is_read(hwmon: FakeHwmon) -> None:
    """Of the device tree. Kria's INA260 feeds its module; a chip's name may have a place."""
    files = {"in1_input": 5000, "curr1_input": 900, "power1_input": 4 * UW}
    chip = hwmon.add_chip("ina260_u14", {**files, "label": "SOM_5V0"})
    meter = one_meter(f"hwmon,root={hwmon.root}")
    assert [(c.name, c.domain) for c in meter.channels] == [("hwmon:ina260_u14/power1", "module")]
    hwmon.set(chip, "label", "3V3_AUX")
    with pytest.raises(PowerError, match=r"one rail.*\(3V3_AUX\) 4 W at 5 V"):
        open_meters([f"hwmon,root={hwmon.root}"])


@pytest.mark.parametrize(
    ("chip", "files", "domain"),
    [
        ("macsmc_hwmon", {"power1_input": 9 * UW, "power1_label": "Total System Power"}, "system"),
        ("ibmpowernv", {"power1_input": 9 * UW, "power1_label": "System"}, "system"),
        ("ltc4282", {"power1_input": 9 * UW, "in1_input": 12_000}, "system"),
        ("amd_energy", {"energy1_input": 9 * UW, "energy1_label": "Esocket0"}, "package"),
        ("fam15h_power", {"power1_input": 9 * UW}, "package"),
    ],
)
def test_any_chip_is_read_if_it_is_named(
    hwmon: FakeHwmon, chip: str, files: dict[str, int | str], domain: str
) -> None:
    hwmon.add_chip(chip, files)
    word = next(iter(files)).partition("_")[0]
    with pytest.raises(PowerError, match=rf"other chips have {chip}/{word}.*only={chip}/{word}"):
        open_meters([f"hwmon,root={hwmon.root}"])
    assert open_meters(["auto"], hwmon.root.parents[2]) == []
    meter = one_meter(f"hwmon,root={hwmon.root},only={chip}/{word}")
    assert meter.read() == [9.0] and meter.channels[0].domain == domain


@pytest.mark.parametrize(
    ("chip", "label"), [("acpi_fan", ""), ("BAT0", ""), ("blackhole", ""), ("spbm", "syspl1")]
)
def test_no_part_or_limit_is_offered_or_read_as_the_system(
    hwmon: FakeHwmon, chip: str, label: str
) -> None:
    hwmon.add_chip(chip, {"power1_input": 9 * UW, **({"power1_label": label} if label else {})})
    with pytest.raises(PowerError, match="they are of parts; use another meter"):
        open_meters([f"hwmon,root={hwmon.root}"])
    with pytest.raises(PowerError, match="neither the system nor a domain"):
        open_meters([f"hwmon,root={hwmon.root},only={chip}/power1"])


def test_an_energy_and_a_power_of_one_number_are_distinguished_by_their_labels(
    hwmon: FakeHwmon,
) -> None:
    """A DGX Spark's powers and energies are numbered apart; a Power9's are of one sensor."""
    hwmon.add_chip(
        "spbm",
        {"power1_input": 28 * UW, "power1_label": "sys_total", "energy1_input": 5 * UW,
         "energy1_label": "pkg", "power2_input": 7 * UW, "power2_label": "dla",
         "energy2_input": UW, "energy2_label": "dla"},
    )  # fmt: skip
    with pytest.raises(PowerError) as error:
        open_meters([f"hwmon,root={hwmon.root}"])
    for shown in ("power1 (sys_total) 28 W", "energy1 (pkg)", "energy2 (dla) 7 W", "power1"):
        assert shown in str(error.value)
    assert "power2" not in str(error.value)
    assert "energy1 (pkg) 28 W" not in str(error.value), "the power of another sensor"
    assert one_meter(f"hwmon,root={hwmon.root},only=spbm/power1").read() == [28.0]


def test_a_gpu_is_not_read_as_the_system_though_it_is_named(hwmon: FakeHwmon) -> None:
    hwmon.add_chip("amdgpu", {"power1_average": 90 * UW, "power1_label": "PPT"})
    with pytest.raises(PowerError, match="90 W: neither the system nor a domain"):
        open_meters([f"hwmon,root={hwmon.root},only=amdgpu/power1"])


@pytest.mark.parametrize("chip", ["iio_hwmon", "ina226_fourth"])
@pytest.mark.parametrize("shown", [8_400, 8_400_000])
def test_milliwatts_for_microwatts_are_found_by_voltage_and_current(
    hwmon: FakeHwmon, shown: int, chip: str
) -> None:
    """The kernel's iio_hwmon, which a device tree may name after its chip. Its first voltage is
    that of the shunt."""
    files: dict[str, int | str] = {"in1_input": 1, "in2_input": 12_010, "curr1_input": 700}
    hwmon.add_chip(chip, {**files, "power1_input": shown})
    meter = one_meter(f"hwmon,root={hwmon.root},only={chip}/power1")
    assert meter.read() == [pytest.approx(8.4)]
    wrong = shown == 8_400
    assert ("multiplied by 1000" in (meter.channels[0].remark or "")) is wrong
    if chip != "iio_hwmon":
        meter = one_meter(f"hwmon,root={hwmon.root}")
        assert meter.read() == [pytest.approx(8.4)]
        assert ("multiplied by 1000" in (meter.channels[0].remark or "")) is wrong


def test_a_rail_through_iio_is_one_by_its_own_voltage(hwmon: FakeHwmon) -> None:
    hwmon.add_chip(
        "ina226_fourth",
        {"in1_input": 5000, "in2_input": 1198, "curr1_input": 700, "power1_input": 839},
    )
    with pytest.raises(PowerError, match=r"one rail.*0\.839 W at 1\.198 V"):
        open_meters([f"hwmon,root={hwmon.root}"])


def test_a_supply_without_a_power_makes_no_sum(hwmon: FakeHwmon) -> None:
    """Another one alone would be less than the machine."""
    hwmon.add_chip("dps460", supply(230_000, 200, 220))
    hwmon.add_chip("dps460", {"in1_label": "vin", "in1_input": 209_000})
    with pytest.raises(PowerError, match="hwmon1/power1_input"):
        open_meters([f"hwmon,root={hwmon.root}"])


def test_every_rail_of_a_regulator_is_listed(hwmon: FakeHwmon) -> None:
    hwmon.add_chip("pmbus", {"in1_label": "vin", "in1_input": 12_000,
                             "power1_label": "pout1", "power1_input": 5 * UW,
                             "power2_label": "pout2", "power2_input": 25 * UW})  # fmt: skip
    with pytest.raises(PowerError, match=r"pout1\) 5 W, .*pout2\) 25 W; .*power1\+pmbus/power2"):
        open_meters([f"hwmon,root={hwmon.root}"])


def test_a_mean_of_minutes_is_reported(hwmon: FakeHwmon, tmp_path: Path) -> None:
    hwmon.add_chip("power_meter", {"power1_average": 130 * UW, "power1_average_interval": 300_000})
    (found,) = [each for each in discover(tmp_path) if each.spec == "hwmon"]
    assert found.available
    assert "power_meter/power1 is the mean of 300 s: shorter windows" in (found.reason or "")


@pytest.mark.parametrize(
    ("chip", "files"),
    [
        ("dpmac1_sfp", {"power1_label": "TX_power", "power1_input": 501}),
        ("sfp", {"power1_input": 501}),
        ("wireview", {"energy1_input": 484 * UW}),
        ("macsmc_hwmon", {"power1_label": "Heatpipe Power", "power1_input": 16 * UW}),
    ],
)
def test_a_part_is_not_proposed_as_the_system(
    hwmon: FakeHwmon, tmp_path: Path, chip: str, files: dict[str, int | str]
) -> None:
    hwmon.add_chip(chip, files)
    (found,) = [each for each in discover(tmp_path) if each.spec == "hwmon"]
    assert not found.available and "system, name it" not in str(found.remedy)


def test_another_chip_does_not_hide_the_only_known_meter(hwmon: FakeHwmon) -> None:
    hwmon.add_chip("amdgpu", {"power1_average": 90 * UW})
    hwmon.add_chip("power_meter", {"power1_average": 211 * UW})
    assert one_meter(f"hwmon,root={hwmon.root}").read() == [211.0]


def test_an_input_that_may_feed_another_is_not_added_to_it(hwmon: FakeHwmon) -> None:
    for volts, watts in ((12, 60), (5, 20)):
        files: dict[str, int | str] = {"in1_input": volts * 1000, "power1_input": watts * UW}
        hwmon.add_chip("ina226", {**files, "power1_label": "board input"})
    with pytest.raises(PowerError, match="several may be the system"):
        open_meters([f"hwmon,root={hwmon.root}"])


@pytest.mark.parametrize("current_ma", [450, -450])
def test_a_usb_tester_is_read_by_the_labels_of_its_voltage_and_current(
    hwmon: FakeHwmon, current_ma: int
) -> None:
    hwmon.add_chip(
        "powerz",
        {"in0_input": 5120, "in0_label": "VBUS", "curr1_input": current_ma, "curr1_label": "IBUS",
         "in1_input": 410, "in1_label": "VCC1", "in2_input": 1700, "in2_label": "VCC2",
         "temp1_input": 31_000},
    )  # fmt: skip
    (finding,) = [f for f in discover(hwmon.root.parents[2]) if f.spec == "hwmon"]
    assert not finding.available and "only=powerz/power1" in (finding.remedy or "")
    assert "powerz/power1 (VBUS) 2.304 W" in (finding.reason or "")
    meter = one_meter(f"hwmon,root={hwmon.root},only=powerz/power1,domain=device")
    (channel,) = meter.channels
    assert channel.domain == "device" and channel.contents.includes == ("drives",)
    assert channel.rule == "named by the user: powerz/power1"
    assert meter.read() == [pytest.approx(5.12 * 0.45)]
    with pytest.raises(PowerError, match="domain= requires only="):
        open_meters([f"hwmon,root={hwmon.root},domain=device"])


def test_two_voltages_of_one_label_are_no_pair(hwmon: FakeHwmon) -> None:
    hwmon.add_chip(
        "powerz",
        {"in0_input": 20_000, "in0_label": "VBUS", "in3_input": 5000, "in3_label": "VBUS",
         "curr1_input": 3000, "curr1_label": "IBUS"},
    )  # fmt: skip
    with pytest.raises(PowerError, match="no ACPI power meter"):
        open_meters([f"hwmon,root={hwmon.root}"])


def test_a_rail_that_draws_more_than_the_input_over_a_window_is_named(hwmon: FakeHwmon) -> None:
    """At the start, 1.5 times as much is allowed: the readings are of different moments."""
    hwmon.add_chip("ina226", {"power1_input": 10 * UW, "in1_label": "VIN", "in1_input": 12_000})
    hwmon.add_chip("ina226", {"power1_input": 13 * UW, "in1_label": "3V3", "in1_input": 3300})
    meter = one_meter(f"hwmon,root={hwmon.root}")
    times_s = [0.1 * n for n in range(101)]
    values = [[power_w] * len(times_s) for power_w in meter.read()]
    (reading,) = meter_energy(
        meter=meter.name, kind=meter.kind, channels=meter.channels, native_period_s=0.1,
        period_s=0.1, times_s=times_s, values=values, start_s=2.0, end_s=8.0,
    )  # fmt: skip
    assert reading.doubtful
    assert "ina226@hwmon1/power1 13.0 W is in system" in "; ".join(reading.reasons)


def test_a_total_below_a_rail_is_rejected_with_both(hwmon: FakeHwmon) -> None:
    hwmon.add_chip("ina226", {"power1_input": 5 * UW, "power1_label": "VIN"})
    hwmon.add_chip("ina226", {"power1_input": 9 * UW, "power1_label": "VDD_AUX"})
    with pytest.raises(PowerError, match=r"hwmon1/power1 is more than ina226/power1.*5 W, .*9 W"):
        open_meters([f"hwmon,root={hwmon.root}"])


def test_the_rule_names_what_it_does_not_count(hwmon: FakeHwmon) -> None:
    hwmon.add_chip("ina226", {"power1_input": 9 * UW, "power1_label": "VIN"})
    hwmon.add_chip("ina226", {"power1_input": 2 * UW, "power1_label": "VDD_AUX"})
    meter = one_meter(f"hwmon,root={hwmon.root}")
    rules = {channel.rule for channel in meter.channels if channel.in_domain_total}
    assert rules == {
        "named as the complete machine: ina226/power1; not counted: ina226@hwmon1/power1"
    }
