"""How large the test files of an experiment are, and how many, before there are any."""

import math
from collections.abc import Mapping
from pathlib import Path

from eeio.files import inputs
from eeio.machine.as_data.root import memory_bytes
from eeio.measure.profiles.profile import Profile
from eeio.measure.profiles.suite import size_of

_CLASSES = "SWABCDEF"
"""Of the NAS Parallel Benchmarks, each larger than the one before."""


def files_of_a_process(factors: Mapping[str, str]) -> int:
    """Of a profile that makes many: `files` in each of `rounds`; 0 of others."""
    texts = (factors.get(name, "0") for name in ("files", "rounds"))
    files, rounds = (inputs.whole_number(text) or 0 for text in texts)
    return files * rounds


def file_bytes_of(profile: Profile, factors: Mapping[str, str], sizes: str, root: Path) -> int:
    """The forecast uses these: a profile whose buffered measurement needs a file larger than memory
    sets `memory_multiple` in its presets.conf; one without file_size sets `footprint`."""
    preset = _of_that_class(profile, factors, sizes)
    text = factors.get("file_size") or preset.get("footprint", "0")
    size = size_of(profile.tool, "file_size", text)
    if "footprint_each" in preset:
        each = size_of(profile.tool, "footprint_each", preset["footprint_each"])
        processes = inputs.whole_number(factors.get("processes", "1")) or 1
        rounds = inputs.whole_number(factors.get("rounds", "0")) or 0
        # A folder of each process in each round, too.
        size = max(size, each * processes * (files_of_a_process(factors) + rounds))
    if factors.get("buffer") == "on" and "memory_multiple" in preset:
        size = max(size, int(float(preset["memory_multiple"]) * memory_bytes(root)))
    return size


def _of_that_class(profile: Profile, factors: Mapping[str, str], sizes: str) -> Mapping[str, str]:
    """The preset. If the work is a class other than the preset's: the preset with that class, the
    next larger, or the largest. Its bytes are an upper bound."""
    preset = profile.preset(sizes)
    requested = factors.get("class", "")
    if "footprint" not in preset or requested == preset.get("class", ""):
        return preset
    every = sorted(
        (levels for levels in profile.presets.values() if "footprint" in levels),
        key=lambda levels: size_of(profile.tool, "class", levels["footprint"]),
    )
    least = _CLASSES.find(requested)
    larger = (levels for levels in every if _CLASSES.find(levels.get("class", "")) >= least >= 0)
    return next(larger, every[-1])


def in_whole_zones(file_bytes: int, factors: Mapping[str, str], zone_bytes: int) -> int:
    """What a profile takes of a drive that is written in zones: whole ones for each process."""
    processes = inputs.whole_number(factors.get("processes", "1")) or 1
    share_bytes = file_bytes // processes // 4096 * 4096
    return math.ceil(share_bytes / zone_bytes) * zone_bytes * processes
