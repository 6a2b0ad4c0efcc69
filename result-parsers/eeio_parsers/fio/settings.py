"""fio's options, as the fields of a phase."""

from collections.abc import Mapping
from typing import Any

from eeio_parsers.fio.jobs import DIRECTIONS, MIXED
from eeio_parsers.found import KIB, only_one, size

_PATTERNS = dict.fromkeys(("read", "write", "rw", "readwrite", "trim", "trimwrite"), "sequential")


def pattern(rw: object) -> str | None:
    """The access pattern of `rw`."""
    name = str(rw).partition(":")[0]
    if name.startswith("rand"):
        return "random"
    return _PATTERNS.get(name)


def is_direct(direct: object, buffered: object = None) -> bool | None:
    """Whether requests bypass the page cache; None if no option says so."""
    if direct is not None:
        return str(direct) not in ("0", "false")
    if buffered is None:
        return None
    return str(buffered) in ("0", "false")


def request_bytes(options: Mapping[str, Any], direction: str) -> int | None:
    """The one size of the direction; of `4k,8k` the first is that of reads. None for several."""
    if any(name in options for name in ("bsrange", "blocksize_range", "bssplit")):
        return None
    if direction == MIXED:
        return only_one(request_bytes(options, each) for each in DIRECTIONS)
    sizes = str(options.get("bs") or options.get("blocksize") or "").split(",")
    index = min(DIRECTIONS.index(direction), len(sizes) - 1)
    base = KIB
    if options.get("kb_base") == "1000":
        base = 1000
    return size(sizes[index] or sizes[0], base)
