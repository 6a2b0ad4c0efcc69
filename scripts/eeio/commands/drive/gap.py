"""`eeio drive states --gap`: work, a pause, work, with the drive's power saving and without."""

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from eeio import terminal
from eeio.commands import campaign_options
from eeio.commands.restore import restore_orphans
from eeio.drives import gap as power_gap
from eeio.drives.gap import GapReading, Saved
from eeio.errors import EXIT_DONE, EXIT_DONE_WITH_INVALID_RUNS, EXIT_FAILED, RejectedError
from eeio.power import check_meters
from eeio.restoring import restoring
from eeio.system.device import check_readable, check_unused
from eeio.system.lock import drive_lock, machine_lock
from eeio.system.power_saving import drive_at
from eeio.system.undo import UndoJournal
from eeio_power.monitor import PowerMonitor, open_source
from eeio_results.errors import EeioError
from eeio_results.record import mark as mark_of
from eeio_results.report.columns import number
from eeio_results.report.parts import Table
from eeio_results.report.text import render_table

SCHEMA_VERSION = 1

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
    node: Path = arguments.device
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
            tempfile.TemporaryDirectory(prefix="eeio-") as folder,
            PowerMonitor(source, Path(folder) / "power.csv.gz") as power,
            restoring(journal) as failures,
        ):
            found = power_gap.measure(drive, arguments.gap, repetitions, work, power, journal, seed)
    of_meters = power_gap.saved(found)
    if arguments.format == "json":
        body = {
            "schema_version": SCHEMA_VERSION,
            "device": str(node),
            "seed": seed,
            "gaps": [asdict(reading) for reading in found],
            "break_even": [
                {"domain": s.domain, "meter": s.meter, "kind": s.kind, **asdict(s.found)}
                for s in of_meters
            ],
        }
        print(json.dumps(body, indent=1))
    else:
        print(_table(node, found, of_meters))
    if failures:
        return EXIT_FAILED
    valid = all(r.invalid is None and all(e.valid for e in r.energy) for r in found)
    return EXIT_DONE if valid else EXIT_DONE_WITH_INVALID_RUNS


def _seconds(text: str) -> tuple[float, ...]:
    return tuple(float(word.removesuffix("s")) for word in text.split(","))


def _table(node: Path, found: Sequence[GapReading], of_meters: Sequence[Saved]) -> str:
    rows = []
    for saving in of_meters:
        for gap_s in sorted({reading.gap_s for reading in found}):
            rows += [_row(saving, gap_s, with_saving, found) for with_saving in (False, True)]
    header = ("Domain", "Pause (s)", "Standing by", "n", "Energy (J)", "Work (s)")
    notes = [
        "energy of the pause and the work after it, means; "
        "work: the time that it took, a spin-up included",
        *(_cell(one) for one in of_meters),
        *dict.fromkeys(
            f"not used: pause {r.gap_s:g} s, repetition {r.repetition}: {r.invalid}"
            for r in found
            if r.invalid is not None
        ),
        *dict.fromkeys(
            f"not used: pause {r.gap_s:g} s, repetition {r.repetition}: {reason}"
            for r in found
            for e in r.energy
            if not e.valid or e.doubtful
            for reason in e.reasons
        ),
    ]
    table = Table(
        f"Pauses of {node} with power saving and without",
        header, tuple(rows), frozenset((1, 3, 4, 5)), "\n".join(notes),
    )  # fmt: skip
    return render_table(table, terminal.width())


def _row(
    of_meter: Saved, gap_s: float, with_saving: bool, found: Sequence[GapReading]
) -> tuple[str, ...]:
    taken = [
        (energy.energy_j, reading.work_s)
        for reading in found
        if (reading.gap_s, reading.saving) == (gap_s, with_saving) and reading.invalid is None
        for energy in reading.energy
        if (energy.domain, energy.meter) == (of_meter.domain, of_meter.meter)
        and energy.valid
        and not energy.doubtful
        and energy.energy_j is not None
    ]
    mark = mark_of(of_meter.kind)
    return (
        f"{mark}{of_meter.domain} ({of_meter.meter})",
        f"{gap_s:g}",
        "yes" if with_saving else "no",
        str(len(taken)),
        number(statistics.fmean(joules for joules, _ in taken)) if taken else "-",
        number(statistics.fmean(work_s for _, work_s in taken)) if taken else "-",
    )


def _cell(of_meter: Saved) -> str:
    found, name = of_meter.found, f"{of_meter.domain} ({of_meter.meter})"
    if found.pause_s is None:
        return f"break-even of {name}: none; {found.reason}"
    assert found.low_s is not None and found.high_s is not None
    assert found.saved_w is not None and found.cost_j is not None
    beyond = ", beyond the pauses that were measured" if found.beyond else ""
    return (
        f"break-even of {name}: {number(found.pause_s)} s [{number(found.low_s)} - "
        f"{number(found.high_s)}]{beyond}: standing by saves {number(found.saved_w)} W and costs "
        f"{number(found.cost_j)} J, n {found.n}"
    )
