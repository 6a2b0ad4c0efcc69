"""Power of a drive in its states: reading, idling, standby and waking up; of an ATA drive, of an
NVMe drive, and at each value of a setting of the kernel."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from eeio.errors import EeioError
from eeio.machine import nvme_power, power_saving
from eeio.machine.caches import read_direct
from eeio.machine.filesystem import BlockDevice
from eeio.machine.nvme_power import NvmeController
from eeio.machine.power_saving import Setting
from eeio.machine.undo import UndoEntry, UndoJournal
from eeio.measure.drives.effects import entered, judged
from eeio.measure.power import recorded
from eeio.record.drive_states import SCHEMA_VERSION, StateReading
from eeio.record.run import EnergyReading, mark
from eeio.record.windows import known
from eeio.report.document import Document
from eeio.report.table_and_plot import Table
from eeio.units.number_text import number
from eeio.units.sizes import MB
from eeio_power.monitor import PowerMonitor

_SECTOR_BYTES = 4096


@dataclass(frozen=True)
class Measured:
    """Which drive is measured, for `seconds` in each state, after `settle_s`."""

    node: Path
    seconds: float
    settle_s: float
    power: PowerMonitor

    def settle(self) -> None:
        time.sleep(self.settle_s)

    def reading(self, state: str) -> StateReading:
        """The drive is read from its beginning, over and over, past the page cache."""

        def read() -> int:
            end_s = time.monotonic() + self.seconds
            moved = 0
            while time.monotonic() < end_s:
                moved += read_direct(self.node, None, end_s=end_s)
            return moved

        return self._during(state, read)

    def idle(self, state: str) -> StateReading:
        return self._during(state, lambda: time.sleep(self.seconds))

    def waking(self, state: str) -> StateReading:
        """The first read after idling: how long it takes is the latency of waking."""
        return self._during(state, self.wake)

    def wake(self) -> None:
        """Reads a sector, which any drive has to be awake for."""
        read_direct(self.node, _SECTOR_BYTES)

    def _during(self, state: str, act: Callable[[], int | None]) -> StateReading:
        """`act` returns how much it read, None where that is not the question."""
        self.power.mark()
        start_s = time.monotonic()
        moved = act()
        end_s = time.monotonic()
        self.power.mark()
        energy = tuple(map(known, recorded(self.power.energy(start_s, end_s))))
        lasted_s = end_s - start_s
        bandwidth_bytes_per_s = None
        if moved:
            bandwidth_bytes_per_s = moved / lasted_s
        return StateReading(state, lasted_s, energy, None, bandwidth_bytes_per_s)


def of_drive(drive: Measured, device: BlockDevice, journal: UndoJournal) -> list[StateReading]:
    """All states of an NVMe or ATA drive; EeioError if it has none that can be set."""
    controller = nvme_power.controller_of(device.disk_sysfs)
    if controller is None:
        power_saving.state_of(drive.node)
        return of_ata(drive)
    check_states(drive.node, controller)
    return of_nvme(controller, drive, journal)


def check_states(node: Path, controller: NvmeController) -> None:
    """EeioError if there are no states to compare."""
    if len(controller.states()) == 1:
        raise EeioError(f"{node}: it has only one power state, so there is none to compare")


def of_ata(drive: Measured) -> list[StateReading]:
    """Active, idle, standby, and the spin-up at the next read."""
    drive.wake()
    drive.settle()
    readings = [drive.reading("active")]
    drive.settle()
    readings.append(_ata_idle(drive))
    try:
        power_saving.put_into_standby(drive.node)
    except EeioError as error:
        return [*readings, *(StateReading(s, 0.0, (), str(error)) for s in ("standby", "spin-up"))]
    drive.settle()
    standby = _ata_proved(drive, drive.idle("standby"), power_saving.STANDBY)
    # Answers from the drive's cache do not spin it up.
    spin_up = _ata_proved(drive, drive.waking("spin-up"), power_saving.IDLE)
    return [*readings, standby, replace(spin_up, invalid=standby.invalid or spin_up.invalid)]


def _ata_idle(drive: Measured) -> StateReading:
    """Drives with several idle states go from one to the next by themselves: the row bears the name
    of the one it was measured in, and one in which that changed is of none."""
    before = power_saving.state_of(drive.node)
    name = before
    if before == "active/idle":
        name = "idle"
    reading = drive.idle(name)
    after = power_saving.state_of(drive.node)
    if after == before and before in power_saving.IDLE:
        return reading
    if after == before:
        return replace(reading, state="idle", invalid=f"the drive was {after} while it idled")
    reason = f"the drive went from {before} to {after} meanwhile; a longer --settle waits for that"
    return replace(reading, state="idle", invalid=reason)


def _ata_proved(drive: Measured, reading: StateReading, wanted: tuple[str, ...]) -> StateReading:
    """The state must still be the same at the end: anything may have woken the drive."""
    at_end = power_saving.state_of(drive.node)
    if at_end in wanted:
        return reading
    return reading.because(f"the drive was {at_end} at the end of {reading.state}")


def of_nvme(
    controller: NvmeController, drive: Measured, journal: UndoJournal
) -> list[StateReading]:
    """All states, the one with the most power first; a state that the drive refuses is told so.
    Autonomous transitions are off meanwhile. Its state and they are put back."""
    node, readings = controller.node, []

    def proved(reading: StateReading, number: int) -> StateReading:
        """The state must still be the same at the end."""
        at_end = controller.state()
        if at_end == number:
            return reading
        return reading.because(f"the drive was in ps{at_end} at the end of {reading.state}")

    with ExitStack() as stack:
        before = controller.state()
        entry = UndoEntry("nvme", str(node), f"state {before}").of_drive(node)
        stack.enter_context(journal.recorded(entry))
        if controller.is_autonomous():
            entry = UndoEntry("nvme", str(node), "autonomous 1").of_drive(node)
            stack.enter_context(journal.recorded(entry))
            controller.set_autonomous(False)
        for state in controller.states():
            name, number = f"ps{state.number}", state.number
            set_s = time.monotonic()
            try:
                controller.set_state(number)
            except EeioError as error:
                readings.append(StateReading(name, 0.0, (), str(error)))
                continue
            drive.settle()
            if state.is_operational:
                readings.append(proved(drive.reading(f"{name} reading"), number))
                drive.settle()
                readings.append(proved(drive.idle(f"{name} idle"), number))
                continue
            idle = proved(drive.idle(f"{name} idle"), number)
            idle = entered(idle, set_s, drive.power)
            waking = drive.waking(f"{name} waking")
            if idle.invalid is not None:
                waking = waking.because(idle.invalid)
            elif controller.state() == number:
                waking = waking.because("the read did not wake it: a cache answered")
            readings += [idle, waking]
    return judged(readings)


def of_setting(setting: Setting, drive: Measured, journal: UndoJournal) -> list[StateReading]:
    """At each value; those that the kernel or the drive refuses are told so. The first read after
    idling is what the setting may make late: its duration is the latency."""
    readings = []
    for value in setting.choices:
        name = f"{setting.key}={value}"
        try:
            with setting.set_to(value, journal):
                drive.settle()
                readings += [
                    drive.reading(f"{name} reading"),
                    drive.idle(f"{name} idle"),
                    drive.waking(f"{name} first read"),
                ]
        except EeioError as error:
            readings.append(StateReading(name, 0.0, (), str(error)))
    return readings


def document(node: Path, found: list[StateReading]) -> Document:
    """A row for each state and domain of a meter."""
    rows = []
    records: list[dict[str, Any]] = []
    for reading in found:
        rate = reading.bandwidth_bytes_per_s
        for energy in reading.energy or (None,):
            rate_text = "-"
            if rate is not None:
                rate_text = number(rate / MB)
            rows.append(
                (
                    reading.state,
                    f"{reading.duration_s:.4g}",
                    rate_text,
                    mark(energy.kind) + energy.domain if energy else "-",
                    number(energy.power_w) if energy and energy.power_w is not None else "-",
                    number(energy.energy_j) if energy and energy.energy_j is not None else "-",
                    _note(reading, energy),
                )
            )
            records.append(
                {
                    "device": str(node),
                    "state": reading.state,
                    "duration_s": reading.duration_s,
                    "bandwidth_bytes_per_s": rate,
                    "entered_s": reading.entered_s,
                    "remark": reading.remark,
                    **energy_columns(energy, reading.invalid),
                }
            )
    header = ("State", "Length (s)", "MB/s", "Domain", "Power (W)", "Energy (J)", "Note")
    title = f"Power states of {node}"
    return Document(
        title,
        (Table(title, header, tuple(rows), frozenset((1, 2, 4, 5))),),
        lambda: {
            "schema_version": SCHEMA_VERSION,
            "device": str(node),
            "states": [asdict(reading) for reading in found],
        },
        lambda: records,
    )


def _note(reading: StateReading, energy: EnergyReading | None) -> str:
    notes = [reading.invalid or ""]
    if reading.invalid is None and energy is not None:
        notes = list(energy.reasons[:1])
    if reading.remark is not None:
        notes.append(reading.remark)
    if reading.entered_s is not None:
        notes.append(f"entered after {1e3 * reading.entered_s:.3g} ms")
    return "; ".join(notes)


def energy_columns(energy: EnergyReading | None, invalid: str | None) -> dict[str, Any]:
    """Columns of a CSV: the energy of a window, empty without one, and why it counts for nothing;
    `invalid` is the reason of the window itself."""
    reasons = [*([invalid] if invalid else []), *(energy.reasons if energy else ())]
    valid = invalid is None and energy is not None and energy.valid
    if energy is None:
        return {"valid": valid, "reasons": "; ".join(reasons)}
    return {
        "domain": energy.domain,
        "meter": energy.meter,
        "energy_kind": energy.kind,
        "power_w": energy.power_w,
        "energy_j": energy.energy_j,
        "uncertainty_j": energy.uncertainty_j,
        "valid": valid,
        "doubtful": energy.doubtful,
        "reasons": "; ".join(reasons),
    }
