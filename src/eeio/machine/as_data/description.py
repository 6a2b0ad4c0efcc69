"""The description of a machine: one file, the same for users' captures and our fixtures.

    machine: 1
    about: "Dell PowerEdge R640, two Xeon Gold 6130"
    sources: ["..."]
    tree: {"sys/class/powercap/intel-rapl:0/name": "package-0"}
    links: {"sys/class/hwmon/hwmon0": "../../devices/platform/hwmon0"}
    refused: {"sys/class/powercap/intel-rapl:0/energy_uj": "EACCES"}
    commands: [{run: [hdparm, -C, /dev/sda], exit: 0, prints: "...", errors: ""}]
    services: {redfish: {"/redfish/v1/Chassis": {}}}
    readings: [{meter: rapl, times_s: [0.0, 10.0], channels: {"rapl:package-0": [5.0, 315.0]}}]

`machine.schema.json` in `eeio/schemas` is its schema. Files end in one line feed, which `tree`
leaves out; output of commands is stored unchanged. A program that takes its commands from a file,
as `ipmitool -I open -c exec FILE` does, is described by the single commands: `[ipmitool, -I, open,
-c, raw, "0x2c", ...]`. `services` are data for simulators and are not laid out.
"""

import errno
import json
import os
import shlex
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import yaml

from eeio.errors import LimitError, RejectedError
from eeio.files import documents, inputs, typed
from eeio.files.typed import LATER
from eeio.units.external_text import shown
from eeio.units.quantities import COUNTER_SAMPLE, DURATION, Quantity, shortened

VERSION = 1
JSON_SUFFIX = ".json"
SUFFIXES = (JSON_SUFFIX, ".yaml", ".yml")

_LONGEST_PATH, _LONGEST_NAME = 2000, 255
_MOST_READINGS = 10_000
_LONGEST_ABOUT, _MOST_SOURCES = 500, 1000
_MOST_COMMANDS, _MOST_ARGUMENTS, _LONGEST_ARGUMENT = 2000, 100, 4000
# Unreadable, also for root: sysctl checks only the mode, not capabilities.
_UNREADABLE = (Path("/proc/sys/vm/compact_memory"), Path("/proc/sys/net/ipv4/route/flush"))
# Can be opened, and every read at its beginning fails (EIO).
_FAILING = Path("/proc/self/mem")
_DENIED = ("EACCES", "EPERM")
# A program that reads its commands as lines of a file.
_TAKES_LINES = {"ipmitool": "exec"}


_EXIT_CODE = Quantity("exit code", "", 0, 255, whole=True)


@dataclass(frozen=True)
class Command:
    """A program's answer to these arguments: `run[0]` is its name."""

    run: tuple[str, ...]
    exit: Annotated[int, _EXIT_CODE] = field(default=0, metadata=LATER)
    prints: str = field(default="", metadata=LATER)
    errors: str = field(default="", metadata=LATER)

    def impossible(self) -> str | None:
        """Invalid values in it, beyond each field's range."""
        if not 1 <= len(self.run) <= _MOST_ARGUMENTS:
            return f"run: {len(self.run)} arguments; the limits are 1 and {_MOST_ARGUMENTS}"
        return _too_long(("run", _LONGEST_ARGUMENT, self.run))


@dataclass(frozen=True)
class MeterReadings:
    """Readings of a meter on the machine."""

    meter: str
    """Its name in readings."""
    times_s: tuple[Annotated[float, DURATION], ...]
    """Seconds since the first reading."""
    channels: Mapping[str, tuple[Annotated[float, COUNTER_SAMPLE] | None, ...]]
    """Name of a channel -> its values, W or J; null where a read failed."""

    def impossible(self) -> str | None:
        """Invalid values in it, beyond each field's range."""
        count = len(self.times_s)
        if not 1 <= count <= _MOST_READINGS:
            return f"times_s: {count} readings; the limits are 1 and {_MOST_READINGS}"
        if any(later <= before for before, later in pairwise(self.times_s)):
            return "times_s: the time does not increase"
        for name, values in self.channels.items():
            if len(values) != count:
                return f"channels: {shortened(name)}: {len(values)} values at {count} times"
        return _too_long(("meter", _LONGEST_NAME, (self.meter, *self.channels)))


