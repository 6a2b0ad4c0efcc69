"""The map of an import: which files hold what, in whose words (docs/importing.md)."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from eeio.errors import RefusedError

_FOLDER = Path(__file__).parent
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
                repetition = int(word)
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
        match = re.fullmatch(pattern, name)
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
        body = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RefusedError(f"{path}: {error.strerror}; --map names the map of the files") from error
    except yaml.YAMLError as error:
        raise RefusedError(f"{path}: not YAML: {error}") from error
    problem = jsonschema.exceptions.best_match(_validator().iter_errors(body))
    if problem is not None:
        place = "/".join(str(part) for part in problem.absolute_path) or "the whole file"
        raise RefusedError(f"{path}: {place}: {problem.message}")
    names = [campaign["name"] for campaign in body["campaigns"]]
    for name in names:
        if names.count(name) > 1:
            raise RefusedError(f"{path}: two campaigns are called {name}")
    for pattern in _patterns(body):
        try:
            re.compile(pattern)
        except re.error as error:
            raise RefusedError(f"{path}: name: {pattern!r} is no pattern: {error}") from error
    return Map(
        path=path,
        title=body.get("title", path.stem),
        source=body.get("source", ""),
        words=body.get("words", {}),
        not_imported=tuple(body.get("not_imported", ())),
        campaigns=tuple(body["campaigns"]),
    )


def _patterns(body: Mapping[str, Any]) -> list[str]:
    parts = [part for c in body["campaigns"] for part in (c["runs"], c.get("log", {}))]
    return [part["name"] for part in parts if "name" in part]


@cache
def _validator() -> jsonschema.Draft202012Validator:
    text = (_FOLDER / "map.schema.json").read_text(encoding="utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))
