"""The map of an import: which files hold what, in whose words (docs/importing.md)."""

import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from eeio.errors import RefusedError
from eeio_limits import LimitError
from eeio_limits import quantities as q
from eeio_limits.names import campaign_name
from eeio_power.csv_log import zone_of
from eeio_power.errors import PowerError
from eeio_results import documents

_FOLDER = Path(__file__).parent
# Of a file, or of a run in a log: a map's pattern may take quadratic time.
_LONGEST_NAME = 1000
FACTORS = ("level", "operation", "spatiality", "request_size", "buffer", "disk", "api", "processes")

Words = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Group -> word as the files have it -> the factors that it stands for."""

Key = tuple[tuple[tuple[str, str], ...], int]
"""One run: its factors, sorted, and its repetition."""


@dataclass(frozen=True)
class Labels:
    """How words of a file name or of a table's row become the key of a run."""

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
                raise ValueError(f"the map says nothing of the group {group!r}")
        if repetition is None:
            raise ValueError("nothing tells the repetition")
        return tuple(sorted(factors.items())), repetition

    def key_of_name(self, pattern: str, name: str) -> Key:
        """As `key`, from the named groups of a pattern that must fit the whole name."""
        match = re.fullmatch(pattern, name[:_LONGEST_NAME])
        if match is None:
            raise ValueError(f"the name {name!r} does not fit {pattern!r}")
        return self.key(match.groupdict())


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
    """Reads and checks a map. Raises RefusedError that names the place of a fault."""
    try:
        body = documents.read_yaml(path)
    except OSError as error:
        raise RefusedError(f"{path}: {error.strerror}; --map names the map of the files") from error
    except LimitError as error:
        raise RefusedError(f"{path}: {error}") from error
    for key in documents.keys_of_no_text(body):
        raise RefusedError(f"{path}: the key {q.shortened(key)} is no text: put it in quotes")
    problem = jsonschema.exceptions.best_match(_validator().iter_errors(body))
    if problem is not None:
        place = "/".join(str(part) for part in problem.absolute_path) or "the whole file"
        raise RefusedError(f"{path}: {place}: {problem.message:.300}")
    for campaign in body["campaigns"]:
        _check(path, campaign)
    names = [campaign["name"] for campaign in body["campaigns"]]
    for name in names:
        if names.count(name) > 1:
            raise RefusedError(f"{path}: two campaigns are called {name}")
    for pattern in _patterns(body):
        try:
            with warnings.catch_warnings():
                # What Python may read otherwise one day is no matter of the user's.
                warnings.simplefilter("ignore")
                re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise RefusedError(f"{path}: name: {pattern!r} is no pattern: {error}") from error
    return Map(
        path=path,
        title=body.get("title", path.stem),
        source=body.get("source", ""),
        words=body.get("words", {}),
        not_imported=tuple(body.get("not_imported", ())),
        campaigns=tuple(body["campaigns"]),
    )


# Where a campaign names its files; patterns too.
_FILES = (
    "table", "outputs", "spans", "file", "csv", "csv_of_run", "idle_csv", "blocks",
    "minus_median_of",
)  # fmt: skip


def _check(path: Path, campaign: Mapping[str, Any]) -> None:
    """What the schema cannot tell: names, numbers, zones, and files outside of the folder."""
    where = f"{path}: {campaign['name']}"
    try:
        campaign_name(campaign["name"])
        for part in _objects(campaign):
            for key in _FILES:
                if isinstance(part.get(key), str):
                    _check_file(key, part[key])
            for key, quantity in _NUMBERS.items():
                if key in part:
                    quantity.checked(part[key], key)
            if part.get("divide") == 0:
                raise LimitError("divide: by 0")
            if isinstance(part.get("tz"), str):
                zone_of(part["tz"])
    except (LimitError, PowerError) as error:
        raise RefusedError(f"{where}: {error}") from error


_NUMBERS = {
    "minus": q.FACTOR, "scale": q.FACTOR, "divide": q.FACTOR, "period_s": q.PERIOD,
    "offset_s": q.OFFSET, "accuracy": q.FRACTION, "values_per_sample": q.REPETITIONS,
}  # fmt: skip


def _check_file(key: str, name: str) -> None:
    if "\0" in name or name.startswith("/") or ".." in Path(name).parts or not name.strip("./"):
        raise LimitError(f"{key}: {q.shortened(name)} is no file within the folder")


def _objects(part: Any) -> list[Mapping[str, Any]]:
    """The campaign and all objects in it but its words."""
    if isinstance(part, list):
        return [found for item in part for found in _objects(item)]
    if not isinstance(part, dict):
        return []
    inner = [value for key, value in part.items() if key not in ("words", "machine", "factors")]
    return [part, *_objects(inner)]


def _patterns(body: Mapping[str, Any]) -> list[str]:
    parts = [part for c in body["campaigns"] for part in (c["runs"], c.get("log", {}))]
    return [part["name"] for part in parts if "name" in part]


@cache
def _validator() -> jsonschema.Draft202012Validator:
    text = (_FOLDER / "map.schema.json").read_text(encoding="utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))