@dataclass(frozen=True)
class Description:
    """A machine. Paths have no leading slash; `refused` names errors as errno does."""

    about: str
    sources: tuple[str, ...] = field(default=(), metadata=LATER)
    """Where each group of values was published."""
    tree: Mapping[str, str] = field(default_factory=dict, metadata=LATER)
    """Path of a file -> its text, without the last line feed."""
    links: Mapping[str, str] = field(default_factory=dict, metadata=LATER)
    """Path of a symbolic link -> its target, relative to the link's folder."""
    refused: Mapping[str, str] = field(default_factory=dict, metadata=LATER)
    """Path of a file that cannot be read -> the name of the error."""
    commands: tuple[Command, ...] = field(default=(), metadata=LATER)
    services: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, metadata=LATER)
    """Kind of an HTTP service -> path -> its answer."""
    readings: tuple[MeterReadings, ...] = field(default=(), metadata=LATER)
    """Of each available meter, for some seconds."""

    def impossible(self) -> str | None:
        """Invalid values in it, beyond each field's range."""
        if not self.about:
            return "about: empty: name the machine"
        for name, most in (
            ("sources", _MOST_SOURCES),
            ("commands", _MOST_COMMANDS),
            ("readings", _MOST_SOURCES),
        ):
            if len(getattr(self, name)) > most:
                return f"{name}: more than {most}"
        return _too_long(
            ("about", _LONGEST_ABOUT, (self.about,)), ("sources", _LONGEST_PATH, self.sources)
        )

    def to_json(self) -> dict[str, Any]:
        """The form of the schema, without empty fields."""
        body = {key: value for key, value in asdict(self).items() if value}
        for command in body.get("commands", ()):
            command["run"] = list(command["run"])
        for readings in body.get("readings", ()):
            readings["times_s"] = list(readings["times_s"])
            readings["channels"] = {k: list(v) for k, v in readings["channels"].items()}
        for key in ("sources", "commands", "readings"):
            if key in body:
                body[key] = list(body[key])
        return {"machine": VERSION, **body}


def load(path: Path) -> Description:
    """Reads and checks a description, JSON by the name's end and YAML else. RejectedError in one
    line that names the file and the place of the fault."""
    try:
        most = inputs.DEFINITION_BYTES
        if path.suffix == JSON_SUFFIX:
            most = inputs.MACHINE_BYTES
        text = inputs.read_text(path, most)
        return parse(text, path.suffix == JSON_SUFFIX)
    except OSError as error:
        raise RejectedError(f"{path}: {error.strerror}") from error
    except LimitError as error:
        raise RejectedError(f"{path}: {error}") from error


def parse(text: str, is_json: bool) -> Description:
    """The description that a text writes. Raises LimitError."""
    body = inputs.parse_json(text, inputs.MACHINE_BYTES) if is_json else documents.parse_yaml(text)
    return of_body(body)


def of_body(body: Any) -> Description:
    """Checks the contents of a file. Raises LimitError with the place of the fault."""
    version = VERSION
    if isinstance(body, dict):
        version = body.get("machine", VERSION)
    if version != VERSION or version is True:
        raise LimitError(
            f"machine: version {shortened(version)} of the form is unknown, this eeio "
            f"reads {VERSION}; update eeio"
        )
    for key in documents.keys_of_no_text(body):
        raise LimitError(f"the key {shortened(key)} is not text: put it in quotes")
    if not isinstance(body, dict) or "machine" not in body:
        raise LimitError("machine is missing: not the description of a machine")
    try:
        json.dumps(body, ensure_ascii=False).encode()
        description = typed.read(Description, {k: v for k, v in body.items() if k != "machine"})
    except (UnicodeEncodeError, TypeError) as error:
        raise LimitError(f"a text is not Unicode, or a value no JSON: {error!s:.200}") from None
    except LimitError as error:
        raise LimitError(shown(f"{error!s:.600}")) from None
    _check(description)
    return description


