"""`eeio drive states` of an NVMe drive that is simulated at its ioctl, on a loop device and a
simulated meter that draws what that drive would."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.processes import ran
from tests.simulators.nvme_states import STATES, FakeNvmeStates
from tests.simulators.powercap import FakeRapl
from tests.waiting import until

from eeio.errors import EeioError
from eeio.machine import nvme_power
from eeio.machine.nvme_power import NvmeController, controller_of
from eeio.measure.drives import effects
from eeio.measure.drives.effects import judged
from eeio.record.drive_states import StateReading
from eeio.record.energy_reading import EnergyReading
from eeio_power.samples import DomainPower

# Little of its own: a counter that a busy machine writes late is wrong by this power.
WATTS = 1.0


@pytest.fixture
def file(home: Path) -> Path:
    path = home / "controller"
    FakeNvmeStates(path)
    return path


def eeio(file: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return ran(
        [sys.executable, "-m", "tests.nvme_drive", str(file), "--", *arguments],
        env={**os.environ, **environment}, cwd=Path(__file__).parents[2], code=None,
    )  # fmt: skip


@pytest.fixture
def rapl(home: Path, file: Path) -> Iterator[FakeRapl]:
    fake = FakeNvmeStates(file)
    with FakeRapl(home / "rapl", power_w=lambda _: WATTS + fake.power_w()) as running:
        yield running


@pytest.fixture
def meter(rapl: FakeRapl) -> str:
    return f"rapl,root={rapl.root}"


def begun(file: Path) -> None:
    assert FakeNvmeStates(file).body() == {"state": 0, "operational": 0, "autonomous": 1}


# --- the protocol ---------------------------------------------------------------------------------


@pytest.fixture
def controller(file: Path, monkeypatch: pytest.MonkeyPatch) -> NvmeController:
    monkeypatch.setattr(nvme_power.fcntl, "ioctl", FakeNvmeStates(file, rejects=(1,)).ioctl)
    return NvmeController(file)


def test_states_are_as_the_drive_describes_them(controller: NvmeController) -> None:
    found = controller.states()
    assert [state.most_w for state in found] == pytest.approx([8.0, 4.0, 0.05, 0.005])
    assert [state.is_operational for state in found] == [True, True, False, False]
    assert (found[3].enter_s, found[3].leave_s) == pytest.approx((0.005, 0.02))
    assert controller.state() == 0 and controller.is_autonomous() is True


def test_what_is_set_is_proved_and_what_is_rejected_is_reported(controller: NvmeController) -> None:
    controller.set_state(3)
    controller.set_autonomous(False)
    assert controller.state() == 3 and controller.is_autonomous() is False
    with pytest.raises(EeioError, match="refuses Set Features 0x2"):
        controller.set_state(1)
    nvme_power.put_back(str(controller.node), "state 0")
    nvme_power.put_back(str(controller.node), "autonomous 1")
    assert controller.state() == 0 and controller.is_autonomous()


@pytest.mark.parametrize("value", ["", "state", "state x", "format 1", "state -1"])
def test_what_no_journal_contains_is_put_nowhere(controller: NvmeController, value: str) -> None:
    with pytest.raises(EeioError, match="not a state that an NVMe drive can be restored to"):
        nvme_power.put_back(str(controller.node), value)


def test_the_controller_of_a_disk(tmp_path: Path) -> None:
    for name in ("nvme0", "nvme-subsys0", "0:0:0:0"):
        (tmp_path / name).mkdir()
    for disk, device in (("nvme0n1", "nvme0"), ("nvme0c0n1", "nvme-subsys0"), ("sda", "0:0:0:0")):
        (tmp_path / disk).mkdir()
        (tmp_path / disk / "device").symlink_to(tmp_path / device)
    assert controller_of(tmp_path / "nvme0n1") == NvmeController(Path("/dev/nvme0"))
    assert controller_of(tmp_path / "sda") is None
    with pytest.raises(EeioError, match="several controllers"):
        controller_of(tmp_path / "nvme0c0n1")


# --- the command ----------------------------------------------------------------------------------


def swept(file: Path, loop: str, meter: str, **environment: str) -> tuple[int, dict[str, Any]]:
    done = eeio(
        file, "drive", "states", "--device", loop, "--meter", meter, "--seconds", "0.5",
        "--settle", "0",
        "--format", "json", **environment,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return done.returncode, {one["state"]: one for one in json.loads(done.stdout)["states"]}


@pytest.mark.root
def test_every_state_is_measured_and_put_back(
    file: Path,
    loop: str,
    rapl: FakeRapl,
    meter: str,
) -> None:
    code, found = swept(file, loop, meter)
    # A counter that is behind adds the power of another state, for as long, to the 0.5 s.
    late_w = 0.8 * (WATTS + STATES[0].power_w) * rapl.largest_lag_s / 0.5
    assert list(found) == [
        "ps0 reading", "ps0 idle", "ps1 reading", "ps1 idle",
        "ps2 idle", "ps2 waking", "ps3 idle", "ps3 waking",
    ]  # fmt: skip
    assert code in (0, 3)  # a wake of microseconds may be too short for a reading
    assert found["ps0 reading"]["bandwidth_bytes_per_s"] > 0
    for name, state in found.items():
        assert state["invalid"] is None
        if name.endswith("idle"):
            watts = WATTS + STATES[int(name[2])].power_w
            packages = [e["power_w"] for e in state["energy"] if e["domain"] == "package"]
            assert sum(packages) == pytest.approx(0.8 * watts, rel=0.3, abs=late_w)
    begun(file)


@pytest.mark.root
def test_a_state_that_is_rejected_and_one_that_nothing_wakes(
    file: Path,
    loop: str,
    meter: str,
) -> None:
    code, found = swept(file, loop, meter, NVME_REFUSES="1", NVME_CACHES="yes")
    assert code == 3 and "refuses Set Features" in found["ps1"]["invalid"]
    assert found["ps3 idle"]["invalid"] is None
    assert "a cache answered" in found["ps3 waking"]["invalid"]
    begun(file)


@pytest.mark.root
def test_a_pause_in_the_deepest_state(file: Path, loop: str, meter: str) -> None:
    done = eeio(
        file, "drive", "states", "--device", loop, "--meter", meter, "--gap", "0.4,0.8",
        "--repetitions",
        "3", "--seed", "1", "--format", "json",
    )  # fmt: skip
    body = json.loads(done.stdout)
    assert len(body["gaps"]) == 12 and all(one["invalid"] is None for one in body["gaps"])
    of_package = [one for one in body["break_even"] if one["domain"] == "package"]
    assert sum(one["saved_w"] for one in of_package) == pytest.approx(0.8 * 5, rel=0.5)
    begun(file)


@pytest.mark.root
def test_killed_in_a_state_it_is_put_back_by_restore(
    file: Path,
    loop: str,
    meter: str,
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.nvme_drive", str(file), "--", "drive", "states", "--device",
            loop,
         "--meter", meter, "--seconds", "60", "--settle", "0"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=Path(__file__).parents[2],
        # A killed process leaves its temporary folder.
        env={**os.environ, "TMPDIR": str(file.parent)},
    )  # fmt: skip
    until(lambda: not FakeNvmeStates(file).body()["autonomous"], process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = eeio(file, "doctor", "restore")
    assert done.returncode == 0 and "set the NVMe drive" in done.stdout + done.stderr
    begun(file)


@pytest.mark.root
def test_listing_changes_nothing(file: Path, loop: str) -> None:
    before = file.stat().st_mtime_ns
    done = eeio(file, "drive", "states", "--device", loop, "--list", "--format", "json")
    body = json.loads(done.stdout)
    assert done.returncode == 0 and len(body["power_states"]) == 4
    settings = {one["name"]: one for one in body["settings"]}
    assert settings["power state"]["value"] == "ps0"
    assert settings["autonomous transitions (APST)"]["value"] == "on"
    assert all(one["value"] is not None or one["reason"] for one in body["settings"])
    assert file.stat().st_mtime_ns == before
    table = eeio(file, "drive", "states", "--device", loop, "--list").stdout
    assert "as the drive describes them" in table and "Power saving features" in table


@pytest.mark.root
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--gap", "5", "--state", "9"), "no power state 9; it has 0 to 3"),
        (("--state", "3"), "go with --gap"),
    ],
)
def test_a_state_that_is_none(
    file: Path,
    loop: str,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    done = eeio(file, "drive", "states", "--device", loop, "--meter", "none", *arguments)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    begun(file)


# --- what a state changed -------------------------------------------------------------------------


def reading(state: str, power_w: float, *, invalid: str | None = None) -> StateReading:
    energy = EnergyReading(
        "device", "quarch", "measured", power_w, 10 * power_w, 0.5, 1.0, 0.001, 10000, 0, True, ()
    )
    return StateReading(state, 10.0, (energy,), invalid)


def test_a_state_that_is_accepted_and_changes_nothing_is_named() -> None:
    found = judged(
        [
            reading("ps0 reading", 5.0),
            reading("ps0 idle", 1.0),
            reading("ps1 reading", 4.99),
            reading("ps1 idle", 1.0),
            reading("ps2 reading", 3.0),
            reading("ps2 idle", 1.0),
            reading("ps3 idle", 0.98),
            reading("ps4 idle", 0.01),
        ]
    )
    remarks = {each.state: each.remark for each in found if each.remark is not None}
    assert set(remarks) == {"ps1 reading", "ps3 idle"}
    assert remarks["ps1 reading"] == (
        "the drive accepted the state, and the power of the device did not fall: 4.99 W after 5 W "
        "in ps0 reading"
    )


def test_a_refused_state_is_not_judged() -> None:
    found = judged(
        [
            reading("ps0 reading", 5.0),
            reading("ps1 reading", 5.0, invalid="the drive refuses it"),
            reading("ps2 reading", 2.0),
        ]
    )
    assert [each.remark for each in found] == [None, None, None]


@pytest.mark.parametrize(("period_s", "expected_s"), [(0.001, 0.25), (0.01, 0.25), (0.1, None)])
def test_the_time_of_entering_a_state_needs_a_fast_meter(
    period_s: float, expected_s: float | None
) -> None:
    times_s = [period_s * n for n in range(round(3 / period_s))]
    watts = [3.0 if at_s < 1.25 else 0.5 for at_s in times_s]
    over_time = DomainPower("device", times_s, watts)
    entered_s = effects.entry_s(over_time, 1.0, 0.5)
    assert entered_s == (None if expected_s is None else pytest.approx(expected_s, abs=period_s))


def test_power_that_did_not_fall_has_no_time_of_entering() -> None:
    times_s = [0.001 * n for n in range(3000)]
    assert effects.entry_s(DomainPower("device", times_s, [3.0] * 3000), 1.0, 3.0) is None
