"""The parser of the command line: argparse's, with groups of options, rare options that only
`--help-all` shows, and proposals for mistyped names."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from eeio.errors import EXIT_REJECTED
from eeio.units.names import similar
from eeio.units.quantities import shortened

_RARE = "eeio_rare"


class Parser(argparse.ArgumentParser):
    """Parsers of sub-commands are of this class too (argparse makes them of their parent's)."""

    _shows_all = False

    def error(self, message: str) -> NoReturn:
        """One line instead of the usage, and where the options are listed. Ends the program."""
        self.exit(EXIT_REJECTED, f"eeio: {message}. `{self.prog} --help` lists the options\n")

    def format_usage(self) -> str:
        return f"usage: {self._usage_text()}\n"

    def format_help(self) -> str:
        rare = [] if self._shows_all else [a for a in self._actions if vars(a).get(_RARE)]
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
        return f"{text}\n{len(rare)} more options: {self.prog} --help-all\n" if rare else text

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


class OptionGroup:
    """Adds options to a command, below a title of its help, or below the last one without a title
    (`other options`, where there are titles)."""

    def __init__(self, parser: argparse.ArgumentParser, title: str | None = None) -> None:
        self.parser = parser
        self.container: argparse._ActionsContainer = parser
        if title is not None:
            self.container = parser.add_argument_group(title)
            parser._optionals.title = "other options"
            parser._action_groups.remove(parser._optionals)
            parser._action_groups.append(parser._optionals)

    def add(self, *names: str, **settings: Any) -> None:
        self.container.add_argument(*names, **settings)

    def rare(self, *names: str, **settings: Any) -> None:
        """One that only `--help-all` shows (`add_help_all`)."""
        vars(self.container.add_argument(*names, **settings))[_RARE] = True


def add_help_all(parser: argparse.ArgumentParser) -> None:
    """`--help-all`, the last option of a command that has rare ones."""
    parser.add_argument("--help-all", action=_HelpAll, nargs=0, help="show rare options too")


def former(
    container: argparse._ActionsContainer, name: str, now: str, value: str | None = None
) -> None:
    """Accepts the former name of an option, with a note on stderr. `value` is what a former option
    without a value stands for."""
    action = container._option_string_actions[now]
    container.add_argument(
        name,
        action=_Former,
        nargs=None if value is None else 0,
        type=(action.type or str) if value is None else str,
        dest=action.dest,
        default=argparse.SUPPRESS,
        help=argparse.SUPPRESS,
        const=(now, value),
    )


def add_format(
    container: argparse._ActionsContainer, formats: Sequence[str] = ("table", "json")
) -> None:
    """`--format`, of which the first is the default; `--json`, its former name, if it has JSON."""
    container.add_argument(
        "--format", choices=tuple(formats), default=formats[0],
        help=f"output format (default: {formats[0]})",
    )  # fmt: skip
    if "json" in formats:
        former(container, "--json", "--format", "json")


class _HelpAll(argparse.Action):
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


class _Former(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        now, value = self.const
        text = now if value is None else f"{now} {value}"
        print(f"eeio: `{option_string}` is now `{text}`", file=sys.stderr)
        action = parser._option_string_actions[now]
        action(parser, namespace, values if value is None else value, now)
