"""The commands of an `eeio bench` call, with their parameters."""

import itertools
import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation

from eeio.errors import RejectedError

MOST_COMMANDS = 200
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Command:
    """`text` is its text; `call` is a text for /bin/sh, or a program and its arguments. `name` is
    shown instead of the text, and identifies the command in comparisons."""

    text: str
    call: str | tuple[str, ...]
    parameters: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None

    @property
    def as_factor(self) -> str:
        """As the profile's loop takes it."""
        if isinstance(self.call, str):
            return json.dumps(self.call)
        return json.dumps(list(self.call))


def _plain(
    texts: Sequence[str], program: Sequence[str], names: Sequence[str], shell: str | None
) -> list[Command]:
    """The commands with their names, before parameters are filled in."""
    if texts and program:
        raise RejectedError("give commands in quotes, or one after `--`, not both")
    plain = [Command(text, _call(text, shell)) for text in texts]
    if program:
        plain = [Command(" ".join(program), tuple(program))]
    if not plain or not all(command.text.strip() for command in plain):
        raise RejectedError("no command; give one in quotes, such as eeio bench 'cp a b'")
    if len(names) > len(plain):
        raise RejectedError(f"{len(names)} names (-n) for {len(plain)} commands: one each at most")
    if not all(map(str.strip, names)):
        raise RejectedError("-n: a name is empty")
    named = [replace(command, name=name) for command, name in zip(plain, names, strict=False)]
    return named + plain[len(names) :]


def commands(
    texts: Sequence[str],
    program: Sequence[str],
    parameters: Mapping[str, Sequence[str]],
    names: Sequence[str] = (),
    shell: str | None = None,
) -> list[Command]:
    """Every command with every combination of the parameters, which it contains as `{name}`.

    `program` is what followed `--`: one command, run without a shell. `names` are those of the
    first commands; `shell` runs the texts (None: /bin/sh, `none`: no shell). RejectedError for no
    command, a repeated one, an unused parameter, or names that fit no command.
    """
    plain = _plain(texts, program, names, shell)
    filled = [
        _filled(command, dict(zip(parameters, values, strict=True)))
        for command in plain
        for values in itertools.product(*parameters.values())
    ]
    unused = [name for name in parameters if not any(f"{{{name}}}" in one.text for one in plain)]
    if unused:
        raise RejectedError(f"no command has the parameter {{{unused[0]}}}")
    once = {command.text: command for command in filled}
    if len(once) < len(filled) and not parameters:
        raise RejectedError("a command is repeated; set repetitions with --repetitions")
    if len(once) > MOST_COMMANDS:
        raise RejectedError(f"{len(once)} commands: {MOST_COMMANDS} at most")
    _check_names(list(once.values()))
    return list(once.values())


def _check_names(named: Sequence[Command]) -> None:
    counts = Counter(command.name for command in named if command.name)
    for name, count in counts.items():
        if count > 1:
            raise RejectedError(f"-n {name}: two commands have this name; name them differently")


def scanned(name: str, least: str, most: str, step: str | None) -> tuple[str, list[str]]:
    """`--parameter-scan NAME LEAST MOST`, as decimal numbers: 0.1 steps have no rounding."""
    _check_name(name)
    try:
        low, high, by = Decimal(least), Decimal(most), Decimal(step or 1)
    except InvalidOperation as error:
        raise RejectedError(f"--parameter-scan {name}: numbers, such as 1 8") from error
    if not (by > 0 and low.is_finite() and high.is_finite() and low <= high):
        raise RejectedError(
            f"--parameter-scan {name}: there is no value from {least} to {most} by {by}; give the "
            "lower one first"
        )
    count = int((high - low) / by) + 1
    if count > MOST_COMMANDS:
        raise RejectedError(f"--parameter-scan {name}: {count} values: {MOST_COMMANDS} at most")
    return name, [str(low + place * by) for place in range(count)]


def listed(name: str, values: str) -> tuple[str, list[str]]:
    """`--parameter-list NAME A,B,C`."""
    _check_name(name)
    return name, values.split(",")


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise RejectedError(f"{name!r} is not a valid parameter name: letters, digits, _ and -")


def _filled(command: Command, values: Mapping[str, str]) -> Command:
    def fill(text: str) -> str:
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    call, name = command.call, command.name
    filled = fill(call) if isinstance(call, str) else tuple(fill(word) for word in call)
    if name is not None and values:
        assigned = ", ".join(f"{k} = {v}" for k, v in values.items() if f"{{{k}}}" not in name)
        name = fill(name)
        if assigned:
            name += f" ({assigned})"
    return Command(fill(command.text), filled, values, name)


def _call(text: str, shell: str | None) -> str | tuple[str, ...]:
    if shell is None:
        return text
    started = shell
    if shell == "none":
        started = text
    try:
        program = tuple(shlex.split(started))
    except ValueError as error:
        raise RejectedError(f"{started}: {error}") from error
    if not program:
        raise RejectedError("--shell: an empty command")
    if shell == "none":
        return program
    return (*program, "-c", text)
