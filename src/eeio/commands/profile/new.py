"""`eeio profile new`: a command of one's own as a test profile."""

import argparse
import os
import shlex
from pathlib import Path

from eeio.commands import campaign_options
from eeio.commands.arguments import WithProgram
from eeio.errors import EXIT_DONE, RejectedError
from eeio.measure.new_profile import make, request
from eeio.measure.new_profile.request import Workload
from eeio.measure.profiles import profile as profiles
from eeio.paths import check_output_folder
from eeio.record import tools
from eeio.record.tools import _figures

_VARIABLE = "EEIO_TEST_PROFILES"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "new",
        help="create a test profile and a suite from a command",
        description="Writes a test profile for eeio run and the Phoronix Test Suite. The "
        "profile runs the command once, in a folder of the target directory. Regular "
        "expressions read the command's output. The command is not run now.",
        epilog="example: eeio profile new mydd --factor size=16m,64m --operation read "
        "--prepare 'head -c {size} /dev/urandom >in' --figure ', ([0-9.]+) s,' --unit s "
        "--bytes '^([0-9]+) bytes' --suite ./try-mydd -- dd if=in of=/dev/null bs=64k",
    )
    parser.__class__ = WithProgram
    parser.add_argument(
        "name", metavar="NAME", help="lower-case letters and digits: eeio-NAME-1.0.0"
    )
    parser.add_argument(
        "--folder", metavar="DIR",
        help=f"parent folder of the profile (default: first of {_VARIABLE})",
    )  # fmt: skip
    parser.add_argument(
        "--factor", metavar="NAME=A,B", action="append", default=[],
        help="values of {NAME} in the command; first is the default; repeatable",
    )  # fmt: skip
    parser.add_argument("--figure", metavar="REGEX",
                        help="pattern of the result in the output, with one group")  # fmt: skip
    parser.add_argument("--unit", choices=_figures.UNITS, metavar="UNIT",
                        help=f"unit of the result: {', '.join(_figures.UNITS)}")  # fmt: skip
    parser.add_argument(
        "--bytes", metavar="REGEX|SIZE",
        help="moved bytes: pattern in the output, size or {factor}; needed for MB/J",
    )  # fmt: skip
    parser.add_argument("--operation", choices=request.OPERATIONS, default="mixed",
                        help="storage operation (default: %(default)s)")  # fmt: skip
    parser.add_argument("--spatiality", choices=request.SPATIALITIES, default="mixed",
                        help="access pattern (default: %(default)s)")  # fmt: skip
    parser.add_argument("--buffer", choices=("on", "off"), default="on",
                        help="page cache use (default: %(default)s)")  # fmt: skip
    parser.add_argument("--flush", choices=request.FLUSHES, default="none",
                        help="flush policy for writes (default: %(default)s)")  # fmt: skip
    parser.add_argument("--level", choices=(request.LEVEL,), default=request.LEVEL,
                        help="level of the I/O stack (default: %(default)s)")  # fmt: skip
    parser.add_argument("--prepare", metavar="COMMAND", default="",
                        help="shell command before each run, not measured")  # fmt: skip
    parser.add_argument("--footprint", metavar="SIZE", default="",
                        help="maximum size of its files, for the plan")  # fmt: skip
    parser.add_argument("--timeout", metavar="S", type=campaign_options.seconds, default=3600.0,
                        help="time limit of a run (default: %(default)g)")  # fmt: skip
    parser.add_argument("--suite", metavar="DIR",
                        help="also create a suite with all factor combinations")  # fmt: skip
    parser.set_defaults(action=new_profile, program=())


def new_profile(arguments: argparse.Namespace) -> int:
    workload = _workload(arguments)
    workload.check()
    folder = _folder(arguments.folder)
    _check_free(workload)
    target = folder / workload.profile
    suite = None if arguments.suite is None else Path(arguments.suite).absolute()
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


def _workload(arguments: argparse.Namespace) -> Workload:
    if (arguments.figure is None) != (arguments.unit is None):
        raise RejectedError(
            "--figure and --unit belong together: a number without its unit is none, such as "
            "--figure '([0-9.]+) MB/s' --unit MB/s"
        )
    factors: dict[str, tuple[str, ...]] = {}
    for text in arguments.factor:
        name, values = request.factor(text)
        if name in factors:
            raise RejectedError(f"--factor {name} is repeated: give all its values at once")
        factors[name] = values
    if not 1 <= arguments.timeout <= 604800:
        raise RejectedError(f"--timeout {arguments.timeout:g}: from 1 s to a week, 604800")
    return Workload(
        name=arguments.name, command=tuple(arguments.program), factors=factors,
        operation=arguments.operation, spatiality=arguments.spatiality, buffer=arguments.buffer,
        flush=arguments.flush, moved=arguments.bytes, prepare=arguments.prepare,
        figure=None if arguments.figure is None else (arguments.figure, arguments.unit),
        timeout_s=int(arguments.timeout), footprint=arguments.footprint,
    )  # fmt: skip


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
