"""`eeio drive states --gap`: work, a pause, work, with the drive's power saving and without."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eeio.commands.arguments import program_of
from eeio.commands.output_file import write_document
from eeio.commands.restore import restore_orphans
from eeio.errors import (
    EXIT_DONE,
    EXIT_DONE_WITH_INVALID_RUNS,
    EXIT_FAILED,
    EeioError,
    RejectedError,
)
from eeio.machine.device import check_readable, check_unused
from eeio.machine.lock import drive_lock, machine_lock
from eeio.machine.power_saving import drive_at
from eeio.machine.undo import UndoJournal
from eeio.measure.campaign.safety import checked_device
from eeio.measure.drives import gap as power_gap
from eeio.measure.power import check_meters
from eeio.measure.restoring import restoring
from eeio.paths import temporary_folder
from eeio.record.design import drawn_seed
from eeio_power.monitor import PowerMonitor, open_source

if TYPE_CHECKING:
    from eeio.commands.drive.states import StatesRequest

REPETITIONS = 5
"""Of each pause, without --repetitions."""


def gaps(request: "StatesRequest", pauses_s: Sequence[float]) -> int:
    node = checked_device(request.device)
    command = program_of(request.words)
    repetitions = request.repetitions or REPETITIONS
    # A command may work on a file system of the drive.
    device = check_readable(node) if command else check_unused(node)
    check_meters(request.meter)
    if command and shutil.which(command[0]) is None:
        raise RejectedError(f"{command[0]}: no such program")
    try:
        power_gap.check_gaps(pauses_s, repetitions)
        drive = drive_at(node, device.disk_sysfs, request.state)
        drive.state()
    except EeioError as error:
        raise RejectedError(f"not measured: {error}") from error
    source = open_source(request.meter, False)
    if source.reason is not None:
        raise RejectedError(f"not measured: {source.reason}")
    seed = request.seed
    if seed is None:
        seed = drawn_seed()
    with machine_lock(shared=False), drive_lock(device.disk_sysfs.name):
        restore_orphans()  # settings left by a killed run would be taken for the original ones
        journal = UndoJournal()
        if command:
            work = power_gap.command(command, node, device, journal)
        else:
            work = power_gap.reads(node, device)
        with (
            tempfile.TemporaryDirectory(prefix="eeio-", dir=temporary_folder()) as folder,
            PowerMonitor(source, Path(folder) / "power.csv.gz") as power,
            restoring(journal) as failures,
        ):
            measured = power_gap.measure(drive, pauses_s, repetitions, work, power, journal, seed)
            accuracies = power_gap.accuracies(power.infos)
    write_document(request, power_gap.document(node, measured, seed, accuracies))
    if failures:
        return EXIT_FAILED
    valid = all(r.invalid is None and all(e.valid for e in r.energy) for r in measured)
    if valid:
        return EXIT_DONE
    return EXIT_DONE_WITH_INVALID_RUNS


def seconds(text: str) -> tuple[float, ...]:
    return tuple(float(word.removesuffix("s")) for word in text.split(","))
