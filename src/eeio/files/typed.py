"""Dataclasses from JSON, checked by the types and ranges of their fields.

    run = typed.read(Run, body)      # from the JSON of a file
    typed.check(run)                 # made here, before it is stored

A field's type defines its valid values; `Annotated[float, POWER]` adds the range of a
`eeio.units.quantities.Quantity`, `Annotated[str, DOMAINS]` the known names. Every field is
required, except those marked LATER, which files of earlier versions lack. A class checks conditions
on several fields (two times that contradict each other) in `impossible()`. Errors are LimitErrors
that begin with the place of the fault (`phases/0/energy/1/domain: ...`); the caller adds the file
and the line. `schemas` publishes the same types as JSON schemas.

Hand-written readers plus a schema duplicated these rules and took ten times as long: a campaign of
10 000 runs was read in 16 s (docs/decisions/0017-records-are-checked-by-their-types.md).
"""

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, lru_cache
from sys import intern
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from eeio.errors import LimitError
from eeio.units.quantities import Quantity, shortened

LATER: Mapping[str, bool] = types.MappingProxyType({"later": True})
"""Metadata of a field that files of earlier versions lack: its default applies to them."""


def key_of(item: Any) -> str:
    """The name of a field in JSON: the field's name, or `key` of its metadata."""
    name: str = item.metadata.get("key", item.name)
    return name


PAIRS = "pairs"
"""Marks pairs of texts that JSON keeps as an object, sorted by their keys."""

_Read = Callable[[Any], Any]
_T = TypeVar("_T")
_NONE = type(None)


def read(kind: type[_T], body: object) -> _T:
    """The dataclass of a JSON value. Raises LimitError."""
    made: _T = _reader(cast("Any", kind), True)(body)
    return made


def check(value: object) -> None:
    """Raises LimitError for the first field of a dataclass, or of one in it, that cannot be."""
    _reader(cast("Any", type(value)), False)(value)