def _too_long(*texts: tuple[str, int, Iterable[str]]) -> str | None:
    """The first of (name, most characters, texts) that has a longer one."""
    for name, most, each in texts:
        for text in each:
            if len(text) > most:
                return f"{name}: {shortened(text)} is longer than {most} characters"
    return None


def save(description: Description, path: Path) -> None:
    """Writes it, JSON by the name's end and YAML else. Raises OSError."""
    body = description.to_json()
    if path.suffix == JSON_SUFFIX:
        text = json.dumps(body, indent=1, ensure_ascii=False) + "\n"
    else:
        text = yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=100)
    path.write_text(text, encoding="utf-8")


def lay_out(description: Description, folder: Path) -> tuple[Path, Path]:
    """Writes the tree below FOLDER/root and the commands into FOLDER/bin; returns those two.

    A file that is `refused` with EACCES or EPERM cannot be read there either, not even by root;
    other errors become EIO. Raises RejectedError for a folder that is not empty, OSError.
    """
    if folder.exists() and any(folder.iterdir()):
        raise RejectedError(f"{folder} is not empty; name a new folder")
    root, programs = folder / "root", folder / "bin"
    root.mkdir(parents=True)
    programs.mkdir()
    for name, text in description.tree.items():
        _with_folder(root / name).write_text(f"{text}\n", encoding="utf-8")
    for name, target in description.links.items():
        _with_folder(root / name).symlink_to(target)
    for name, reason in description.refused.items():
        _reject(_with_folder(root / name), reason)
    for program in dict.fromkeys(command.run[0] for command in description.commands):
        script = programs / program
        known = [command for command in description.commands if command.run[0] == program]
        script.write_text(_script(program, known), encoding="utf-8")
        script.chmod(0o755)
    # ipmitool is run through it (meters/ipmi.py), and this folder may be all of PATH.
    if (real := shutil.which("stdbuf")) is not None:
        (programs / "stdbuf").symlink_to(real)
    return root, programs


