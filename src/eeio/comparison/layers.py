"""Experiments that differ in only one layer of the I/O stack.

From the drive upwards: the device itself, a file system on it, a library's POSIX calls, MPI-IO of
one process, of two in one shared file; HDF5 is above MPI-IO of one process. Everything else is the
same: machine, drive, operation, access pattern, request size, cache layers, flush.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eeio.comparison.cells import Cell
from eeio.record.tools import about

DEVICE, FILE_SYSTEM, POSIX = "device", "file system", "POSIX through the library"
MPI_IO, SHARED, HDF5 = "MPI-IO, 1 process", "MPI-IO, 2 processes, one file", "HDF5"

_BELOW: Mapping[str, tuple[str, ...]] = {
    FILE_SYSTEM: (DEVICE,),
    POSIX: (FILE_SYSTEM, DEVICE),
    MPI_IO: (POSIX, FILE_SYSTEM, DEVICE),
    SHARED: (MPI_IO,),
    HDF5: (MPI_IO,),
}
"""Layer -> its reference layer: the nearest of these that was measured."""

_ALIKE = (
    "machine",
    "device",
    "operation",
    "spatiality",
    "size",
    "buffer",
    "disk",
    "flush",
    "durable",
)
# Arguments that make it another experiment than the layer's plain one.
_PLAIN = {
    "iodepth": "1",
    "engine": "psync",
    "clients": "1",
    "collective": "off",
    "stride": "",
    "replay": "",
}


@dataclass(frozen=True)
class Match:
    """Two experiments, one layer apart."""

    layer: str
    below: str
    upper: Cell
    lower: Cell


def layer_of(cell: Cell) -> str | None:
    """The layer of an experiment; None if it is not a plain one of its layer."""
    factors = cell.factors
    pairs = (pair.partition("=") for pair in factors["arguments"].split())
    arguments = {name: value for name, _, value in pairs}
    told = about(factors["tool"])
    if told.layer_rank is None or factors["operation"] not in ("read", "write"):
        return None
    if any(arguments.get(name, plain) != plain for name, plain in _PLAIN.items()):
        return None
    if factors["operation"] == "write" and factors["durable"] != "yes":
        return None  # the completed part of the work is not known
    if factors["level"] == "device" and factors["target"] != "device":
        return None  # a file in place of the device has a file system in between
    level, api, processes = factors["level"], factors["api"], factors["processes"]
    shared = arguments.get("file") == "shared"
    if told.own_file is not None:
        name, value = told.own_file
        shared = arguments.get(name) != value
    if (level, api, processes) == ("library", "mpiio", "2"):
        if shared:
            return SHARED
        return None
    one = {
        ("device", "posix"): DEVICE,
        ("filesystem", "posix"): FILE_SYSTEM,
        ("library", "posix"): POSIX,
        ("library", "mpiio"): MPI_IO,
        ("library", "hdf5"): HDF5,
    }
    if processes == "1":
        return one.get((level, api))
    return None


def on_one_drive(disks: Mapping[str, str]) -> bool:
    """Whether a campaign's raw device and its directory (`Design.disks`) are on the same drive;
    true if there is at most one of them. False if this is not known."""
    reported = []
    for option in ("device", "directory"):
        if option in disks:
            reported.append(disks[option])
    drives = set()
    for text in reported:
        drives.add(
            tuple(
                w
                for w in text.split(", ")
                if not (w.startswith("partition ") or w[-6:] == " bytes")
            )
        )
    return len(set(reported)) <= 1 or (len(drives) == 1 and drives != {()})


def matches(cells: Iterable[Cell], one_drive: bool = True) -> list[Match]:
    """Every layer of one campaign with the nearest one below it: from small requests to large ones,
    and from the drive upwards. Without `one_drive` no layer has the device below it."""
    of_layer: dict[tuple[str, ...], dict[str, list[Cell]]] = {}
    for cell in cells:
        layer = layer_of(cell)
        if layer is not None and (one_drive or layer != DEVICE):
            key = tuple(cell.factors[name] for name in _ALIKE)
            of_layer.setdefault(key, {}).setdefault(layer, []).append(cell)
    pairs = []
    for layers in sorted(of_layer.values(), key=_place):
        for layer, below in _BELOW.items():
            for upper in _of_one_tool(layers.get(layer, ())):
                lower = next(
                    (pick for name in below if (pick := _under(upper, layers, name))), None
                )
                if lower is not None:
                    pairs.append(Match(layer, lower[0], upper, lower[1]))
    return pairs


def _place(layers: Mapping[str, list[Cell]]) -> tuple[object, ...]:
    cell = next(iter(layers.values()))[0]
    alike = []
    for name in _ALIKE:
        if name != "size":
            alike.append(cell.factors[name])
    return (*alike[:4], cell.request_size_bytes or 0, *alike[4:])


def _of_one_tool(cells: Iterable[Cell]) -> list[Cell]:
    known = list(cells)
    first = min(map(_rank, known), default=0)
    return [cell for cell in known if _rank(cell) == first]


def _rank(cell: Cell) -> int:
    rank = about(cell.factors["tool"]).layer_rank
    assert rank is not None, "the tool represents a layer"
    return rank


def _under(upper: Cell, layers: Mapping[str, list[Cell]], layer: str) -> tuple[str, Cell] | None:
    """The one experiment of that layer on the same target; a device is below every target."""
    known = []
    for cell in _of_one_tool(layers.get(layer, ())):
        if layer == DEVICE or cell.factors["target"] == upper.factors["target"]:
            known.append(cell)
    if len(known) == 1:
        return (layer, known[0])
    return None
