"""The parsers of commands, made from their requests (`eeio.options`)."""

import argparse
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from eeio.commands.arguments import RARE, AnyOrder, Former, HelpAll, Parser, WithProgram
from eeio.errors import EeioError, LimitError
from eeio.options import Command, Family, Option, options_of

_Request = TypeVar("_Request")


def add(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]",
    command: Command[Any] | Family,
) -> None:
    """Adds the parser of a command, and those of its sub-commands."""
    description = command.description or f"{command.help[0].upper()}{command.help[1:]}."
    parser = subparsers.add_parser(command.name, help=command.help, description=description)
    if isinstance(command, Family):
        below = parser.add_subparsers(
            dest=f"{command.name}_command", metavar=command.kind, required=True
        )
    else:
        _fill(parser, command)
        if not command.commands:
            return
        names = "|".join(sub_command.name for sub_command in command.commands)
        below = parser.add_subparsers(metavar=f"[{names}]", title="sub-commands")
    for sub_command in command.commands:
        add(below, sub_command)


def request_of(arguments: argparse.Namespace) -> tuple[Command[Any], Any]:
    """The command of parsed arguments, and the request for it."""
    command: Command[Any] = arguments.request_for
    values = {
        field.name: _without_lists(getattr(arguments, field.name))
        for field in dataclasses.fields(command.request)
        if hasattr(arguments, field.name)
    }
    return command, command.request(**values)


def parsed(command: Command[_Request], words: Sequence[str]) -> _Request:
    """Parses the arguments of a command. Ends the program as `eeio` does for a wrong one."""
    parser = Parser(prog="eeio")
    add(parser.add_subparsers(parser_class=Parser, prog="eeio"), command)
    _, request = request_of(parser.parse_args([command.name, *words]))
    made: _Request = request
    return made


def _without_lists(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_without_lists(item) for item in value)
    return value


def _fill(parser: argparse.ArgumentParser, command: Command[Any]) -> None:
    parser.epilog = command.epilog
    if command.keeps_lines:
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
    # argparse makes the parser itself, of its parent's class.
    if command.any_order:
        parser.__class__ = AnyOrder
    elif command.takes_program:
        parser.__class__ = WithProgram
    options = _Options(parser)
    for field, option in options_of(command.request):
        options.add(field, option)
    if options.has_rare:
        parser.add_argument("--help-all", action=HelpAll, nargs=0, help="show rare options too")
    # Of a command with sub-commands the innermost one that is given sets it last.
    parser.set_defaults(request_for=command)


class _Options:
    """Adds options to a parser, each below the title of its group. Those without a group are in
    the last one: `other options`, where there are titles."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parser = parser
        self._groups: dict[str, argparse._ArgumentGroup] = {}
        self._alternatives: dict[str, argparse._MutuallyExclusiveGroup] = {}
        self.has_rare = False

    def add(self, field: "dataclasses.Field[Any]", option: Option) -> None:
        container = self._container(option)
        settings = _settings(field, option)
        if not option.flags:
            container.add_argument(field.name, **settings)
            return
        action = container.add_argument(*option.flags, dest=field.name, **settings)
        if option.rare:
            vars(action)[RARE] = True
            self.has_rare = True
        for flag, value in option.former:
            _add_former(container, flag, action, value)

    def _container(self, option: Option) -> argparse._ActionsContainer:
        container: argparse._ActionsContainer = self._parser
        if option.group is not None:
            container = self._group(option.group)
        if option.alternative is None:
            return container
        if option.alternative not in self._alternatives:
            self._alternatives[option.alternative] = container.add_mutually_exclusive_group()
        return self._alternatives[option.alternative]

    def _group(self, title: str) -> argparse._ArgumentGroup:
        if title not in self._groups:
            self._groups[title] = self._parser.add_argument_group(title)
            others = self._parser._optionals
            others.title = "other options"
            self._parser._action_groups.remove(others)
            self._parser._action_groups.append(others)
        return self._groups[title]


def _settings(field: "dataclasses.Field[Any]", option: Option) -> dict[str, Any]:
    """What argparse is given for a field."""
    settings: dict[str, Any] = {"help": argparse.SUPPRESS if option.hidden else option.help}
    if option.is_switch:
        return settings | {"action": "store_true"}
    if field.default_factory is not dataclasses.MISSING:
        settings["default"] = argparse.SUPPRESS  # the request makes it
    elif option.flags and option.required:
        settings["required"] = True
    elif option.flags and option.has_many:
        settings["default"] = []
    elif not option.has_many and not option.required:
        settings["default"] = field.default
    converter = None
    if option.parse is not None:
        converter = _converter(option.parse)
    optional = {
        "metavar": option.value,
        "choices": option.choices,
        "const": option.without_value,
        "nargs": argparse.REMAINDER if option.count == "..." else option.count,
        "type": converter,
        "action": "append" if option.repeat else option.action,
    }
    return settings | {name: value for name, value in optional.items() if value is not None}


def _converter(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """`parse` with errors as argparse expects them. It keeps its name, which argparse prints for a
    ValueError."""

    @functools.wraps(parse, updated=())
    def convert(text: str) -> Any:
        try:
            return parse(text)
        except (EeioError, LimitError) as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


def _add_former(
    container: argparse._ActionsContainer, flag: str, action: argparse.Action, value: str | None
) -> None:
    """Accepts a former flag, with a note on stderr. `value` is what one without a value stands
    for."""
    container.add_argument(
        flag,
        action=Former,
        nargs=None if value is None else 0,
        type=(action.type or str) if value is None else str,
        dest=action.dest,
        default=argparse.SUPPRESS,
        help=argparse.SUPPRESS,
        const=(action.option_strings[0], value),
    )
