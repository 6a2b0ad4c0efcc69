"""The map of an import: files, their contents and labels (docs/how-to/import-results.md)."""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from eeio.errors import LimitError, RejectedError
from eeio.files import documents, typed
from eeio.files.typed import LATER
from eeio.record.run import DEMO, DOMAINS, KINDS
from eeio.units import quantities as q
from eeio.units.names import campaign_name
from eeio_parsers import formats
from eeio_power.csv_log import zone_of
from eeio_power.delay import LIMIT as DELAY
from eeio_power.errors import PowerError

_FOLDER = Path(__file__).parent
# Of a file, or of a run in a log: a map's pattern may take quadratic time.
_LONGEST_NAME = 1000
FACTORS = ("level", "operation", "spatiality", "request_size", "buffer", "disk", "api", "processes")

Words = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Group -> word in the files -> its factors."""

Key = tuple[tuple[tuple[str, str], ...], int]
"""One run: its factors, sorted, and its repetition."""


@dataclass(frozen=True)
class Labels:
    """How parts of a file name or of a table's row become the key of a run."""

    words: Words
    common: Mapping[str, str]

    def key(self, groups: Mapping[str, str | None]) -> Key:
        """ValueError for a word that the map does not know, or without a repetition."""
        factors = dict(self.common)
        repetition: int | None = None
        for group, word in groups.items():
            if word is None:
                continue
            if group == "repetition":
                repetition = int(q.COUNT.of_text(word, "repetition"))
            elif group in self.words:
                known = self.words[group]
                if word not in known:
                    raise ValueError(f"{group} {word!r} is not in the map: {', '.join(known)}")
                factors |= known[word]
            elif group in FACTORS:
                factors[group] = word
            else:
                raise ValueError(f"the map does not define the group {group!r}")
        if repetition is None:
            raise ValueError("the repetition is unknown")
        return tuple(sorted(factors.items())), repetition

    def key_of_name(self, pattern: str, name: str, **further: str) -> Key:
        """As `key`, from the named groups of a pattern that must fit the whole name, and from
        `further` ones."""
        match = re.fullmatch(pattern, name[:_LONGEST_NAME])
        if match is None:
            raise ValueError(f"the name {name!r} does not fit {pattern!r}")
        return self.key({**match.groupdict(), **further})


@dataclass(frozen=True)
class Map:
    """A checked map; `campaigns` keep the form of the schema."""

    path: Path
    title: str
    source: str
    words: Words
    not_imported: tuple[Mapping[str, str], ...]
    """Files that no campaign uses, and why."""
    campaigns: tuple[Mapping[str, Any], ...]

    def labels(self, campaign: Mapping[str, Any]) -> Labels:
        return Labels({**self.words, **campaign.get("words", {})}, campaign.get("factors", {}))


