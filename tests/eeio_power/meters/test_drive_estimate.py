"""The estimate of a drive's power against power state tables that users published, and figures
that others measured."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.eeio_results.made import MACHINE, design, phase, run
from tests.plugin import Eeio
from tests.simulators.nvme_states import FakeNvmeStates, FakePowerState
from tests.simulators.tree import write_tree

from eeio.record.store import Campaign
from eeio.report import page
from eeio.report.campaign.characterized import build, to_json
from eeio.report.campaign.contents import document
from eeio.report.document import render_csv, render_terminal
from eeio_power.errors import PowerError
from eeio_power.meters import drive_estimate, open_meters
from eeio_power.meters.drive_estimate import DriveEstimateMeter, PowerRanges
from eeio_power.reading import EnergyReading
from eeio_power.samples import MeterSamples, meter_info

SAMSUNG_980_PRO = [(849, 0, 0), (448, 0, 0), (318, 0, 0), (400, 1, 1), (50, 1, 1)]
"""max_power, max_power_scale, non-operational_state of `nvme id-ctrl`: 8.49, 4.48, 3.18, 0.04 and
0.005 W (AnandTech's review of the drive, article 16087, page 8; `nvme id-ctrl` printed the same
table in github.com/raspberrypi/rpi-eeprom/issues/805). It states neither idle nor active power."""
MEASURED_980_PRO_W = (2.50, 5.57)
"""The least and the most of a Samsung 980 PRO under random reads and writes at queue depth 1, so
with a request at all times: the plots of github.com/nlesc-recruit/powersensor3-results."""
WD_SN850X = [
    (900, 0, 0, 6300, 900), (600, 0, 0, 6300, 600), (450, 0, 0, 6300, 450),
    (250, 1, 1, 250, 0), (50, 1, 1, 50, 0),
]  # fmt: skip
"""With idle power (0.1 mW) and active power (10 mW) of each state
(github.com/FrameworkComputer/SoftwareFirmwareIssueTracker/issues/38)."""


class FakeDrive:
    """A drive's counters in /sys/block, and the clock that goes with them."""

    def __init__(self, root: Path, name: str = "nvme0n1", rotational: int = 0) -> None:
        self.root, self.name = root, name
        self.now_s = self.busy_s = 0.0
        write_tree(root, {f"sys/block/{name}/queue/rotational": rotational})
        self.work(0.0, 0.0)

    def work(self, lasted_s: float, busy: float) -> None:
        self.now_s += lasted_s
        self.busy_s += busy * lasted_s
        counters = f"9 0 72 3 8 0 64 2 0 {self.busy_s * 1000:.0f} 5 0 0 0 0 0 0"
        write_tree(self.root, {f"sys/block/{self.name}/stat": counters})

    def meter(self, ranges: PowerRanges) -> DriveEstimateMeter:
        stat = self.root / f"sys/block/{self.name}/stat"
        return DriveEstimateMeter("spec", self.name, stat, ranges, lambda: self.now_s)

    def reading(self, ranges: PowerRanges, busy: float) -> EnergyReading:
        """Of 10 s with such a load."""
        meter, times_s = self.meter(ranges), list[float]()
        columns: tuple[list[float], ...] = ([], [])
        for _ in range(120):
            self.work(0.1, busy)
            times_s.append(self.now_s)
            for column, value in zip(columns, meter.read(), strict=True):
                column.append(value or 0.0)
        (reading,) = MeterSamples(meter_info(meter, 10.0), times_s, columns).energy(
            times_s[9], times_s[109]
        )
        return reading


@pytest.fixture
def drive(tmp_path: Path) -> FakeDrive:
    return FakeDrive(tmp_path)


def table(folder: Path, states: list[Any], **changes: Any) -> Path:
    """As `nvme id-ctrl -o json` prints it."""
    psds: list[Mapping[str, Any]] = []
    for most, scale, sleeps, *further in states:
        idle, active = further or (0, 0)
        psds.append(
            {
                "max_power": most, "max_power_scale": scale, "non-operational_state": sleeps,
                "idle_power": idle, "idle_scale": int(idle > 0), "active_power": active,
                "active_scale": 2 * (active > 0), **changes,
            }
        )  # fmt: skip
    path = folder / "id-ctrl.json"
    path.write_text(json.dumps({"mn": "a drive", "psds": psds}))
    return path


