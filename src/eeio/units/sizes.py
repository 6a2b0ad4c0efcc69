"""Sizes as people write them, and numbers as tables print them.

MB is 10^6 bytes and MiB is 2^20 bytes everywhere in eeio.
"""

import re

from eeio.errors import EeioError
from eeio.units.quantities import SIZE, shortened
from eeio.units.quantities import percent as percent

MB = 1_000_000
KIB = 1 << 10
MIB = 1 << 20

_SIZE = re.compile(
    r"\s{0,99}([\d.]{1,20})\s{0,99}([KMGTP]?)(i?)(?:B(?:ytes?)?)?\s{0,99}", re.IGNORECASE
)
_POWERS = ("", "K", "M", "G", "T", "P")


def bytes_of(text: str, kilo: int = KIB) -> float | None:
    """Bytes of `4k`, `4KiB`, `1.5 MiB`, `4096B`: `KiB` is 1024, else a prefix is a power of `kilo`.
    None if it is no size, or a range."""
    match = _SIZE.fullmatch(text)
    if match is None or match[1].count(".") > 1 or match[1] == ".":
        return None
    number = int(match[1]) if match[1].isdigit() else float(match[1])
    factor: int = (KIB if match[3] else kilo) ** _POWERS.index(match[2].upper())
    return number * factor


def parse_size(text: str) -> int:
    """Bytes of a size written as `4096`, `32k`, `4m` or `20g`; suffixes are binary, as in fio."""
    size = None if "." in text else bytes_of(text)
    if size is None:
        raise EeioError(
            f"not a size: {shortened(text)}; write it as 4096, 32k, 4m or 20g (binary units)"
        )
    size_bytes = round(size)
    if not SIZE.contains(size_bytes):
        raise EeioError(f"not a size: {shortened(text)}: {SIZE.rejection(size_bytes)}")
    return size_bytes


def format_size(size_bytes: int) -> str:
    """The shortest exact binary form of a size: 4194304 -> `4 MiB`, 1000 -> `1000 B`."""
    for suffix, factor in (("GiB", 1 << 30), ("MiB", MIB), ("KiB", KIB)):
        if size_bytes >= factor and size_bytes % factor == 0:
            return f"{size_bytes // factor} {suffix}"
    return f"{size_bytes} B"


_PREFIXES = (
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "u"),
    (1e-9, "n"),
)
# For a share, a count, or a time (kiloseconds are not used).
_ONLY_BELOW = ("s",)
_PREFIXED = ("B/s", "B", "Hz", "s", "W", "J", "bytes")


def prefixed(value: float, unit: str) -> tuple[float, str]:
    """The factor to divide by and the unit with its SI prefix: 26648670000, "B/s" -> 1e9, "GB/s";
    1 and the unit itself where it takes none."""
    if unit not in _PREFIXED or value == 0:
        return 1.0, unit
    largest = 1e12
    if unit in _ONLY_BELOW:
        largest = 1.0
    least = 1e-9
    if unit in ("B", "bytes"):
        least = 1.0
    for factor, prefix in _PREFIXES:
        if least <= factor <= largest and abs(value) >= factor:
            return factor, f"{prefix}{'B' if unit == 'bytes' and prefix else unit}"
    return 1.0, unit
