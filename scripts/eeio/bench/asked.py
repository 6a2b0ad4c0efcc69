"""The commands that `eeio bench` was asked for, with their parameters."""

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from eeio.errors import RefusedError

MOST_COMMANDS = 200
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Command:
    """`words` are shown; `call` is a text for the shell, or a program and its arguments."""

    words: str
    call: str | tuple[str, ...]
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def as_factor(self) -> str:
        """As the profile's loop takes it."""
        return json.dumps(self.call if isinstance(self.call, str) else list(self.call))


def commands(
    texts: Sequence[str], program: Sequence[str], parameters: Mapping[str, Sequence[str]]
) -> list[Command]:
    """Every command with every combination of the parameters, whose names stand as `{name}` in it.

    `program` is what followed `--`: one command, run without a shell. RefusedError where nothing is
    asked, a command comes twice, or a parameter is in none.
    """
    if texts and program:
        raise RefusedError("give commands in quotes, or one after `--`, not both")
    plain = [Command(text, text) for text in texts]
    if program:
        plain = [Command(" ".join(program), tuple(program))]
    if not plain or not all(command.words.strip() for command in plain):
        raise RefusedError("no command; give one in quotes, such as eeio bench 'cp a b'")
    found = [
        _filled(command, dict(zip(parameters, values, strict=True)))
        for command in plain
        for values in itertools.product(*parameters.values())
    ]
    unused = [name for name in parameters if not any(f"{{{name}}}" in one.words for one in plain)]
    if unused:
        raise RefusedError(f"no command has the parameter {{{unused[0]}}}")
    once = {command.words: command for command in found}
    if len(once) < len(found) and not parameters:
        raise RefusedError("a command is given twice: its repetitions are --repetitions")
    if len(once) > MOST_COMMANDS:
        raise RefusedError(f"{len(once)} commands: {MOST_COMMANDS} at most")
    return list(once.values())


def scanned(name: str, least: str, most: str, step: str | None) -> tuple[str, list[str]]:
    """`--parameter-scan NAME LEAST MOST`, as decimal numbers: 0.1 steps have no rounding."""
    _check_name(name)
    try:
        low, high, by = Decimal(least), Decimal(most), Decimal(step or 1)
    except InvalidOperation as error:
        raise RefusedError(f"--parameter-scan {name}: numbers, such as 1 8") from error
    if not (by > 0 and low.is_finite() and high.is_finite() and low <= high):
        raise RefusedError(f"--parameter-scan {name}: from {least} to {most} by {by} is no way up")
    count = int((high - low) / by) + 1
    if count > MOST_COMMANDS:
        raise RefusedError(f"--parameter-scan {name}: {count} values: {MOST_COMMANDS} at most")
    return name, [str(low + place * by) for place in range(count)]


def listed(name: str, values: str) -> tuple[str, list[str]]:
    """`--parameter-list NAME A,B,C`."""
    _check_name(name)
    return name, values.split(",")


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise RefusedError(f"{name!r} is no name of a parameter: letters, digits, _ and -")


def _filled(command: Command, values: Mapping[str, str]) -> Command:
    def fill(text: str) -> str:
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    call = command.call
    filled = fill(call) if isinstance(call, str) else tuple(fill(word) for word in call)
    return Command(fill(command.words), filled, values)