@cache
def shipped() -> dict[str, Path]:
    """Published data sets that eeio brings a map for, by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.yaml"))}


def load(path: Path) -> Map:
    """Reads and checks a map. Raises RejectedError that names the place of a fault."""
    try:
        body = documents.read_yaml(path)
    except OSError as error:
        raise RejectedError(
            f"{path}: {error.strerror}; --map names the map of the files"
        ) from error
    except LimitError as error:
        raise RejectedError(f"{path}: {error}") from error
    for key in documents.keys_of_no_text(body):
        raise RejectedError(f"{path}: the key {q.shortened(key)} is not text: put it in quotes")
    try:
        typed.read(_File, body)
    except LimitError as error:
        raise RejectedError(f"{path}: {error!s:.400}") from error
    for campaign in body["campaigns"]:
        _check(path, campaign)
    names = [campaign["name"] for campaign in body["campaigns"]]
    for name in names:
        if names.count(name) > 1:
            raise RejectedError(f"{path}: two campaigns are called {name}")
    for pattern in _patterns(body):
        try:
            with warnings.catch_warnings():
                # Warnings about future versions of Python do not concern the user.
                warnings.simplefilter("ignore")
                re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise RejectedError(f"{path}: name: {pattern!r} is not a pattern: {error}") from error
    return Map(
        path=path,
        title=body.get("title", path.stem),
        source=body.get("source", ""),
        words=body.get("words", {}),
        not_imported=tuple(body.get("not_imported", ())),
        campaigns=tuple(body["campaigns"]),
    )


def _check(path: Path, campaign: Mapping[str, Any]) -> None:
    """Checks beyond the types: time zones, and files outside the folder."""
    where = f"{path}: {campaign['name']}"
    try:
        for part in _objects(campaign):
            for key in _FILES:
                if isinstance(part.get(key), str):
                    _check_file(key, part[key])
            if isinstance(part.get("tz"), str):
                zone_of(part["tz"])
    except (LimitError, PowerError) as error:
        raise RejectedError(f"{where}: {error}") from error


# Where a campaign names its files; patterns too.
_FILES = (
    "table",
    "outputs",
    "spans",
    "file",
    "csv",
    "csv_of_run",
    "idle_csv",
    "blocks",
    "minus_median_of",
)


def _check_file(key: str, name: str) -> None:
    if "\0" in name or name.startswith("/") or ".." in Path(name).parts or not name.strip("./"):
        raise LimitError(f"{key}: {q.shortened(name)} is not a file in the folder")


def _objects(part: Any) -> list[Mapping[str, Any]]:
    """The campaign and all objects in it except its labels."""
    if isinstance(part, list):
        return [found for item in part for found in _objects(item)]
    if not isinstance(part, dict):
        return []
    inner = [value for key, value in part.items() if key not in ("words", "machine", "factors")]
    return [part, *_objects(inner)]


def _patterns(body: Mapping[str, Any]) -> list[str]:
    parts = [part for c in body["campaigns"] for part in (c["runs"], c.get("log", {}))]
    return [part["name"] for part in parts if "name" in part]


# ---- the form of a file: read to be checked, and used as it was written ----

_Columns = Mapping[str, str]
_LONGEST_PATTERN, _LONGEST_FORMAT = 500, 100
_ACCURACY = q.Quantity("accuracy", "", 1e-9, q.FRACTION.most)


def _one_of(part: Any, **needs: tuple[str, ...]) -> str | None:
    """Exactly one of these fields is given, and with it those that it needs."""
    given = [name for name in needs if getattr(part, name)]
    if len(given) != 1:
        return f"give one of {', '.join(needs)}"
    lacking = [name for name in needs[given[0]] if not getattr(part, name)]
    if lacking:
        return f"{given[0]} needs {', '.join(lacking)}"
    return None


def _too_long(part: Any, **most: int) -> str | None:
    for name, length in most.items():
        if len(getattr(part, name)) > length:
            return f"{name}: longer than {length} characters"
    return None


@dataclass(frozen=True)
class _Unused:
    files: str
    reason: str


@dataclass(frozen=True)
class _LeftOut:
    factors: Mapping[str, str]
    reason: str


@dataclass(frozen=True)
class _Log:
    file: str
    name: str
    offset_s: Annotated[float, q.OFFSET] = field(default=0, metadata=LATER)

    def impossible(self) -> str | None:
        return _too_long(self, name=_LONGEST_PATTERN)


@dataclass(frozen=True)
class _Values:
    bandwidth_bytes_per_s: str
    bytes_moved: str = field(default="", metadata=LATER)
    duration_s: str = field(default="", metadata=LATER)

    def __bool__(self) -> bool:
        return bool(self.bandwidth_bytes_per_s)


_NO_NUMBER = -1


@dataclass(frozen=True)
class _ReportName:
    """The factors of a report of a file: of that number, as `eeio import --dry-run` shows it, or of
    those below a line that contains a text."""

    factors: Mapping[str, str]
    number: Annotated[int, q.COUNT] = field(default=_NO_NUMBER, metadata=LATER)
    below: str = field(default="", metadata=LATER)

    def impossible(self) -> str | None:
        given = (self.number != _NO_NUMBER) + bool(self.below)
        if given == 1:
            return None
        return "give one of number, below"


@dataclass(frozen=True)
class _Runs:
    table: str = field(default="", metadata=LATER)
    columns: _Columns = field(default_factory=dict, metadata=LATER)
    values: _Values = field(default_factory=lambda: _Values(""), metadata=LATER)
    outputs: str = field(default="", metadata=LATER)
    format: Annotated[str, tuple(formats.names())] = field(default="", metadata=LATER)
    name: str = field(default="", metadata=LATER)
    reports: tuple[_ReportName, ...] = field(default=(), metadata=LATER)
    spans: str = field(default="", metadata=LATER)
    run: str = field(default="", metadata=LATER)
    time: str = field(default="", metadata=LATER)
    tz: str = field(default="", metadata=LATER)

    def impossible(self) -> str | None:
        return _too_long(self, name=_LONGEST_PATTERN) or _one_of(
            self, table=("columns", "values"), outputs=(), spans=("run", "time", "name")
        )


@dataclass(frozen=True)
class _Watts:
    column: str
    minus: Annotated[float, q.FACTOR] = field(default=0, metadata=LATER)
    minus_median_of: str = field(default="", metadata=LATER)
    scale: Annotated[float, q.FACTOR] = field(default=1, metadata=LATER)
    divide: Annotated[float, q.FACTOR] = field(default=1, metadata=LATER)

    def impossible(self) -> str | None:
        if self.divide == 0:
            return "divide: by 0"
        return None


@dataclass(frozen=True)
class _Power:
    domain: Annotated[str, DOMAINS]
    meter: str
    kind: Annotated[str, tuple(kind for kind in KINDS if kind != DEMO)] = field(
        default="", metadata=LATER
    )
    accuracy: Annotated[float, _ACCURACY] = field(default=0, metadata=LATER)
    table: str = field(default="", metadata=LATER)
    columns: _Columns = field(default_factory=dict, metadata=LATER)
    watts: tuple[_Watts, ...] = field(default=(), metadata=LATER)
    period_s: Annotated[float, q.PERIOD] = field(default=0, metadata=LATER)
    idle: _Columns = field(default_factory=dict, metadata=LATER)
    csv: str = field(default="", metadata=LATER)
    csv_of_run: str = field(default="", metadata=LATER)
    map: str = field(default="", metadata=LATER)
    tz: str = field(default="", metadata=LATER)
    format: str = field(default="", metadata=LATER)
    delimiter: Annotated[str, ("comma", "semicolon", "tab", "space", "bar")] = field(
        default="", metadata=LATER
    )
    decimal: Annotated[str, ("point", "comma")] = field(default="", metadata=LATER)
    encoding: str = field(default="", metadata=LATER)
    offset_s: Annotated[float, q.OFFSET] = field(default=0, metadata=LATER)
    lag_s: Annotated[float, DELAY] = field(default=0, metadata=LATER)
    averages_s: Annotated[float, DELAY] = field(default=0, metadata=LATER)
    mean: Annotated[str, ("samples", "time")] = field(default="", metadata=LATER)
    idle_until: str = field(default="", metadata=LATER)
    idle_csv: str = field(default="", metadata=LATER)
    idle_map: str = field(default="", metadata=LATER)

    def impossible(self) -> str | None:
        return _too_long(self, format=_LONGEST_FORMAT) or _one_of(
            self, table=("watts",), csv=("map",), csv_of_run=("map",)
        )


@dataclass(frozen=True)
class _Processor:
    table: str = field(default="", metadata=LATER)
    columns: _Columns = field(default_factory=dict, metadata=LATER)
    period_s: Annotated[float, q.PERIOD] = field(default=0, metadata=LATER)
    csv: str = field(default="", metadata=LATER)
    time: str = field(default="", metadata=LATER)
    format: str = field(default="", metadata=LATER)
    tz: str = field(default="", metadata=LATER)
    blocks: str = field(default="", metadata=LATER)
    values_per_sample: Annotated[int, q.REPETITIONS] = field(default=0, metadata=LATER)
    use_percent: str = field(default="", metadata=LATER)
    frequency_mhz: tuple[str, ...] = field(default=(), metadata=LATER)

    def impossible(self) -> str | None:
        return _too_long(self, format=_LONGEST_FORMAT) or _one_of(
            self, table=(), blocks=("values_per_sample",), csv=("time", "format")
        )


@dataclass(frozen=True)
class _Campaign:
    name: str
    machine: Mapping[str, Any]
    runs: _Runs
    title: str = field(default="", metadata=LATER)
    words: Words = field(default_factory=dict, metadata=LATER)
    tool: str = field(default="", metadata=LATER)
    factors: Mapping[str, str] = field(default_factory=dict, metadata=LATER)
    log: _Log = field(default_factory=lambda: _Log("", ""), metadata=LATER)
    leave_out: tuple[_LeftOut, ...] = field(default=(), metadata=LATER)
    power: tuple[_Power, ...] = field(default=(), metadata=LATER)
    processor: _Processor = field(default_factory=_Processor, metadata=LATER)

    def impossible(self) -> str | None:
        try:
            campaign_name(self.name)
        except LimitError as error:
            return str(error)
        for name in ("hostname", "architecture", "kernel"):
            if name not in self.machine:
                return f"machine: {name} is missing"
        return None


@dataclass(frozen=True)
class _File:
    """The meaning of the files in a folder of results (docs/how-to/import-results.md)."""

    campaigns: tuple[_Campaign, ...]
    title: str = field(default="", metadata=LATER)
    source: str = field(default="", metadata=LATER)
    words: Words = field(default_factory=dict, metadata=LATER)
    not_imported: tuple[_Unused, ...] = field(default=(), metadata=LATER)

    def impossible(self) -> str | None:
        if self.campaigns:
            return None
        return "campaigns: none"
