"""`eeio profile new`: a command of one's own as a test profile."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from eeio.errors import EXIT_DONE, RejectedError
from eeio.measure.new_profile import make
from eeio.measure.new_profile import request as workloads
from eeio.measure.new_profile.request import Workload
from eeio.measure.profiles import profile as profiles
from eeio.options import Command, argument, option
from eeio.paths import check_output_folder
from eeio.record import tools
from eeio.record.tools import _figures
from eeio.units import amounts

_VARIABLE = "EEIO_TEST_PROFILES"


@dataclass(frozen=True, kw_only=True)
class NewRequest:
    """`eeio profile new`."""

    name: str = argument(
        "NAME",
        help="lower-case letters and digits: eeio-NAME-1.0.0",
    )
    folder: str | None = option(
        "--folder",
        value="DIR",
        help=f"parent folder of the profile (default: first of {_VARIABLE})",
    )
    factor: tuple[str, ...] = option(
        "--factor",
        value="NAME=A,B",
        help="values of {NAME} in the command; first is the default; repeatable",
        repeat=True,
    )
    figure: str | None = option(
        "--figure",
        value="REGEX",
        help="pattern of the result in the output, with one group",
    )
    unit: str | None = option(
        "--unit",
        value="UNIT",
        help=f"unit of the result: {', '.join(_figures.UNITS)}",
        choices=_figures.UNITS,
    )
    bytes: str | None = option(
        "--bytes",
        value="REGEX|SIZE",
        help="moved bytes: pattern in the output, size or {factor}; needed for MB/J",
    )
    operation: str = option(
        "--operation",
        help="storage operation (default: %(default)s)",
        choices=workloads.OPERATIONS,
        default="mixed",
    )
    spatiality: str = option(
        "--spatiality",
        help="access pattern (default: %(default)s)",
        choices=workloads.SPATIALITIES,
        default="mixed",
    )
    buffer: str = option(
        "--buffer",
        help="page cache use (default: %(default)s)",
        choices=("on", "off"),
        default="on",
    )
    flush: str = option(
        "--flush",
        help="flush policy for writes (default: %(default)s)",
        choices=workloads.FLUSHES,
        default="none",
    )
    level: str = option(
        "--level",
        help="level of the I/O stack (default: %(default)s)",
        choices=(workloads.LEVEL,),
        default=workloads.LEVEL,
    )
    prepare: str = option(
        "--prepare",
        value="COMMAND",
        help="shell command before each run, not measured",
        default="",
    )
    footprint: str = option(
        "--footprint",
        value="SIZE",
        help="maximum size of its files, for the plan",
        default="",
    )
    timeout: float = option(
        "--timeout",
        value="S",
        help="time limit of a run (default: %(default)g)",
        parse=amounts.pause,
        default=3600.0,
    )
    suite: str | None = option(
        "--suite",
        value="DIR",
        help="also create a suite with all factor combinations",
    )
    program: tuple[str, ...] = ()


def new_profile(request: NewRequest) -> int:
    workload = _workload(request)
    workload.check()
    folder = _folder(request.folder)
    _check_free(workload)
    target = folder / workload.profile
    suite = None
    if request.suite is not None:
        suite = Path(request.suite).absolute()
    if suite is not None and (suite.exists() or suite == target):
        raise RejectedError(f"{suite} exists and is not overwritten")
    if suite is not None:
        check_output_folder(suite.parent)  # before the profile is made
    make.write(target, make.profile_files(workload))
    print(f"profile {target}")
    if suite is not None:
        make.write(suite, make.suite_files(workload))
        print(f"suite {suite}")
    known = [Path(entry).absolute() for entry in os.environ.get(_VARIABLE, "").split(":") if entry]
    if folder not in known:
        print(f"next: export {_VARIABLE}={shlex.quote(str(folder))}${{{_VARIABLE}:+:${_VARIABLE}}}")
    if suite is not None:
        print(f"next: eeio run {shlex.quote(str(suite))} --preset quick --directory DIR")
    return EXIT_DONE


def _workload(request: NewRequest) -> Workload:
    if (request.figure is None) != (request.unit is None):
        raise RejectedError(
            "--figure and --unit belong together: a number without its unit is none, such as "
            "--figure '([0-9.]+) MB/s' --unit MB/s"
        )
    figure = None
    if request.figure is not None and request.unit is not None:
        figure = (request.figure, request.unit)
    factors: dict[str, tuple[str, ...]] = {}
    for text in request.factor:
        name, values = workloads.factor(text)
        if name in factors:
            raise RejectedError(f"--factor {name} is repeated: give all its values at once")
        factors[name] = values
    if not 1 <= request.timeout <= 604800:
        raise RejectedError(f"--timeout {request.timeout:g}: from 1 s to a week, 604800")
    return Workload(
        name=request.name,
        command=request.program,
        factors=factors,
        operation=request.operation,
        spatiality=request.spatiality,
        buffer=request.buffer,
        flush=request.flush,
        moved=request.bytes,
        prepare=request.prepare,
        figure=figure,
        timeout_s=int(request.timeout),
        footprint=request.footprint,
    )


def _folder(named: str | None) -> Path:
    first = named or os.environ.get(_VARIABLE, "").partition(":")[0]
    if not first:
        raise RejectedError(
            f"no folder for the profile: give --folder DIR, or name one in {_VARIABLE}, such as "
            f"export {_VARIABLE}=$HOME/eeio-profiles"
        )
    return Path(first).absolute()


def _check_free(workload: Workload) -> None:
    """No other profile, and no parser, of that name: one of the two would be read as the other."""
    taken = {name.rpartition("-")[0]: folder for name, folder in profiles.available().items()}
    holder = taken.get(f"eeio-{workload.name}")
    if holder is not None:
        raise RejectedError(f"{holder} is a profile of that name: give yours another one")
    if workload.name in tools.names():
        raise RejectedError(
            f"eeio has a parser {workload.name!r}, which would read your command's output: "
            "rename the profile"
        )


COMMAND = Command(
    "new",
    NewRequest,
    new_profile,
    help="create a test profile and a suite from a command",
    description="Writes a test profile for eeio run and the Phoronix Test Suite. The "
    "profile runs the command once, in a folder of the target directory. Regular "
    "expressions read the command's output. The command is not run now.",
    epilog="example: eeio profile new mydd --factor size=16m,64m --operation read "
    "--prepare 'head -c {size} /dev/urandom >in' --figure ', ([0-9.]+) s,' --unit s "
    "--bytes '^([0-9]+) bytes' --suite ./try-mydd -- dd if=in of=/dev/null bs=64k",
    takes_program=True,
)