def opened(drive: FakeDrive, options: str) -> DriveEstimateMeter:
    (meter,) = open_meters([f"drive_estimate:/dev/{drive.name}{options}"], drive.root)
    assert isinstance(meter, DriveEstimateMeter)
    return meter


def test_the_range_of_a_980_pro_contains_what_others_measured(drive: FakeDrive) -> None:
    ranges = opened(drive, f",table={table(drive.root, SAMSUNG_980_PRO)}").ranges
    assert ranges == PowerRanges(standby=0.005, idle=3.18, least=0.005, most=8.49)
    reading = drive.reading(ranges, busy=1.0)
    assert reading.power_w == pytest.approx(4.2475, rel=1e-5)
    assert reading.uncertainty_j is not None
    half_w = reading.uncertainty_j / 10.0
    assert half_w == pytest.approx(4.2425, rel=1e-2)
    for watts in MEASURED_980_PRO_W:
        assert abs(watts - reading.power_w) <= half_w


def test_stated_idle_power_narrows_the_range(drive: FakeDrive) -> None:
    ranges = opened(drive, f",table={table(drive.root, WD_SN850X)}").ranges
    assert ranges == pytest.approx(PowerRanges(0.005, 0.63, 0.63, 9.0))  # type: ignore[comparison-overlap]


@pytest.mark.parametrize("busy", [0.0, 0.25, 0.5, 1.0])
def test_the_estimate_never_exceeds_the_maximum(drive: FakeDrive, busy: float) -> None:
    for ranges in (PowerRanges(0.005, 0.63, 0.63, 9.0), *drive_estimate.CLASSES.values()):
        reading = drive.reading(ranges, busy)
        idle_w, busy_w = (ranges.standby + ranges.idle) / 2, (ranges.least + ranges.most) / 2
        expected_w = busy * busy_w + (1 - busy) * idle_w
        assert reading.valid and reading.power_w == pytest.approx(expected_w, rel=1e-3)
        assert reading.power_w <= ranges.most
        half_j = 10.0 * (
            busy * (ranges.most - ranges.least) + (1 - busy) * (ranges.idle - ranges.standby)
        ) / 2  # fmt: skip
        assert reading.uncertainty_j == pytest.approx(half_j, rel=0.05, abs=0.1)


def test_every_reading_is_an_estimate_and_not_ranked(drive: FakeDrive) -> None:
    reading = drive.reading(drive_estimate.CLASSES["3.5in"], busy=0.5)
    assert (reading.kind, reading.domain, reading.includes) == ("modelled", "device", ("drives",))
    runs = tuple(run(n, (phase(1e6, (reading,)),)) for n in range(3))
    report = build([Campaign(Path("a"), design("a", 3), MACHINE, (), None, runs)])
    (row,) = (row for row in report.rows if row.phase)
    assert row.measured is None and row.estimates and row["efficiency_bytes_per_j"] is None
    assert not to_json(report)["characterization"][0]["ranked"]
    for text in (render_terminal(document(report)), render_csv(document(report))):
        assert "ESTIMATE" in text
    assert "ESTIMATE" in page.render(report)
    assert any("1 to 7.5 W when idle" in reason for reason in reading.reasons)
    assert not [m for m in open_meters(["auto"], drive.root) if isinstance(m, DriveEstimateMeter)]


def test_more_busy_time_than_time_is_all_of_it(drive: FakeDrive) -> None:
    """The kernel counts in ticks."""
    meter = drive.meter(PowerRanges(1.0, 2.0, 2.0, 4.0))
    drive.work(1.0, 1.3)
    idle_j, busy_j = meter.read()
    assert (idle_j, busy_j) == (pytest.approx(0.0, abs=1e-5), pytest.approx(3.0, abs=1e-5))


def test_the_kernel_s_counter_begins_again_after_2_to_the_32_ms(drive: FakeDrive) -> None:
    drive.busy_s = (2**32 - 500) / 1000
    drive.work(0.0, 0.0)
    meter = drive.meter(PowerRanges(1.0, 2.0, 2.0, 4.0))
    drive.busy_s = 0.0
    drive.work(1.0, 0.25)
    assert meter.read()[1] == pytest.approx(0.75 * 3.0, abs=1e-5)


def test_the_drive_states_its_table(tmp_path: Path) -> None:
    drive = FakeDrive(tmp_path)
    (tmp_path / "dev").mkdir()
    states = [
        FakePowerState(most / (1e4 if scale else 1e2), 1.0, not sleeps)
        for most, scale, sleeps in SAMSUNG_980_PRO
    ]
    fake = FakeNvmeStates(tmp_path / "dev/nvme0", states)
    options = {"device": "/dev/nvme0n1"}
    meter = drive_estimate.open_meter("spec", options, drive.root, fake.ioctl)
    assert meter.ranges == PowerRanges(standby=0.005, idle=3.18, least=0.005, most=8.49)


