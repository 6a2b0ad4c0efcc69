"""`eeio drive states`: power of a drive in its states; with --gap, the break-even idle time for
standby (gap.py)."""

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

from eeio.commands.drive import gap as pauses
from eeio.commands.output_file import document_format, output_file, pager_switch, write_document
from eeio.commands.restore import restore_orphans
from eeio.commands.waiting import wait_option
from eeio.errors import EXIT_DONE, EXIT_DONE_WITH_INVALID_RUNS, EeioError, RejectedError
from eeio.machine import nvme_power, power_saving
from eeio.machine.device import check_readable, check_unused
from eeio.machine.filesystem import BlockDevice
from eeio.machine.lock import drive_lock, machine_lock
from eeio.machine.nvme_power import NvmeController
from eeio.machine.power_saving import KEYS, Setting, settings
from eeio.machine.undo import UndoJournal
from eeio.measure.campaign.safety import checked_device
from eeio.measure.drives.listing import power_saving_of
from eeio.measure.drives.states import Measured, check_states, document, of_ata, of_nvme, of_setting
from eeio.measure.power import check_meters
from eeio.measure.restoring import restoring
from eeio.options import Command, argument, option, switch
from eeio.paths import temporary_folder
from eeio.record.drive_states import StateReading
from eeio.units import amounts
from eeio_power.monitor import PowerMonitor, open_source


@dataclass(frozen=True, kw_only=True)
class StatesRequest:
    """`eeio drive states`."""

    device: Path = option(
        "--device",
        value="DEV",
        parse=Path,
        required=True,
    )
    meter: tuple[str, ...] = option(
        "--meter",
        value="SPEC",
        help="power meter, repeatable (default: auto)",
        repeat=True,
    )
    seconds: float = option(
        "--seconds",
        value="S",
        help="time in each state (default: 30)",
        parse=float,
        default=30.0,
    )
    settle: float = option(
        "--settle",
        value="S",
        help="pause before each state (default: 10)",
        parse=float,
        default=10.0,
    )
    gap: tuple[float, ...] | None = option(
        "--gap",
        value="LIST",
        parse=pauses.seconds,
        help="pauses in seconds, e.g. 10,60,300; with and without power saving",
    )
    repetitions: int | None = option(
        "--repetitions",
        value="N",
        parse=amounts.repetitions,
        help=f"with --gap: repetitions of each pause (default: {pauses.REPETITIONS})",
    )
    state: int | None = option(
        "--state",
        value="N",
        parse=amounts.seed,
        help="with --gap: NVMe power state for saving (default: the deepest)",
    )
    seed: int | None = option(
        "--seed", value="N", parse=amounts.seed, help="with --gap: repeat a random order"
    )
    words: tuple[str, ...] = argument(
        "-- COMMAND",
        count="...",
        help="with --gap: work before and after each pause (default: read 16 MiB)",
    )
    setting: str | None = option(
        "--setting",
        help="measure at each value of this kernel setting instead (see --list)",
        choices=KEYS,
    )
    list: bool = switch(
        "--list",
        help="only list power-saving states and settings with their values",
    )
    wait: float | None = wait_option()
    format: str = document_format()
    output: Path | None = output_file()
    no_pager: bool = pager_switch()


def states(request: StatesRequest) -> int:
    if request.gap is not None:
        return pauses.gaps(request, request.gap)
    further = (request.repetitions, request.seed, request.state)
    if request.words or further != (None, None, None):
        raise RejectedError("a COMMAND, --repetitions, --seed and --state go with --gap")
    node = checked_device(request.device)
    if request.list:
        write_document(request, power_saving_of(node, check_readable(node)))
        return EXIT_DONE
    device = check_unused(node)
    check_meters(request.meter)
    if not 0 < request.seconds < math.inf or not 0 <= request.settle < math.inf:
        raise RejectedError("--seconds is above 0, --settle not below")
    try:
        setting = _setting(device, request.setting)
        controller = None
        if not setting:
            controller = nvme_power.controller_of(device.disk_sysfs)
        if controller is not None:
            check_states(node, controller)
        elif setting is None:
            power_saving.state_of(node)
    except EeioError as error:
        raise RejectedError(f"not measured: {error}") from error
    source = open_source(request.meter, False)
    if source.reason is not None:
        raise RejectedError(f"not measured: {source.reason}")
    with (
        machine_lock(shared=False),
        drive_lock(device.disk_sysfs.name),
        tempfile.TemporaryDirectory(prefix="eeio-", dir=temporary_folder()) as folder,
        PowerMonitor(source, Path(folder) / "power.csv.gz") as power,
    ):
        drive = Measured(node, request.seconds, request.settle, power)
        readings = _measured(drive, setting or controller)
    write_document(request, document(node, readings))
    valid = all(r.invalid is None and all(e.valid for e in r.energy) for r in readings)
    if valid:
        return EXIT_DONE
    return EXIT_DONE_WITH_INVALID_RUNS


def _setting(device: BlockDevice, key: str | None) -> Setting | None:
    """The requested one. EeioError if this drive has none of it."""
    if key is None:
        return None
    setting = next(known for known in settings(device.disk_sysfs) if known.key == key)
    if setting.value is None:
        raise EeioError(f"{setting.name}: {setting.reason}")
    return setting


def _measured(drive: Measured, of: NvmeController | Setting | None) -> list[StateReading]:
    if of is None:
        return of_ata(drive)
    restore_orphans()  # settings left by a killed run would be taken for the original ones
    journal = UndoJournal()
    with restoring(journal):
        if isinstance(of, Setting):
            return of_setting(of, drive, journal)
        return of_nvme(of, drive, journal)


COMMAND = Command(
    "states",
    StatesRequest,
    states,
    help="measure drive power: active, idle, standby, spin-up",
    description="Measures the power of each state of a drive (docs/studies/). ATA drives: "
    "active (sequential reads), idle, standby, and the energy of the spin-up at the next "
    "read. NVMe drives: each power state, reading, idling and waking. The drive is only "
    "read, and must not be mounted (--gap with a command allows it). --gap measures a pause "
    "and the work after it, with and without standby, and reports the break-even idle time.",
)
