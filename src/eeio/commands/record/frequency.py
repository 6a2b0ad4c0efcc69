"""`eeio record frequency`: processor frequencies, and a program run at one of them."""

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from eeio.commands.arguments import program_of
from eeio.commands.output_file import format_option
from eeio.commands.restore import restore_orphans
from eeio.errors import EXIT_DONE, EXIT_FAILED, EXIT_SIGNAL_BASE, RejectedError
from eeio.machine import frequency as frequencies
from eeio.machine.frequency import Processors
from eeio.machine.lock import drive_lock
from eeio.machine.undo import UndoJournal
from eeio.measure import foreground
from eeio.measure.restoring import restoring
from eeio.options import Command, argument, option

SCHEMA_VERSION = 1

_ENDS = ("lowest", "highest")


@dataclass(frozen=True, kw_only=True)
class FrequencyRequest:
    """`eeio record frequency`."""

    wanted: str | None = option(
        "--set",
        value="HZ",
        help="frequency: 1.6GHz, 1600MHz, 1600000000, lowest or highest",
    )
    sysfs_root: Path = option(
        "--sysfs-root",
        value="DIR",
        help="use the tree under DIR instead of / (for testing)",
        parse=Path,
        default=Path("/"),
        rare=True,
    )
    format: str = format_option()
    words: tuple[str, ...] = argument(
        "-- COMMAND",
        count="...",
    )


def frequency(request: FrequencyRequest) -> int:
    command = program_of(request.words)
    root = request.sysfs_root.resolve()
    wanted = request.wanted
    if bool(command) != (wanted is not None):
        raise RejectedError("a frequency and a program go together: --set HZ -- COMMAND")
    if wanted is None:
        described = frequencies.describe(root)
        print(_to_json(described) if request.format == "json" else _lines(described))
        return EXIT_DONE
    wanted_hz = None
    if wanted not in _ENDS:
        wanted_hz = frequencies.parse_hz(wanted)
    if shutil.which(command[0]) is None:
        raise RejectedError(f"{command[0]}: no such program")
    with drive_lock(frequencies.lock_name(root)):
        restore_orphans()  # settings left by a killed run would be taken for the original ones
        if wanted_hz is not None:
            frequencies.check_reachable(wanted_hz, root)
        return _run(command, wanted, wanted_hz, root, request.format == "json")


def _run(
    command: Sequence[str], name: str, wanted_hz: int | None, root: Path, as_json: bool
) -> int:
    journal = UndoJournal()
    with restoring(journal) as failures:
        frequencies.prepare(journal, root)
        if wanted_hz is None:
            # Only now: with turbo off the highest may be another one.
            wanted_hz = frequencies.steps_hz(root)[0 if name == "lowest" else -1]
        frequencies.set_frequency(wanted_hz, journal, root)
        achieved = frequencies.verify(wanted_hz, root)
        print(f"eeio: {achieved.text}", file=sys.stderr)
        exit_code = foreground.run(command, journal, to_stderr=as_json)
    if as_json:
        body = {"schema_version": SCHEMA_VERSION, **asdict(achieved), "exit_code": exit_code}
        print(json.dumps(body, indent=1))
    if exit_code < 0:
        return EXIT_SIGNAL_BASE - exit_code
    if exit_code == 0 and not failures:
        return EXIT_DONE
    return EXIT_FAILED


def _to_json(found: Processors) -> str:
    return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(found)}, indent=1)


def _lines(found: Processors) -> str:
    return "\n".join(
        (
            f"driver:    {found.driver}",
            f"governor:  {', '.join(found.governors)}",
            f"steps:     {' '.join(f'{hz / 1e9:.6g}' for hz in found.steps_hz)} GHz",
            f"turbo:     {found.turbo or 'unknown: no switch is shown'}",
            f"SMT:       {found.smt or 'unknown: no switch is shown'}",
            f"policies:  {found.policies}",
        )
    )


COMMAND = Command(
    "frequency",
    FrequencyRequest,
    frequency,
    help="run a program at one processor frequency, or list frequencies",
    description="Lists the processor frequencies. With --set, runs a program with all "
    "processors at one frequency, turbo and SMT off, and restores the settings afterwards "
    "(after SIGKILL: `eeio doctor restore`).",
)
