"""How large the test files of an experiment are, and how many, before there are any."""

from collections.abc import Mapping
from pathlib import Path

from eeio.machine.root import memory_bytes
from eeio.profiles.profile import Profile
from eeio.profiles.suite import size_of
from eeio_limits import inputs

_CLASSES = "SWABCDEF"
"""Of the NAS Parallel Benchmarks, each larger than the one before."""


def files_of_a_process(factors: Mapping[str, str]) -> int:
    """Of a profile that makes many: `files` in each of `rounds`; 0 of others."""
    told = (factors.get(name, "0") for name in ("files", "rounds"))
    files, rounds = (inputs.whole_number(word) or 0 for word in told)
    return files * rounds


def file_bytes_of(profile: Profile, factors: Mapping[str, str], sizes: str, root: Path) -> int:
    """A profile whose buffered measurement needs a file larger than memory sees to that itself
    (`memory_multiple` in its presets.conf), and one that has no file_size tells its `footprint`;
    the forecast has to know."""
    preset = _of_that_class(profile, factors, sizes)
    told = factors.get("file_size") or preset.get("footprint", "0")
    size = size_of(profile.tool, "file_size", told)
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
    """The preset; of a profile whose work is a class, and asked for another one, that which has it
    or the next larger, else the largest: what is told of its bytes is what they are at most."""
    preset = profile.preset(sizes)
    asked = factors.get("class", "")
    if "footprint" not in preset or asked == preset.get("class", ""):
        return preset
    every = sorted(
        (one for one in profile.presets.values() if "footprint" in one),
        key=lambda one: size_of(profile.tool, "class", one["footprint"]),
    )
    least = _CLASSES.find(asked)
    larger = (one for one in every if _CLASSES.find(one.get("class", "")) >= least >= 0)
    return next(larger, every[-1])
