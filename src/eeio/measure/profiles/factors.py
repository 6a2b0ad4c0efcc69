"""Factors of a profile: values, defaults and conditions, read from its factors.conf.

    iodepth  number 1..1024     default=1  | requests in flight of each process
    buffer   words  on,off      default=on | page cache
    when operation=read require flush=     | a read does not flush; leave it out
    when flush= set flush=end

`test-profiles/common/factors.awk` reads the same file for the profile's scripts, and a test
compares their messages. docs/how-to/adding-a-profile.md describes the file.
"""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eeio.errors import LimitError, RejectedError
from eeio.files import inputs

KINDS = ("words", "number", "size", "text")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
_SIZE = re.compile(r"([1-9][0-9]{0,13})([kmg]?)")
_SPAN = re.compile(r"([^.]+)\.\.([^.]+)")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_TERM = re.compile(r"([a-z0-9_*/%]+)(!=|>=|<=|=)(\S*)")
_PROGRAM = re.compile(r"program:([a-z0-9-]+)")
_BRACES = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_OPTIONS = frozenset(("default", "unit", "step", "or", "preset", "optional", "unlisted"))


def _bytes_of(size: str) -> int:
    """0 for an empty value, and for 0."""
    match = _SIZE.fullmatch(size)
    if match is None:
        return 0
    return int(match[1]) * _UNITS[match[2]]


@dataclass(frozen=True)
class Factor:
    """A factor. `values` are comma-separated words, or a range such as 4k..8m; a size may also be
    `other`. With `from_preset` presets.conf has the value unless it is given. One that is not
    `listed` is for former arguments, or for the presets."""

    name: str
    kind: str
    values: str
    default: str
    unit: str
    meaning: str
    step: str
    other: str | None
    from_preset: bool
    is_optional: bool
    listed: bool

    @property
    def words(self) -> list[str]:
        """The allowed words; empty for other kinds."""
        if self.kind != "words":
            return []
        return self.values.split(",")

    @property
    def span(self) -> tuple[str, str]:
        """The least and the greatest value of a number or a size."""
        match = _SPAN.fullmatch(self.values)
        assert match is not None
        return match[1], match[2]

    def problem(self, value: str) -> str | None:
        """Why a value is rejected; None if it is allowed."""
        if self.kind == "text" or value == self.other:
            return None
        if self.kind == "words":
            if value in self.words:
                return None
            return f"{self.name}={value}: give one of: {' '.join(self.words)}"
        first, last = self.span
        if self.kind == "number":
            if _NUMBER.fullmatch(value) and int(first) <= int(value) <= int(last):
                return None
            return f"{self.name}={value}: give a whole number from {first} to {last}"
        if not _SIZE.fullmatch(value):
            return f"{self.name}={value}: give a size such as 4k, 32k, 4m or 20g"
        size_bytes = _bytes_of(value)
        is_multiple = not self.step or size_bytes % _bytes_of(self.step) == 0
        if is_multiple and _bytes_of(first) <= size_bytes <= _bytes_of(last):
            return None
        wanted = "a size"
        if self.step:
            wanted = f"a multiple of {self.step}"
        other = ""
        if self.other is not None:
            other = f"{self.other}, or "
        return f"{self.name}={value}: give {other}{wanted} from {first} to {last}"

    def number(self, value: str) -> int:
        """The value in a calculation: bytes of a size, 0 if it is empty."""
        if self.kind == "size":
            return _bytes_of(value)
        if not _NUMBER.fullmatch(value):
            return 0
        return int(value)


@dataclass(frozen=True)
class _Term:
    """`left SIGN right`, or `program:NAME`, which is true if that program is installed."""

    left: str
    sign: str
    right: str

    def is_true(self, factors: Mapping[str, Factor], values: Mapping[str, str]) -> bool:
        if self.sign == ":":
            return shutil.which(self.right) is not None
        if self.sign in ("=", "!=") and self.left in factors:
            return (values[self.left] in self.right.split(",")) == (self.sign == "=")
        left = _calculated(self.left, factors, values)
        right = _calculated(self.right, factors, values)
        if self.sign in ("=", "!="):
            return (left == right) == (self.sign == "=")
        if self.sign == ">=":
            return left >= right
        return left <= right


def _calculated(text: str, factors: Mapping[str, Factor], values: Mapping[str, str]) -> int:
    """Of * / and %, from left to right, in whole numbers. A division by 0 is 0."""
    first, *rest = re.split(r"([*/%])", text)
    result = _operand(first, factors, values)
    for sign, name in zip(rest[::2], rest[1::2], strict=True):
        number = _operand(name, factors, values)
        if sign == "*" or number == 0:
            result *= number
        elif sign == "/":
            result //= number
        else:
            result %= number
    return result


def _operand(text: str, factors: Mapping[str, Factor], values: Mapping[str, str]) -> int:
    if text in factors:
        return factors[text].number(values[text])
    return int(text)


@dataclass(frozen=True)
class _Rule:
    """If all terms of `when` are true, those of `required` must be, and `target` gets `source`."""

    when: tuple[_Term, ...]
    required: tuple[_Term, ...]
    target: str
    source: str
    message: str

    @property
    def names(self) -> frozenset[str]:
        """Those that occur in its terms, values among them."""
        sides = [side for term in (*self.when, *self.required) for side in (term.left, term.right)]
        return frozenset(name for side in sides for name in re.split(r"[*/%,]", side))