def test_a_drive_that_rejects_identify_has_no_estimate(tmp_path: Path) -> None:
    drive = FakeDrive(tmp_path)
    write_tree(tmp_path, {"dev/nvme0": ""})
    with pytest.raises(PowerError, match=r"rejected Identify Controller \(status 0x4002\)"):
        drive_estimate.open_meter("spec", {"device": "/dev/nvme0n1"}, drive.root, lambda *_: 0x4002)


def test_watts_of_a_data_sheet(drive: FakeDrive) -> None:
    ranges = opened(drive, ",standby_w=0.05,idle_w=0.3,max_w=4").ranges
    assert ranges == PowerRanges(standby=0.05, idle=0.3, least=0.3, most=4.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", r"dev/nvme0: No such file or directory; run as root, or give table="),
        (",max_w=5", "give both, idle_w= and max_w="),
        (",idle_w=6,max_w=5", "must rise in this order"),
        (",idle_w=1,max_w=0", "max_w=0 is not a number above 0"),
        (",class=3.5in,max_w=5", "give class=, or table=, or watts"),
        (",class=8in", "class=8in is not one of 3.5in, 2.5in"),
    ],
)
def test_options_are_checked(drive: FakeDrive, options: str, message: str) -> None:
    with pytest.raises(PowerError, match=message):
        opened(drive, options)


def test_a_table_without_a_maximum_or_of_another_form_is_rejected(drive: FakeDrive) -> None:
    path = table(drive.root, SAMSUNG_980_PRO, max_power=0)
    with pytest.raises(PowerError, match="has no maximum power; give idle_w= and max_w="):
        opened(drive, f",table={path}")
    for text in ("{}", "[]", '{"psds": [{"max_power": "much"}]}'):
        path.write_text(text)
        with pytest.raises(PowerError, match="no power state table"):
            opened(drive, f",table={path}")


@pytest.mark.parametrize(
    ("target", "rotational", "message"),
    [
        ("devices/pci0000:00/usb2/2-1/host6/block/sda", 0, "sda is behind a USB bridge"),
        ("devices/pci0000:00/ata1/host0/block/sda", 1, "sda is a hard disk .* class=3.5in"),
        ("devices/pci0000:00/ata1/host0/block/sda", 0, "sda is not NVMe and states no powers"),
    ],
)
def test_a_drive_without_a_table_needs_its_watts(
    tmp_path: Path, target: str, rotational: int, message: str
) -> None:
    folder = write_tree(
        tmp_path / "sys" / target, {"queue/rotational": rotational, "stat": "0 " * 17}
    )
    (tmp_path / "sys/block").mkdir()
    (tmp_path / "sys/block/sda").symlink_to(folder)
    with pytest.raises(PowerError, match=message):
        open_meters(["drive_estimate:/dev/sda"], tmp_path)
    (meter,) = open_meters(["drive_estimate:/dev/sda,class=2.5in"], tmp_path)
    assert meter.kind == "modelled"


def test_no_drive_and_no_counter(drive: FakeDrive) -> None:
    with pytest.raises(PowerError, match="/dev/sdz is no drive"):
        open_meters(["drive_estimate:/dev/sdz"], drive.root)
    with pytest.raises(PowerError, match="which drive"):
        open_meters(["drive_estimate"], drive.root)
    write_tree(drive.root, {"sys/block/nvme0n1/stat": "1 2 3"})
    with pytest.raises(PowerError, match="has no busy time"):
        opened(drive, ",class=2.5in")


def test_a_campaign_that_is_a_measurement_needs_the_users_permission(
    eeio: Eeio, tmp_path: Path
) -> None:
    directory, meter = ("--directory", str(tmp_path)), "drive_estimate:/dev/null,class=3.5in"
    done = eeio("plan", "eeio-load", *directory, "--meter", meter, code=2)
    assert "an estimate, no measurement. Add --allow-estimates" in done.stderr
    for allowed in (("--allow-estimates",), ("--preset", "quick")):
        done = eeio("plan", "eeio-load", *directory, "--meter", meter, *allowed, code=None)
        assert "Add --allow-estimates" not in done.stderr
