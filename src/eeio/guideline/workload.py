"""A mix of experiments, each with its share of the bytes or of the time."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, get_args

from eeio.analysis.io_label import io_label, sized
from eeio.errors import EeioError
from eeio.record.run import FLUSHES, Switch

ShareOf = Literal["bytes", "time"]

COMBINATIONS: Mapping[ShareOf, str] = {
    "bytes": (
        "harmonic mean of the experiments' bandwidths, weighted by share of bytes; "
        "power weighted by the time each share takes"
    ),
    "time": (
        "shares of the traditional system's time, turned into shares of bytes by its bandwidths; "
        "then the harmonic mean weighted by bytes, power weighted by time"
    ),
}


@dataclass(frozen=True)
class CellKey:
    """The factors by which experiments of two systems are joined; `buffer`, `disk` and `flush` None
    mean "any" in a mix. For an experiment `flush` is None for reads, and if not known."""

    operation: str
    spatiality: str
    request_size_bytes: int
    buffer: Switch | None
    disk: Switch | None = None
    flush: Annotated[str, FLUSHES] | None = None

    @property
    def label(self) -> str:
        """`sequential write 32 KiB, buffer off, flush end`."""
        kind = sized(io_label(self.operation, self.spatiality), self.request_size_bytes)
        text = f"{kind}, buffer {self.buffer or 'not stated'}"
        if self.disk:
            text += f", disk cache {self.disk}"
        if self.flush:
            return f"{text}, flush {self.flush}"
        return text

    def covers(self, other: "CellKey") -> bool:
        """Whether the other has these factors; a factor that is not stated covers any."""
        alike = replace(other, buffer=self.buffer, disk=self.disk, flush=self.flush) == self
        stated = ((self.buffer, other.buffer), (self.disk, other.disk), (self.flush, other.flush))
        return alike and all(mine in (None, its) for mine, its in stated)


@dataclass(frozen=True)
class WorkloadEntry:
    """One experiment of a mix and its share, 0 to 1."""

    key: CellKey
    share: float


@dataclass(frozen=True)
class Workload:
    """A mix whose shares sum to 1; `messages` describes changes made for that."""

    name: str
    entries: tuple[WorkloadEntry, ...]
    share_of: ShareOf = "bytes"
    messages: tuple[str, ...] = ()


def make_workload(
    name: str, entries: Sequence[WorkloadEntry], share_of: ShareOf = "bytes"
) -> Workload:
    """A workload with its shares normalised. Raises EeioError for an invalid mix."""
    if share_of not in get_args(ShareOf):
        raise EeioError(f"share_of {share_of!r}: choose bytes or time")
    if not entries:
        raise EeioError(f"workload {name!r} has no entries; list one experiment at least")
    for index, entry in enumerate(entries):
        if not (math.isfinite(entry.share) and entry.share > 0):
            raise EeioError(
                f"workload {name!r}, {entry.key.label}: share {entry.share} is not positive; "
                "leave the entry out if it has none"
            )
        for other in entries[:index]:
            if entry.key.covers(other.key) or other.key.covers(entry.key):
                raise EeioError(f"workload {name!r}: {entry.key.label} is repeated")
    total = math.fsum(entry.share for entry in entries)
    if abs(total - 1.0) <= 1e-9:
        return Workload(name, tuple(entries), share_of)
    made = tuple(replace(entry, share=entry.share / total) for entry in entries)
    message = f"the shares of workload {name!r} sum to {total:.6g}; they were divided by it"
    return Workload(name, made, share_of, (message,))
