"""The `eeio` command: arguments, errors and exit codes."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eeio import __version__
from eeio.commands import aliases, registry
from eeio.commands.arguments import Parser
from eeio.errors import (
    EXIT_FAILED,
    EXIT_REJECTED,
    EXIT_SIGNAL_BASE,
    EeioError,
    InterruptedCampaignError,
    RejectedError,
    SchemaError,
)
from eeio.files.trust import TEMPORARY, risk_of_folder, trusted_search_path
from eeio.units.terminal import harmless_streams
from eeio_power.errors import PowerError

if TYPE_CHECKING:
    from eeio.options import Command

_EXIT_CODES = """\
exit codes: 0 done; 1 failed; 2 wrong usage or rejected input, no changes made;
3 done, but some runs failed or are invalid; 4 compare --fail-if: worse;
128 + N stopped by signal N"""


_EXAMPLES = """\
examples:
  eeio run eeio-suite --directory DIR --preset quick    a file system in minutes
  eeio bench 'cp a b' 'rsync a b'                       which command takes less
  eeio compare BEFORE AFTER --fail-if worse:5%:J/GB     a gate for CI
Without a power meter, --meter demo shows every command with invented power.
"""


class _TopParser(Parser):
    """Prints the commands by groups."""

    def format_help(self) -> str:
        helps = {}
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for choice in action._choices_actions:
                    helps[choice.dest] = choice.help or ""
        lines = ["usage: eeio COMMAND ...", "", self.description or "", ""]
        for title, group in registry.GROUPS.items():
            lines.append(f"{title}:")
            for command in group:
                other = registry.NEXT_TO.get(command)
                name = f"{command}, {other}" if other else command
                text = helps.get(command, "")
                lines.append(f"  {name:12}{text}{f'; {helps[other]}' if other else ''}")
            lines.append("")
        shown = [*registry.NEXT_TO.values()]
        lines.append("Also:")
        lines += [f"  {name:12}{helps[name]}" for name in registry.FURTHER if name not in shown]
        lines += [
            "",
            _EXAMPLES,
            "options:",
            "  -h, --help  also of a command: eeio run --help",
            "  --version",
            "",
            self.epilog or "",
            "",
        ]
        return "\n".join(lines)


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """The parser of all commands, the source of man page and completion; with `only` that of one
    command, without importing the files of the others."""
    top = _TopParser(
        prog="eeio",
        description="Energy efficiency of the I/O stack: MB/s, W, J and MB/J, level by level.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"eeio {__version__}")
    if only == "--version":
        return top
    from eeio.commands import parsers

    # Of this class too: argparse makes them of their parent's, which lists the commands by groups.
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser] = top.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=Parser
    )
    for name in registry.COMMANDS if only is None else [only]:
        parsers.add(subparsers, registry.command(name))
    return top


@contextmanager
def _trusted_programs() -> Iterator[None]:
    """Root runs no program of PATH that another user could replace."""
    before = os.environ.get("PATH")
    search_path, reasons = trusted_search_path(os.environ.get("PATH", os.defpath))
    for reason in reasons:
        print(f"eeio: PATH: not searched as root: {reason}", file=sys.stderr)
    try:
        if reasons:
            os.environ["PATH"] = search_path
        yield
    finally:
        if before is not None:
            os.environ["PATH"] = before


@contextmanager
def _trusted_temporary_folder() -> Iterator[None]:
    """Root, and what it starts, makes no temporary file where another user could replace it."""
    names = TEMPORARY if os.geteuid() == 0 else ()
    before = {name: os.environ[name] for name in names if os.environ.get(name)}
    risks = [(name, risk_of_folder(Path(folder))) for name, folder in before.items()]
    if not any(risk for _, risk in risks):
        yield
        return
    import tempfile

    from eeio.paths import temporary_folder

    trusted = str(temporary_folder())
    for name, risk in risks:
        if risk is not None:
            print(f"eeio: {name}: not used as root: {risk.path} {risk.problem}", file=sys.stderr)
    known = tempfile.tempdir
    try:
        os.environ |= dict.fromkeys(before, trusted)
        tempfile.tempdir = None  # it is looked up once
        yield
    finally:
        os.environ |= before
        tempfile.tempdir = known


@contextmanager
def _waiting(limit_s: float | None) -> Iterator[None]:
    """For locks, as `--wait` says."""
    if limit_s is None:
        yield
        return
    from eeio.machine.lock import waiting

    with waiting(limit_s):
        yield


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code."""
    with harmless_streams():
        return _main(argv)


def _parsed(argv: Sequence[str] | None) -> "tuple[Command[Any], Any]":
    """The command and the request for it, by former names, too."""
    command_line, note = aliases.translated(sys.argv[1:] if argv is None else argv)
    if note is not None:
        print(f"eeio: {note}", file=sys.stderr)
    completes = "_ARGCOMPLETE" in os.environ
    if not command_line and not completes:
        command_line = ["--help"]
    first = None
    if command_line:
        first = command_line[0]
    # Shell completion needs all commands, and so does the help.
    alone = not completes and first in (*registry.COMMANDS, "--version")
    top = parser(first if alone else None)
    if completes:
        _complete(top)
    if first == "import":
        from eeio.commands.importing import with_source

        command_line = with_source(command_line)
    arguments = top.parse_args(command_line)
    from eeio.commands.parsers import request_of

    return request_of(arguments)


def _complete(top: argparse.ArgumentParser) -> None:
    """Answers a shell that completes a command line, and ends the program."""
    with suppress(ImportError):
        import argcomplete

        from eeio.commands.completion import attach

        attach(top)
        argcomplete.autocomplete(top)


def _main(argv: Sequence[str] | None) -> int:
    command, request = _parsed(argv)
    try:
        with (
            _trusted_programs(),
            _trusted_temporary_folder(),
            _waiting(getattr(request, "wait", None)),
        ):
            return command.action(request)
    except InterruptedCampaignError as error:
        print(f"\neeio: {error}", file=sys.stderr)
        return EXIT_SIGNAL_BASE + error.signum
    except (RejectedError, SchemaError) as error:
        print(f"eeio: {error}", file=sys.stderr)
        return EXIT_REJECTED
    except (EeioError, PowerError) as error:
        print(f"eeio: {error}", file=sys.stderr)
        return EXIT_FAILED
    except MemoryError:
        print(
            "eeio: out of memory. Raise the limit (`ulimit -v`) or end other programs; `eeio "
            "resume` continues a campaign",
            file=sys.stderr,
        )
        return EXIT_FAILED
    except BrokenPipeError:
        # `eeio report | head` is no failure; Python must not complain when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except OSError as error:
        where = ""
        if error.filename:
            where = f"{error.filename}: "
        print(f"eeio: {where}{error.strerror or error}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_SIGNAL_BASE + 2