def body(value: Any) -> Any:
    """The JSON of a dataclass and of all in it, as `dataclasses.asdict`, which copies each text and
    number and takes three times as long."""
    kind = type(value)
    if kind is str or kind is float or kind is int or value is None or kind is bool:
        return value
    if is_dataclass(kind):
        return {name: body(getattr(value, name)) for name in _names_of(kind)}
    if isinstance(value, Mapping):
        return {key: body(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [body(item) for item in value]
    return value


@cache
def _names_of(kind: Any) -> tuple[str, ...]:
    return tuple(item.name for item in fields(kind))


class _PlacedError(LimitError):
    """A refusal that begins with the place of the fault."""


def _at(place: object, error: LimitError) -> LimitError:
    separator = ": "
    if isinstance(error, _PlacedError):
        separator = "/"
    return _PlacedError(f"{place}{separator}{error}")


@cache
def _reader(hint: Any, stored: bool) -> _Read:
    """Reads a value of this type: of JSON, or (`stored` false) as it is in memory."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        base, mark = arguments
        if mark == PAIRS:
            if stored:
                return _pairs
            return _reader(base, False)
        if base is str:
            return _literal(mark)
        return _number(mark, base is int)
    if origin in (Union, types.UnionType):
        return _union(arguments, stored)
    if origin is Literal:
        return _literal(arguments)
    if origin is tuple:
        if arguments[-1] is not Ellipsis:
            return _fixed(tuple(_reader(item, stored) for item in arguments), stored)
        return _sequence(arguments[0], stored)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(_reader(arguments[1], stored), stored)
    if is_dataclass(hint):
        if stored:
            return _object(hint)
        return _checked(hint)
    return _PLAIN[hint]


def _text(value: Any) -> Any:
    if type(value) is str:
        # Many records contain the same few names and reasons.
        if len(value) < 256:
            return intern(value)
        return value
    raise LimitError(f"{shortened(value)} is not text")


def _truth(value: Any) -> Any:
    if value is True or value is False:
        return value
    raise LimitError(f"{shortened(value)} is neither true nor false")


def _any_number(value: Any) -> Any:
    kind = type(value)
    if kind is float or kind is int:
        return value
    raise LimitError(f"{shortened(value)} is not a number")


def _complete(value: Any) -> Any:
    if type(value) is int:
        return value
    raise LimitError(f"{shortened(value)} is not an integer")


_PLAIN: Mapping[Any, _Read] = types.MappingProxyType(
    {str: _text, bool: _truth, float: _any_number, int: _complete, Any: lambda value: value}
)


def _number(quantity: Quantity, whole: bool) -> _Read:
    least, most = quantity.least, quantity.most

    def number(value: Any) -> Any:
        kind = type(value)
        if (kind is int or (kind is float and not whole)) and least <= value <= most:
            return value
        if whole and kind is float:
            raise LimitError(f"{shortened(value)} is not an integer")
        raise LimitError(quantity.rejection(value))

    return number


def _literal(allowed: tuple[Any, ...]) -> _Read:
    known = {one: one for one in allowed}

    def literal(value: Any) -> Any:
        if type(value) is str and value in known:
            return known[value]
        raise LimitError(f"{shortened(value)} is not one of {', '.join(map(str, allowed))}")

    return literal


def _union(arguments: tuple[Any, ...], stored: bool) -> _Read:
    """A type or null. A union of two types is known by the first that takes the value."""
    readers = [_reader(one, stored) for one in arguments if one is not _NONE]
    null = _NONE in arguments
    if len(readers) == 1:
        (only,) = readers

        def optional(value: Any) -> Any:
            if value is None:
                return None
            return only(value)

        return optional

    def first(value: Any) -> Any:
        if value is None and null:
            return None
        refusals = []
        for each in readers:
            try:
                return each(value)
            except LimitError as error:
                refusals.append(str(error))
        raise LimitError(", and ".join(refusals))

    return first


def _sequence(item: Any, stored: bool) -> _Read:
    of = list if stored else tuple
    each = _reader(item, stored)
    quick = _quick_numbers(item)

    def sequence(value: Any) -> Any:
        if type(value) is not of:
            raise LimitError(f"{shortened(value)} is not a list")
        if not value:
            return ()
        if quick is not None and quick(value):
            return tuple(value)
        try:
            read = tuple([each(one) for one in value])
        except LimitError:
            raise _first_fault([each] * len(value), value) from None
        if each is _text:
            return _shared(read)
        return read

    return sequence


@lru_cache(maxsize=4096)
def _shared(texts: tuple[str, ...]) -> tuple[str, ...]:
    """One tuple for all that are equal: each reading of a domain contains the same contents."""
    return texts


def _quick_numbers(item: Any) -> Callable[[Any], bool] | None:
    """Whether a series contains only numbers in their range, without a call for each: a run may
    have thousands. The slow way checks and names the values that it does not accept."""
    null = False
    if get_origin(item) is types.UnionType and _NONE in get_args(item):
        null = True
        (item,) = (one for one in get_args(item) if one is not _NONE)
    base, *marks = get_args(item) if get_origin(item) is Annotated else (item,)
    if base is not float:
        return None
    least, most = (marks[0].least, marks[0].most) if marks else (-float("inf"), float("inf"))
    allowed = {float, int, _NONE} if null else {float, int}

    def quick(value: Any) -> bool:
        kinds = set(map(type, value))
        if not kinds <= allowed:
            return False
        numbers = [one for one in value if one is not None] if _NONE in kinds else value
        return not numbers or (least <= min(numbers) and max(numbers) <= most)

    return quick


def _first_fault(readers: Sequence[_Read], values: Sequence[Any]) -> LimitError:
    """Looked for only once there is one: a series may be long."""
    for place, (each, value) in enumerate(zip(readers, values, strict=True)):
        try:
            each(value)
        except LimitError as error:
            return _at(place, error)
    raise AssertionError("a rejected value was accepted")


def _fixed(readers: tuple[_Read, ...], stored: bool) -> _Read:
    of = list if stored else tuple

    def fixed(value: Any) -> Any:
        if type(value) is not of or len(value) != len(readers):
            raise LimitError(f"{shortened(value)} is not a list of {len(readers)}")
        try:
            return tuple([reader(part) for reader, part in zip(readers, value, strict=True)])
        except LimitError:
            raise _first_fault(readers, value) from None

    return fixed


def _mapping(each: _Read, stored: bool) -> _Read:
    def mapping(value: Any) -> Any:
        if type(value) is not dict if stored else not isinstance(value, Mapping):
            raise LimitError(f"{shortened(value)} is not an object")
        values = {}
        for key, item in value.items():
            name = _text(key)
            try:
                values[name] = each(item)
            except LimitError as error:
                raise _at(key if len(key) < 100 else shortened(key), error) from None
        return values

    return mapping


def _pairs(value: Any) -> Any:
    pairs: Mapping[str, str] = _mapping(_text, True)(value)
    return tuple(sorted(pairs.items()))


def _object(kind: Any) -> _Read:
    hints = get_type_hints(kind, include_extras=True)
    here = [item for item in fields(kind) if item.init]
    required = tuple(
        (key_of(item), _reader(hints[item.name], True)) for item in here if not may_lack(item)
    )
    later = tuple((key_of(i), _reader(hints[i.name], True)) for i in here if may_lack(i))
    names = {key_of(item): item.name for item in here if key_of(item) != item.name}
    impossible = getattr(kind, "impossible", None)

    def object_(body: Any) -> Any:
        if type(body) is not dict:
            if type(body) is kind:  # read before, and given instead of its JSON
                return body
            raise LimitError(f"{shortened(body)} is not an object")
        values: dict[str, Any] = {}
        name = ""
        try:
            for name, each in required:
                values[name] = each(body[name])
            for name, each in later:
                if name in body:
                    values[name] = each(body[name])
        except KeyError:
            raise LimitError(f"{name} is missing") from None
        except LimitError as error:
            raise _at(name, error) from None
        if len(values) != len(body):
            unknown = next(key for key in body if key not in values)
            raise LimitError(f"{shortened(unknown)} is not known")
        if names:
            values = {names.get(key, key): value for key, value in values.items()}
        made = kind(**values)
        if impossible is not None and (reason := impossible(made)) is not None:
            raise LimitError(reason)
        return made

    return object_


def _checked(kind: Any) -> _Read:
    hints = get_type_hints(kind, include_extras=True)
    each = tuple((item.name, _reader(hints[item.name], False)) for item in fields(kind))
    impossible = getattr(kind, "impossible", None)

    def checked(value: Any) -> Any:
        if type(value) is not kind:
            raise LimitError(f"{shortened(value)} is no {kind.__name__}")
        for name, one in each:
            try:
                one(getattr(value, name))
            except LimitError as error:
                raise _at(name, error) from None
        if impossible is not None and (reason := impossible(value)) is not None:
            raise LimitError(reason)
        return value

    return checked


def may_lack(item: Any) -> bool:
    """Whether a file may lack the field."""
    has_default = item.default is not MISSING or item.default_factory is not MISSING
    return has_default and bool(item.metadata.get("later"))
