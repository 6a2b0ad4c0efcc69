"""The parser of the command line: argparse's, with groups of options, rare options that only
`--help-all` shows, and proposals for mistyped names."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from eeio.errors import EXIT_REJECTED
from eeio.units.names import similar
from eeio.units.quantities import shortened

RARE = "eeio_rare"
"""Marks the action of a rare option."""


class Parser(argparse.ArgumentParser):
    """Parsers of sub-commands are of this class too (argparse makes them of their parent's)."""

    _shows_all = False

    def error(self, message: str) -> NoReturn:
        """One line instead of the usage, and where the options are listed. Ends the program."""
        self.exit(EXIT_REJECTED, f"eeio: {message}. `{self.prog} --help` lists the options\n")

    def format_usage(self) -> str:
        return f"usage: {self._usage_text()}\n"

    def format_help(self) -> str:
        rare = []
        if not self._shows_all:
            rare = [a for a in self._actions if vars(a).get(RARE)]
        helps = [action.help for action in rare]
        written = self.usage
        # argparse reads % in a usage as a format.
        self.usage = self._usage_text().replace("%", "%%")
        for action in rare:
            action.help = argparse.SUPPRESS
        try:
            text = super().format_help()
        finally:
            self.usage = written
            for action, help_text in zip(rare, helps, strict=True):
                action.help = help_text
        if rare:
            return f"{text}\n{len(rare)} more options: {self.prog} --help-all\n"
        return text

    def _usage_text(self) -> str:
        """Only required arguments: the options are listed below it."""
        formatter = self._get_formatter()
        needed = [a for a in self._get_optional_actions() if a.required]
        options = len(self._get_optional_actions()) > len(needed)
        parts = [self.prog, *(["[OPTION ...]"] if options else [])]
        parts += [
            f"{action.option_strings[-1]} {formatter._format_args(action, action.dest.upper())}"
            for action in needed
        ]
        parts += [_positional_usage(formatter, action) for action in self._get_positional_actions()]
        return " ".join(parts)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        meant = similar(str(value), known) or f" ({', '.join(known)})"
        raise argparse.ArgumentError(action, f"there is no {shortened(str(value))}{meant}")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        found, left = super().parse_known_args(args, namespace)
        # Of a subcommand too: its options are known here, to its parent they are not.
        unknown = next((word for word in left if word.startswith("--") and word != "--"), None)
        if unknown == "--help-all":
            self.print_help()  # there are no rare ones
            self.exit()
        if unknown is not None:
            name = unknown.partition("=")[0]
            options = [
                word
                for word, action in self._option_string_actions.items()
                if word.startswith("--") and action.help != argparse.SUPPRESS
            ]
            self.error(f"there is no option {shortened(name)}{similar(name, options)}")
        return found, left


def _positional_usage(formatter: argparse.HelpFormatter, action: argparse.Action) -> str:
    if action.nargs == argparse.REMAINDER:
        return str(action.metavar)
    # While options are parsed, `parse_known_intermixed_args` keeps the number of values here.
    hidden, action.nargs = action.nargs, vars(action).get("save_nargs", action.nargs)
    try:
        return formatter._format_args(action, formatter._get_default_metavar_for_positional(action))
    finally:
        action.nargs = hidden


class WithProgram(Parser):
    """The arguments after `--` are one program with its arguments, not options of eeio."""

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        arguments = list(args or ())
        if "--" not in arguments:
            return super().parse_known_args(arguments, namespace)
        place = arguments.index("--")
        found, rest = super().parse_known_args(arguments[:place], namespace)
        found.program = tuple(arguments[place + 1 :])
        return found, rest


class AnyOrder(WithProgram):
    """Positional arguments may be before, between and after the options."""

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        if vars(self).get("_in_order"):
            return super().parse_known_args(args, namespace)  # type: ignore[no-untyped-call]
        self._in_order = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._in_order = False


def program_of(words: Sequence[str]) -> Sequence[str]:
    """The program and its arguments that follow, after `--` or without it."""
    if words[:1] == ("--",):
        return words[1:]
    return words


class HelpAll(argparse.Action):
    """`--help-all`."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        assert isinstance(parser, Parser)
        parser._shows_all = True
        parser.print_help()
        parser.exit()


class Former(argparse.Action):
    """A former name of an option. `const` is the name now, and the text that a former option
    without a value stands for."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        now, value = self.const
        text = now
        if value is not None:
            text = f"{now} {value}"
        print(f"eeio: `{option_string}` is now `{text}`", file=sys.stderr)
        action = parser._option_string_actions[now]
        given = values
        if value is not None:
            given = value
        action(parser, namespace, given, now)