@dataclass(frozen=True)
class Factors:
    """The factors of a profile. `never` has messages for values that need their own."""

    by_name: Mapping[str, Factor]
    never: Mapping[tuple[str, str], str]
    rules: tuple[_Rule, ...]

    def problem(
        self, given: Sequence[str], preset: Mapping[str, str], no_preset: str
    ) -> str | None:
        """Why `key=value` arguments are rejected; None if they are accepted. `no_preset` is the
        message for a missing value of the preset. Nothing that depends on the machine is checked,
        except `program:`."""
        values: dict[str, str] = {}
        for argument in given:
            name, separator, value = argument.partition("=")
            if not separator or name not in self.by_name:
                listed = " ".join(f.name for f in self.by_name.values() if f.listed)
                return f"unknown factor '{argument}': known are {listed}"
            values[name] = value
            if (wrong := self._problem_of(name, value)) is not None:
                return wrong
        for name, factor in self.by_name.items():
            if name in values:
                continue
            values[name] = preset.get(name, "") if factor.from_preset else factor.default
            if not factor.from_preset or (factor.is_optional and not values[name]):
                continue
            if not values[name]:
                return no_preset
            if (wrong := self._problem_of(name, values[name])) is not None:
                return wrong
        return self._problem_of_rules(values)

    def _problem_of(self, name: str, value: str) -> str | None:
        return self.never.get((name, value)) or self.by_name[name].problem(value)

    def _problem_of_rules(self, values: dict[str, str]) -> str | None:
        for rule in self.rules:
            if not all(term.is_true(self.by_name, values) for term in rule.when):
                continue
            if not all(term.is_true(self.by_name, values) for term in rule.required):
                return _filled(rule.message, values)
            if rule.target:
                values[rule.target] = _filled(rule.source, values)
        return None


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _BRACES.sub(lambda match: values[match[1]], text)


def read(path: Path) -> Factors | None:
    """The factors in a file; None if it does not exist. RejectedError for one that is invalid."""
    if not path.is_file():
        return None
    try:
        text = inputs.read_text(path, inputs.DEFINITION_BYTES)
    except (OSError, LimitError) as error:
        raise RejectedError(f"{path}: {error}") from error
    factors: dict[str, Factor] = {}
    never: dict[tuple[str, str], str] = {}
    rules: list[_Rule] = []
    for number, line in enumerate(text.splitlines(), 1):
        left, _, right = line.partition("|")
        fields, meaning = left.split(), right.strip()
        if not fields or fields[0].startswith("#"):
            continue
        try:
            if fields[0] == "prefix" and len(fields) == 2:
                continue  # for the shell
            if fields[0] == "never":
                (argument,) = fields[1:]
                name, _, value = argument.partition("=")
                never[factors[name].name, value] = meaning
            elif fields[0] in ("when", "require"):
                rules.append(_rule(fields, meaning, factors))
            else:
                factor = _factor(fields, meaning)
                if factor.name in factors:
                    raise ValueError("repeated factor")
                factors[factor.name] = factor
        except (KeyError, ValueError) as error:
            raise RejectedError(f"{path}:{number}: not a factor or condition: {error}") from error
    return Factors(factors, never, tuple(rules))


def _factor(fields: Sequence[str], meaning: str) -> Factor:
    name, kind, values, *rest = fields
    options = {key: value for key, _, value in (field.partition("=") for field in rest)}
    if not _NAME.fullmatch(name) or kind not in KINDS or not meaning:
        raise ValueError("give NAME words|number|size|text VALUES ... | MEANING")
    if unknown := options.keys() - _OPTIONS:
        raise ValueError(f"unknown option {min(unknown)}")
    factor = Factor(
        name=name,
        kind=kind,
        values=values,
        default=options.get("default", ""),
        unit=options.get("unit", ""),
        meaning=meaning,
        step=options.get("step", ""),
        other=options.get("or"),
        from_preset="preset" in options,
        is_optional="optional" in options,
        listed="unlisted" not in options,
    )
    if kind in ("number", "size"):
        form = _SIZE
        if kind == "number":
            form = _NUMBER
        match = _SPAN.fullmatch(values)
        if match is None or not all(form.fullmatch(end) for end in match.groups()):
            raise ValueError("give the values as FIRST..LAST")
    if factor.default and (wrong := factor.problem(factor.default)) is not None:
        raise ValueError(wrong)
    return factor


def _rule(fields: Sequence[str], message: str, factors: Mapping[str, Factor]) -> _Rule:
    sign = next((field for field in fields if field in ("require", "set")), "")
    if not sign:
        raise ValueError("give when TERM ... require TERM ... or set NAME=VALUE")
    middle = fields.index(sign)
    when = tuple(_terms(fields[1:middle], factors))
    if sign == "require":
        if not message:
            raise ValueError("a condition needs a message")
        checked = tuple(_terms(fields[middle + 1 :], factors))
        rule = _Rule(when, checked, "", "", message)
    else:
        (assignment,) = fields[middle + 1 :]
        target, _, source = assignment.partition("=")
        rule = _Rule(when, (), factors[target].name, source, "")
    for name in _BRACES.findall(rule.message + rule.source):
        _check_known(name, factors)
    return rule


def _check_known(name: str, factors: Mapping[str, Factor]) -> None:
    if name not in factors:
        raise ValueError(f"no factor {name} above this line")


def _terms(fields: Sequence[str], factors: Mapping[str, Factor]) -> Iterator[_Term]:
    for field in fields:
        if (program := _PROGRAM.fullmatch(field)) is not None:
            yield _Term("", ":", program[1])
            continue
        match = _TERM.fullmatch(field)
        if match is None:
            raise ValueError(f"{field} is not a condition such as buffer=off or files>=2")
        left, sign, right = match.groups()
        sides = [left, right]
        if sign in ("=", "!=") and left in factors:
            sides = [left]
        for name in (name for side in sides for name in re.split(r"[*/%]", side)):
            if not _NUMBER.fullmatch(name):
                _check_known(name, factors)
        yield _Term(left, sign, right)
