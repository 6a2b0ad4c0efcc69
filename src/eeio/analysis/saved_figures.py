"""Figures of large campaigns, saved in the user's cache from one command to the next.

A file per campaign, with what `store.once` has computed. Its name is the SHA-256 of the campaign's
files and of the code that computes, so that it is of these records and of this eeio
(docs/decisions/0057-saved-figures.md). A campaign's own folder has no such file: others may have
sent it.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, overload

from eeio import analysis, files, record, statistics, traces, units
from eeio.errors import EeioError, LimitError
from eeio.files import typed
from eeio.files.trust import make_folder
from eeio.record import store
from eeio.record.run import Run
from eeio.record.store import Campaign

LEAST_BYTES = 30_000_000
"""Of the records: those of about 10,000 runs, which are read and characterized in two seconds."""
MOST_FILES = 20


@dataclass(frozen=True)
class Figures:
    """`figures` is what `once` has computed of a type, as JSON, by the names that it has there.
    `key` is the name of the file."""

    key: str
    runs: int
    set_aside: int
    figures: Mapping[str, Any]


_KEY = "key of saved figures"
"""In `store.computed`: that of the files before they were read."""


class _Stored(Sequence[Run]):
    """The runs of a campaign, read when one is used."""

    def __init__(self, folder: Path, count: int, of: str) -> None:
        self._folder, self._count, self._of = folder, count, of
        self._read: Sequence[Run] | None = None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Run]:
        return iter(self[:])

    @overload
    def __getitem__(self, place: int) -> Run: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Run]: ...
    def __getitem__(self, place: int | slice) -> Run | Sequence[Run]:
        if self._count == 0:
            return ()[place]
        if self._read is None:
            self._read = getattr(store.load(self._folder), self._of)
            if len(self._read) != self._count:
                raise EeioError(f"{self._folder} has changed meanwhile: start the command again")
        return self._read[place]


def load(folder: Path, cache: Path) -> Campaign:
    """The campaign, with its saved figures if there are any."""
    file = _file(folder, cache)
    if file is None or (figures := _read(file)) is None:
        campaign = store.load(folder)
        store.computed(campaign)[_KEY] = store.Derived(file and file.name)
        return campaign
    campaign = replace(
        store.load(folder, with_runs=False),
        runs=_Stored(folder, figures.runs, "runs"),
        set_aside=_Stored(folder, figures.set_aside, "set_aside"),
    )
    store.computed(campaign).update(
        (name, store.Derived(body, True, "unread")) for name, body in figures.figures.items()
    )
    store.computed(campaign)[_KEY] = store.Derived(file.name)
    return campaign


def save(campaign: Campaign, cache: Path) -> None:
    """Saves what was computed. Does nothing for a small or incomplete campaign, for one whose files
    have changed since they were read, or if the cache cannot be written."""
    every = store.computed(campaign)
    key = every.get(_KEY)
    if key is None or key.value is None or not campaign.is_complete:
        return
    file = _file(campaign.folder, cache)
    if file is None or file.name != key.value:
        return
    lasting = {}
    for name, derived in every.items():
        if derived.lasts:
            lasting[name] = derived
    if all(derived.origin != "computed" for derived in lasting.values()):
        return
    counts = len(campaign.runs), len(campaign.set_aside)
    values = {name: derived.value for name, derived in lasting.items()}
    figures = Figures(file.name, *counts, values)
    with suppress(OSError):
        make_folder(cache)
        with TemporaryDirectory(dir=cache) as place:
            made = Path(place, file.name)
            made.write_text(json.dumps(figures, default=_plain), encoding="utf-8")
            made.replace(file)
        newest = sorted(cache.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in newest[MOST_FILES:]:
            old.unlink()


def _file(folder: Path, cache: Path) -> Path | None:
    """None for a campaign that is read quickly, and for one that cannot be read."""
    digest = hashlib.sha256()
    try:
        if store.Store(folder).runs_path.stat().st_size < LEAST_BYTES:
            return None
        for path in (*store.files(folder), *_code()):
            digest.update(f"{path.name} {path.stat().st_size} ".encode())
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
    except OSError:
        return None
    return cache / f"{digest.hexdigest()}.json"


def _code() -> list[Path]:
    packages = (units, files, record, statistics, traces, analysis)
    return sorted(path for package in packages for path in Path(package.__path__[0]).rglob("*.py"))


def _read(file: Path) -> Figures | None:
    try:
        if file.is_symlink() or not file.is_file():
            return None
        figures = typed.read(Figures, json.loads(file.read_bytes()))
    except (OSError, ValueError, LimitError, RecursionError):
        return None
    if figures.key == file.name:
        return figures
    return None


def _plain(value: object) -> Mapping[str, Any]:
    """A dataclass in the form that `typed.read` accepts."""
    if not is_dataclass(value):
        raise TypeError(f"{type(value).__name__} is no dataclass")
    return {
        typed.key_of(item): dict(part) if item.name == "arguments" else part
        for item in fields(value)
        for part in (getattr(value, item.name),)
    }
