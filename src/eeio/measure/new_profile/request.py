"""The workload that `eeio profile new` was asked for, checked: what stands in its scripts, XML and
figures.json cannot mean anything else than what was typed."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eeio.errors import EeioError, RejectedError
from eeio.record.tools import _figures
from eeio.units import quantities as q
from eeio.units.sizes import parse_size

LEVEL = "application"
OPERATIONS = ("read", "write", "mixed")
SPATIALITIES = ("sequential", "random", "mixed")
FLUSHES = ("none", "end", "each")

MOST_ARGUMENTS = 200
MOST_CHARACTERS = 4000
"""Of the command, and of its preparation."""
MOST_VALUES = 64
MOST_EXPERIMENTS = 256
_NAME = re.compile(r"[a-z][a-z0-9]{0,31}")
_FACTOR = re.compile(r"[a-z][a-z0-9_]{0,31}")
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
_PLACE = re.compile(r"\{([a-z][a-z0-9_]{0,31})\}")
# Names that the runner, the plan or the scripts use.
_TAKEN = frozenset(
    (
        "level",
        "operation",
        "spatiality",
        "buffer",
        "flush",
        "disk",
        "api",
        "cache",
        "file_size",
        "runtime_s",
        "timeout_s",
        "precondition",
        "files",
        "rounds",
        "class",
        "words",
        "variant",
        "subtype",
        "frequency_hz",
        "smt",
        "turbo",
        "load",
        "request_size",
        "processes",
        "never",
        "prefix",
        "require",
        "set",
        "when",
    )
)


def _check_factor(name: str, values: Sequence[str]) -> None:
    if not _FACTOR.fullmatch(name) or name in _TAKEN:
        reason = "small letters, digits, _"
        if name in _TAKEN:
            reason = "eeio has one of that name"
        raise RejectedError(f"--factor {q.shortened(name)}: {reason}; give it another name")
    if not values or len(values) > MOST_VALUES or len(set(values)) < len(values):
        raise RejectedError(
            f"--factor {name}: 1 to {MOST_VALUES} values, each once, such as {name}=1,2,4"
        )
    for value in values:
        if not _VALUE.fullmatch(value):
            raise RejectedError(
                f"--factor {name}: {q.shortened(value)} is not a value: letters, digits and . _ "
                "-, 32 at most"
            )


@dataclass(frozen=True)
class Workload:
    """A command (a program and its arguments) with its factors; `figure` is a pattern and a unit,
    `moved` a pattern, a size or `{factor}` (None: not asked); `prepare` is a text for the shell;
    a run is given up after `timeout_s` seconds; its files take `footprint` (a size) at most.
    `check` says what cannot be."""

    name: str
    command: tuple[str, ...]
    factors: Mapping[str, tuple[str, ...]]
    operation: str = "mixed"
    spatiality: str = "mixed"
    buffer: str = "on"
    flush: str = "none"
    figure: tuple[str, str] | None = None
    moved: str | None = None
    prepare: str = ""
    timeout_s: int = 3600
    footprint: str = ""

    @property
    def profile(self) -> str:
        return f"eeio-{self.name}-1.0.0"

    @property
    def shown(self) -> str:
        """The command as one would type it."""
        return shlex.join(self.command)

    @property
    def moved_is_pattern(self) -> bool:
        """Whether the bytes are read from the output."""
        return self.moved is not None and "(" in self.moved

    def check(self) -> None:
        """Raises RejectedError."""
        if not _NAME.fullmatch(self.name):
            raise RejectedError(
                f"{q.shortened(self.name)} is not a valid profile name: small letters and digits, "
                "beginning with a letter, 32 at most, such as mycopy"
            )
        self._check_command()
        self._check_factors()
        if self.figure is not None:
            _check_pattern("--figure", self.figure[0])
        if self.moved is not None:
            self._check_moved(self.moved)
        if self.footprint:
            try:
                parse_size(self.footprint)
            except EeioError as error:
                raise RejectedError(f"--footprint: {error}") from error
            if not self.footprint.isalnum():
                raise RejectedError(f"--footprint {q.shortened(self.footprint)}: such as 16m")

    def _check_command(self) -> None:
        if not self.command or not self.command[0]:
            raise RejectedError("no command; give one after --, such as -- dd if=in of=/dev/null")
        text = "".join((*self.command, self.prepare))
        if len(self.command) > MOST_ARGUMENTS or len(text) > MOST_CHARACTERS:
            raise RejectedError(
                f"the command is longer than {MOST_ARGUMENTS} arguments or {MOST_CHARACTERS} "
                "characters: put it into a script, and name that"
            )
        if not text.isprintable():
            raise RejectedError(
                "the command or its preparation contains line ends or control characters: put "
                "it into a script, and name that"
            )
        program = self.command[0]
        if "{" in program:
            raise RejectedError(f"{q.shortened(program)}: the program itself is no factor")
        if "/" in program and not program.startswith("/"):
            raise RejectedError(
                f"{q.shortened(program)}: it runs in a folder of the target directory; give the "
                "program's full path, or one that PATH has"
            )

    def _check_factors(self) -> None:
        text = " ".join((*self.command, self.prepare, self.moved or ""))
        experiments = 1
        for name, values in self.factors.items():
            _check_factor(name, values)
            if f"{{{name}}}" not in text:
                raise RejectedError(f"--factor {name}: the command has no {{{name}}} in it")
            experiments *= len(values)
        if experiments > MOST_EXPERIMENTS:
            raise RejectedError(
                f"{experiments} combinations of factors: {MOST_EXPERIMENTS} at most"
            )
        for place in _PLACE.findall(text):
            if place not in self.factors:
                raise RejectedError(
                    f"{{{place}}} is in the command, but no --factor {place}=A,B gives its values"
                )

    def _check_moved(self, moved: str) -> None:
        if self.moved_is_pattern:
            _check_pattern("--bytes", moved)
            if (unit := _UNIT_BEHIND_GROUP.search(moved)) is not None:
                raise RejectedError(
                    f"--bytes {q.shortened(moved)}: the group is a number of bytes, and {unit[1]} "
                    "follows it; give a size, such as {size} of --factor size=16m,64m"
                )
            return
        place = _PLACE.fullmatch(moved)
        for size in (moved,) if place is None else self.factors.get(place[1], ()):
            try:
                parse_size(size)
                fits = _figures.number(size, "--bytes")[1] in _figures.SIZES
            except (EeioError, _figures.FiguresError):
                fits = False
            if not fits:
                raise RejectedError(
                    f"--bytes {q.shortened(moved)}: {q.shortened(size)} is not a size such as 16m; "
                    "give one, a factor of sizes such as {size}, or a pattern with a group (...)"
                )


_UNIT_BEHIND_GROUP = re.compile(r"\)(?:\\s[*+?]?| )*([kKMGT](?:i?B|bytes))\b")
"""In a pattern for bytes, behind the group."""


def factor(text: str) -> tuple[str, tuple[str, ...]]:
    """`NAME=A,B,C`. Raises RejectedError."""
    name, separator, values = text.partition("=")
    if not separator:
        raise RejectedError(f"--factor {q.shortened(text)}: give NAME=A,B, such as threads=1,2,4")
    return name, tuple(values.split(","))


def pieces(text: str, factors: Sequence[str]) -> str:
    """A word of a script in the shell's quotes, the factors in it as their checked variables."""
    texts = []
    for place, part in enumerate(_PLACE.split(text)):
        if place % 2:
            texts.append(f'"$factor_{part}"' if part in factors else shlex.quote(f"{{{part}}}"))
        elif part:
            texts.append(shlex.quote(part))
    return "".join(texts) or "''"


def _check_pattern(option: str, pattern: str) -> None:
    if len(pattern) > _figures.PATTERN_CHARACTERS or not pattern.isprintable():
        raise RejectedError(
            f"{option}: longer than {_figures.PATTERN_CHARACTERS} characters, or not in one line"
        )
    try:
        groups = re.compile(pattern).groups
    except (re.error, OverflowError, RecursionError) as error:
        raise RejectedError(
            f"{option} {q.shortened(pattern)} is not a regular expression: {error}"
        ) from error
    if groups != 1:
        raise RejectedError(
            f"{option} {q.shortened(pattern)} has {groups} groups: put only the number into one "
            "(...); write others as (?:...)"
        )
