"""`eeio drive states --gap`: work, a pause, work, with the drive's power saving and without."""

import argparse
import shutil
import tempfile
from pathlib import Path

from eeio.commands import campaign_options
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
from eeio_power.monitor import PowerMonitor, open_source

_REPETITIONS = 5


def add(parser: argparse.ArgumentParser) -> None:
    """The options of `eeio drive states` that are of a pause."""
    parser.add_argument(
        "--gap", metavar="LIST", type=_seconds,
        help="pauses in seconds, e.g. 10,60,300; with and without power saving",
    )  # fmt: skip
    parser.add_argument(
        "--repetitions", metavar="N", type=campaign_options.repetitions,
        help=f"with --gap: repetitions of each pause (default: {_REPETITIONS})",
    )  # fmt: skip
    parser.add_argument(
        "--state", metavar="N", type=campaign_options.seed,
        help="with --gap: NVMe power state for saving (default: the deepest)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", metavar="N", type=campaign_options.seed, help="with --gap: repeat a random order"
    )
    parser.add_argument(
        "words", metavar="-- COMMAND", nargs=argparse.REMAINDER,
        help="with --gap: work before and after each pause (default: read 16 MiB)",
    )  # fmt: skip


def is_requested(arguments: argparse.Namespace) -> bool:
    """RejectedError for options that require --gap."""
    if arguments.gap is None:
        further = (arguments.repetitions, arguments.seed, arguments.state)
        if arguments.words or any(one is not None for one in further):
            raise RejectedError("a COMMAND, --repetitions, --seed and --state go with --gap")
        return False
    return True


def gaps(arguments: argparse.Namespace) -> int:
    node = checked_device(arguments.device)
    command = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    repetitions = arguments.repetitions or _REPETITIONS
    # A command may work on a file system of the drive.
    device = check_readable(node) if command else check_unused(node)
    check_meters(tuple(arguments.meter))
    if command and shutil.which(command[0]) is None:
        raise RejectedError(f"{command[0]}: no such program")
    try:
        power_gap.check_gaps(arguments.gap, repetitions)
        drive = drive_at(node, device.disk_sysfs, arguments.state)
        drive.state()
    except EeioError as error:
        raise RejectedError(f"not measured: {error}") from error
    source = open_source(tuple(arguments.meter), False)
    if source.reason is not None:
        raise RejectedError(f"not measured: {source.reason}")
    seed = campaign_options.drawn(arguments.seed)
    with machine_lock(shared=False), drive_lock(device.disk_sysfs.name):
        restore_orphans()  # settings left by a killed run would be taken for the original ones
        journal = UndoJournal()
        work = (
            power_gap.command(command, node, device, journal)
            if command
            else power_gap.reads(node, device)
        )
        with (
            tempfile.TemporaryDirectory(prefix="eeio-", dir=temporary_folder()) as folder,
            PowerMonitor(source, Path(folder) / "power.csv.gz") as power,
            restoring(journal) as failures,
        ):
            found = power_gap.measure(drive, arguments.gap, repetitions, work, power, journal, seed)
            accuracies = power_gap.accuracies(power.infos)
    write_document(arguments, power_gap.document(node, found, seed, accuracies))
    if failures:
        return EXIT_FAILED
    valid = all(r.invalid is None and all(e.valid for e in r.energy) for r in found)
    return EXIT_DONE if valid else EXIT_DONE_WITH_INVALID_RUNS


def _seconds(text: str) -> tuple[float, ...]:
    return tuple(float(word.removesuffix("s")) for word in text.split(","))
