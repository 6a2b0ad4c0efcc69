"""What a user asks of a command: a dataclass whose fields are its arguments and options.

    @dataclass(frozen=True, kw_only=True)
    class Rm:
        names: tuple[str, ...] = argument("NAME", help="campaign name", count="+")
        yes: bool = switch("--yes", help="skip the confirmation")

    COMMAND = Command("rm", Rm, remove, help="delete stored campaigns")

The parser, and with it the help, the reference page, the man page and the completion, is made from
these fields (`eeio.commands.parsers`). The command itself is given an object of the class.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

_METADATA = "option"
_NOT_STORED: Mapping[str, Any] = {}
_Request = TypeVar("_Request")
Count = int | Literal["?", "*", "+", "..."]
"""How many values an argument or option takes; `?` none or one, `...` all that follow."""


@dataclass(frozen=True)
class Option:
    """An argument or an option of a command; an argument has no flags.

    `value` is the placeholder for the value in the help. `parse` raises LimitError or EeioError for
    a text that is no value; `write` is its inverse. `group` is the title above it in the help;
    None: the last group. `rare` ones are shown by `--help-all` only, `hidden` ones never. `former`
    are earlier flags: each with the text that it means, or None if it takes a value.
    """

    flags: tuple[str, ...]
    help: str | None = None
    value: str | tuple[str, ...] | None = None
    parse: Callable[[str], Any] | None = None
    write: Callable[[Any], str] | None = None
    choices: Sequence[str] | None = None
    count: Count | None = None
    group: str | None = None
    without_value: Any = None
    is_switch: bool = False
    repeat: bool = False
    required: bool = False
    rare: bool = False
    hidden: bool = False
    alternative: str | None = None
    """Of the options with the same word here, one at most may be given."""
    former: tuple[tuple[str, str | None], ...] = ()
    action: Any = None
    """The argparse.Action of an option that does more than to store its value."""

    @property
    def has_many(self) -> bool:
        """Whether its value is a tuple of several."""
        return self.repeat or self.count in ("*", "+", "...")

    def written(self, value: Any) -> list[str]:
        """The words that give the option this value; none for None."""
        flag = self.flags[0]
        if self.is_switch:
            if value:
                return [flag]
            return []
        if self.repeat:
            return [word for item in value for word in (flag, self._text(item))]
        if value is None or value == ():
            return []
        return [flag, self._text(value)]

    def _text(self, value: Any) -> str:
        if self.write is not None:
            return self.write(value)
        if isinstance(value, tuple):
            return ",".join(value)
        if isinstance(value, float):
            return f"{value:g}"
        return str(value)


def argument(
    value: str,
    *,
    default: Any = None,
    count: Count | None = None,
    stored: Mapping[str, Any] = _NOT_STORED,
    **more: Any,
) -> Any:
    """A field that is an argument; with count `*`, `+` or `...` its values are a tuple. `stored` is
    the metadata of a field that is also in a stored file (`eeio.files.typed`), whose default is
    then an empty text."""
    is_required = default is None and count in (None, "+")
    option = Option((), value=value, count=count, required=is_required, **more)
    if is_required and stored:
        return dataclasses.field(default="", metadata={_METADATA: option, **stored})
    return _field(option, default, stored)


def option(
    *flags: str,
    default: Any = None,
    default_factory: Callable[[], Any] | None = None,
    stored: Mapping[str, Any] = _NOT_STORED,
    **more: Any,
) -> Any:
    """A field that is an option with a value. The values of one that may be repeated are a tuple.
    `default_factory` makes the value of a request without it."""
    made = Option(flags, **more)
    if default_factory is not None:
        return dataclasses.field(
            default_factory=default_factory, metadata={_METADATA: made, **stored}
        )
    return _field(made, default, stored)


def switch(*flags: str, stored: Mapping[str, Any] = _NOT_STORED, **more: Any) -> Any:
    """A field that is an option without a value: true if it is given."""
    return _field(Option(flags, is_switch=True, **more), False, stored)


def changed(request: type, name: str, **changes: Any) -> Any:
    """The field of another request, with changes of its option."""
    (field,) = (field for field in dataclasses.fields(request) if field.name == name)
    metadata = {_METADATA: dataclasses.replace(field.metadata[_METADATA], **changes)}
    return dataclasses.field(
        default=field.default, default_factory=field.default_factory, metadata=metadata
    )


def _field(option: Option, default: Any, stored: Mapping[str, Any]) -> Any:
    metadata = {_METADATA: option, **stored}
    if option.required:
        return dataclasses.field(metadata=metadata)
    if option.has_many and default is None:
        default = ()
    return dataclasses.field(default=default, metadata=metadata)


def options_of(request: type) -> Iterator[tuple["dataclasses.Field[Any]", Option]]:
    """The fields that are arguments or options."""
    for field in dataclasses.fields(request):
        if _METADATA in field.metadata:
            yield field, field.metadata[_METADATA]


@dataclass(frozen=True)
class Command(Generic[_Request]):
    """A command of eeio: its name, its request, and what it does with one (which returns the exit
    status)."""

    name: str
    request: type[_Request]
    action: Callable[[_Request], int]
    help: str
    description: str | None = None
    epilog: str | None = None
    keeps_lines: bool = False
    """Description and epilog are printed with the line breaks that they have."""
    commands: "Sequence[Command[Any]]" = ()
    """Sub-commands, which may be left out."""
    takes_program: bool = False
    """The field `program` takes a program with its arguments after `--`."""
    any_order: bool = False
    """Arguments may be before, between and after the options. Then it also takes a program."""


@dataclass(frozen=True)
class Family:
    """Commands of one topic, one of which must be named."""

    name: str
    help: str
    commands: "Sequence[Command[Any] | Family]"
    description: str | None = None
    kind: str = "COMMAND"
    """The placeholder for one of its commands in the help."""
