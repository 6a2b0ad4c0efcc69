"""Sizes as people write them, and numbers as tables print them.

MB is 10^6 bytes and MiB is 2^20 bytes everywhere in eeio.
"""

import re

from eeio_limits.quantities import SIZE, shortened
from eeio_limits.quantities import percent as percent
from eeio_results.errors import EeioError

MB = 1_000_000
KIB = 1 << 10
MIB = 1 << 20

_SIZE = re.compile(r"(\d{1,19})\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_BINARY = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def parse_size(text: str) -> int:
    """Bytes of a size written as `4096`, `32k`, `4m` or `20g`; suffixes are binary, as in fio."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise EeioError(
            f"not a size: {shortened(text)}; write it as 4096, 32k, 4m or 20g (binary units)"
        )
    size_bytes = int(match[1]) * _BINARY[match[2].lower()]
    if not SIZE.contains(size_bytes):
        raise EeioError(f"not a size: {shortened(text)}: {SIZE.rejection(size_bytes)}")
    return size_bytes


def format_size(size_bytes: int) -> str:
    """The shortest exact binary form of a size: 4194304 -> `4 MiB`, 1000 -> `1000 B`."""
    for suffix, factor in (("GiB", 1 << 30), ("MiB", MIB), ("KiB", KIB)):
        if size_bytes >= factor and size_bytes % factor == 0:
            return f"{size_bytes // factor} {suffix}"
    return f"{size_bytes} B"


_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""),
             (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))  # fmt: skip
# For a share, a count, or a time (kiloseconds are not used).
_ONLY_BELOW = ("s",)
_PREFIXED = ("B/s", "B", "Hz", "s", "W", "J", "bytes")


def prefixed(value: float, unit: str) -> tuple[float, str]:
    """The factor to divide by and the unit with its SI prefix: 26648670000, "B/s" -> 1e9, "GB/s";
    1 and the unit itself where it takes none."""
    if unit not in _PREFIXED or value == 0:
        return 1.0, unit
    largest = 1.0 if unit in _ONLY_BELOW else 1e12
    least = 1.0 if unit in ("B", "bytes") else 1e-9
    for factor, prefix in _PREFIXES:
        if least <= factor <= largest and abs(value) >= factor:
            return factor, f"{prefix}{'B' if unit == 'bytes' and prefix else unit}"
    return 1.0, unit
