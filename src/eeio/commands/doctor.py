"""`eeio doctor`: available hardware and dependencies, and remedies for missing ones."""

import json
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from eeio.commands import restore, setup
from eeio.commands.output_file import format_option
from eeio.errors import EXIT_DONE, EXIT_FAILED, RejectedError
from eeio.machine.as_data import capture, readings
from eeio.machine.as_data.replay import replayed
from eeio.measure.doctor import Finding, can_measure, examine, examine_replay
from eeio.options import Command, option, switch
from eeio.units import terminal
from eeio.units.external_text import shown

SCHEMA_VERSION = 1


def replay_option(rare: bool = False) -> Any:
    """The field `replay: Path | None`, which `meter list` and `plan` have too."""
    return option(
        "--replay",
        value="FILE",
        parse=Path,
        help="use a machine captured by `eeio doctor --capture`",
        rare=rare,
    )


@dataclass(frozen=True, kw_only=True)
class DoctorRequest:
    """`eeio doctor`."""

    format: str = format_option()
    all: bool = switch("--all", help="show each item, with the remedy for a missing one")
    require: str = option(
        "--require",
        value="WHAT,...",
        default="",
        help="exit with 1 if missing: fio, rapl, ..., or kind tool, meter, library",
    )
    capture: Path | None = option(
        "--capture",
        value="FILE.tar.gz",
        parse=Path,
        help="describe this machine for a bug report, without names and serials",
    )
    yes: bool = switch("--yes", help="with --capture: skip the confirmation")
    replay: Path | None = replay_option()


def show(request: DoctorRequest) -> int:
    if request.capture is not None:
        if request.replay is not None:
            raise RejectedError("--capture and --replay: one of them")
        return _capture(request.capture, request.yes)
    if request.replay is None:
        return _show(examine(), request)
    with replayed(request.replay) as replay:
        code = _show(examine_replay(replay), request)
        if request.format != "json":
            again = f"--replay {request.replay}"
            print(f"{shown(replay.description.about)}: `eeio meter list {again}` and")
            print(f"`eeio plan SUITE --directory DIR {again}` look at the same machine")
        return code


def _show(findings: Sequence[Finding], request: DoctorRequest) -> int:
    required = {word for word in request.require.split(",") if word}
    known = {word for finding in findings for word in (finding.kind, finding.name)}
    unknown = required - known
    if unknown:
        raise RejectedError(f"--require {min(unknown)}: `eeio doctor` looks for no such thing")
    needed = [finding for finding in findings if {finding.kind, finding.name} & required]
    missing = dict.fromkeys(finding.name for finding in needed if _is_missing(finding))
    code = EXIT_DONE
    if missing:
        code = EXIT_FAILED
        print(f"eeio: missing: {', '.join(missing)}", file=sys.stderr)
        _print_remedies([finding for finding in needed if _is_missing(finding)])
    if request.format == "json":
        print(_json(findings))
    elif request.all:
        print("\n".join(_lines(findings)))
    else:
        print("\n".join(_short(findings)))
    return code


def _print_remedies(missing: Sequence[Finding]) -> None:
    for finding in missing:
        print(f"eeio: {shown(finding.name)}: {shown(str(finding.remedy))}", file=sys.stderr)


_MOST_REMEDIES = 12


def _states(findings: Sequence[Finding]) -> Iterator[str]:
    for state, is_ok in (("ok", True), ("missing", False)):
        names = [finding.name for finding in findings if finding.found == is_ok]
        if names:
            yield f"{state}: {', '.join(names)}"


def _short(findings: Sequence[Finding]) -> Iterator[str]:
    """The answers, a line for each kind of item, and how to get more."""
    width = terminal.width()
    lines = [*can_measure(findings), ""]
    for kind, of_kind in groupby(findings, key=lambda finding: finding.kind):
        lines.append(f"{kind}: {'; '.join(_states(list(of_kind)))}")
    # A missing meter is one of many; which would help here is not known.
    more = [f for f in findings if not f.found and f.kind != "meter" and f.remedy]
    lines += ["", *(f"{f.kind} {f.name}: {f.remedy}" for f in more[:_MOST_REMEDIES])]
    lines.append("`eeio doctor --all` shows each item, and how to get a missing meter")
    for line in lines:
        if line and width is not None:
            yield from textwrap.wrap(shown(line), width, subsequent_indent="  ")
        else:
            yield shown(line)


def _lines(findings: Sequence[Finding]) -> Iterator[str]:
    yield from can_measure(findings)
    for kind, of_kind in groupby(findings, key=lambda finding: finding.kind):
        yield f"{kind}:"
        for finding in of_kind:
            state = "missing"
            if finding.found:
                state = "ok     "
            yield f"  {state}  {finding.name}: {finding.detail}"
            if not finding.found:
                yield f"           costs: {finding.cost}"
                yield f"           get it: {finding.remedy}"


def _is_missing(finding: Finding) -> bool:
    """The first run installs the profile of a program that is here."""
    return not finding.found and finding.program is None


def _json(findings: Sequence[Finding]) -> str:
    body = {
        "schema_version": SCHEMA_VERSION,
        "can_measure": can_measure(findings),
        "findings": [asdict(finding) for finding in findings],
    }
    return json.dumps(body, indent=1)


def _capture(path: Path, yes: bool) -> int:
    """Shows the contents of the capture, and writes it after confirmation."""
    if not yes and not sys.stdin.isatty():
        raise RejectedError("--capture requires confirmation; without a terminal give --yes")
    capture.check_name(path)
    print(f"reading meters for {readings.LENGTH_S:.0f} s", file=sys.stderr)
    taken = capture.take(_json(examine()), readings=readings.record())
    print(f"{path} would hold of this machine:")
    for line in taken.listed():
        print(line)
    if not yes and input("Write it? [y/N] ").strip().lower() not in ("y", "yes"):
        raise RejectedError("no file was written")
    capture.write(taken, path)
    print(f"{path}: written; `tar -xOf {path}` shows all of it, `eeio doctor --replay` reads it")
    return EXIT_DONE


COMMAND = Command(
    "doctor",
    DoctorRequest,
    show,
    help="check hardware and dependencies; setup; restore after a crash",
    description="Checks tools, meters, devices, privileges and file systems.",
    commands=(setup.COMMAND, restore.COMMAND),
)