def _with_folder(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _reject(path: Path, reason: str) -> None:
    if reason not in _DENIED:
        path.symlink_to(_FAILING)
    elif os.geteuid() != 0:
        path.touch(mode=0o000)
    else:
        path.symlink_to(next((p for p in _UNREADABLE if p.exists()), _FAILING))


# ---- checks beyond the types ----


def _check(description: Description) -> None:
    """LimitError for paths that leave the tree or conflict, and for unknown programs and errors."""
    names = [*description.tree, *description.links, *description.refused]
    if len(names) > inputs.MACHINE_FILES:
        raise LimitError(f"more than {inputs.MACHINE_FILES} files")
    for name in names:
        _check_path(name)
    _check_apart(names)
    for name, target in description.links.items():
        _check_link(name, target)
    for name, reason in description.refused.items():
        if reason not in errno.errorcode.values():
            raise LimitError(f"refused: {shortened(name)}: unknown error {shortened(reason)}")
    runs = set()
    for command in description.commands:
        program = command.run[0]
        if not program or program != Path(program).name or program.startswith((".", "-")):
            raise LimitError(
                f"commands: {shortened(program)} is not a program name without a folder"
            )
        if any("\0" in text for text in (*command.run, command.prints, command.errors)):
            raise LimitError(f"commands: {program}: a text contains a NUL character")
        if command.run in runs:
            command_text = shown(shlex.join(command.run))
            raise LimitError(f"commands: {command_text:.200} is repeated")
        runs.add(command.run)


def _check_path(name: str) -> None:
    if name.startswith("/"):
        raise LimitError(f"{shortened(name)}: paths begin without a slash: sys/class/...")
    parts = name.split("/")
    if ".." in parts:
        raise LimitError(f"{shortened(name)}: `..` may lead out of the tree")
    if (
        "" in parts
        or "." in parts
        or "\0" in name
        or len(name) > _LONGEST_PATH
        or max(len(os.fsencode(part)) for part in parts) > _LONGEST_NAME
    ):
        raise LimitError(f"{shortened(name)} is not a file path")


def _check_apart(names: Iterable[str]) -> None:
    """No name may occur again, or be another's folder: a link's target is unknown here."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise LimitError(f"{shortened(name)} is repeated (tree, links, refused)")
        seen.add(name)
    for name in seen:
        for parent in PurePosixPath(name).parents:
            if str(parent) in seen:
                raise LimitError(
                    f"{shown(name):.300} is below {shown(str(parent)):.300}, which is a file or "
                    "a link; give the files' real paths"
                )


def _check_link(name: str, target: str) -> None:
    """With all `..` before other parts, and no link above another file, none leaves the tree."""
    parts = target.split("/")
    up = 0
    while up < len(parts) and parts[up] == "..":
        up += 1
    inside = up <= name.count("/") and ".." not in parts[up:]
    if any(len(os.fsencode(part)) > _LONGEST_NAME for part in parts) or len(target) > _LONGEST_PATH:
        raise LimitError(f"links: {shortened(name)} -> {shortened(target)} is not a file path")
    if not target or target.startswith("/") or "\0" in target or not inside:
        raise LimitError(
            f"links: {shortened(name)} -> {shortened(target)} leads out of the tree; links are "
            "relative to their folder, with all `..` first"
        )


# ---- programs ----


def _script(program: str, commands: Iterable[Command]) -> str:
    """A shell script that needs no other program: it gives only the recorded answers."""
    known = list(commands)
    lines = ["#!/bin/sh", f"# Output of {shown(program)} on the described machine."]
    takes_lines = _TAKES_LINES.get(program)
    if takes_lines is not None:
        lines += _lines_arm(program, takes_lines, known)
    for command in known:
        arguments = command.run[1:]
        tests = [f"[ $# -eq {len(arguments)} ]"]
        for number, argument in enumerate(arguments, start=1):
            tests.append(f'[ "${{{number}}}" = {shlex.quote(argument)} ]')
        lines += [f"if {' && '.join(tests)}; then", *_answer(command), "fi"]
    lines += [
        f"""printf '%s\\n' "{program}: not in this description: $*" >&2""",
        "exit 64",
    ]
    return "\n".join(lines) + "\n"


def _answer(command: Command) -> list[str]:
    return [*_output_of(command), f"  exit {command.exit}"]


def _output_of(command: Command) -> list[str]:
    lines = []
    if command.prints:
        lines.append(f"  printf '%s' {shlex.quote(command.prints)}")
    if command.errors:
        lines.append(f"  printf '%s' {shlex.quote(command.errors)} >&2")
    return lines


def _lines_arm(program: str, word: str, commands: Iterable[Command]) -> list[str]:
    """`PROGRAM OPTION... exec FILE`: each line of the file is the rest of a command. An invalid one
    is rejected with its name, as ipmitool does: eeio separates answers by that."""
    lines = [
        'before="" file=""',
        'for word in "$@"; do file=$word; done',
        f'for word in "$@"; do [ "$word" = {word} ] && break; before="$before$word "; done',
        f'if [ "${{before}}{word} $file" = "$*" ]; then',
        "while read -r line; do",
        '  case "$before$line" in',
    ]
    for command in commands:
        # Set off by blanks, as the loop above puts the options together; names may be in quotes.
        written = dict.fromkeys(
            " ".join([*command.run[1:first], *(f'"{word}"' for word in command.run[first:])])
            for first in range(1, len(command.run) + 1)
        )
        lines += [
            f"  {'|'.join(map(shlex.quote, written))})",
            *(_output_of(command) or ["  :"]),
            "  ;;",
        ]
    lines += [
        """  *"raw eeio"*) token=${line#raw }; printf 'Given netfn "%s" is invalid.\\n' """
        '"${token% 0}" ;;',
        f"""  *) printf '%s\\n' "{program}: not in this description: $line" ;;""",
        "  esac",
        'done < "$file"',
        "exit 0",
        "fi",
    ]
    return lines
