"""`--sweep`: values of a factor other than the suite's, each combination an experiment.

    threads=1..256              1, 2, 4 ... 256: doubled
    file_size=1m..9m+2m         1m, 3m ... 9m
    btio:class=A,B              of only one tool

`threads` and `ranks` are `processes` of programs without and with MPI. Experiments that name their
file size name the sum over their processes; with more of them each keeps its share, as in a study
with a file of fixed size per thread.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from eeio.errors import EeioError, RejectedError
from eeio.measure.profiles.profile import Profile
from eeio.measure.profiles.suite import LeftOut, SuiteEntry, size_of
from eeio.units.quantities import shortened
from eeio.units.sizes import KIB, MIB, parse_size

MOST_VALUES = 256
MOST_EXPERIMENTS = 4096
"""Before variants, frequencies and repetitions, which multiply them."""

_FORM = re.compile(r"(?:(?P<tool>[a-z0-9]+):)?(?P<name>[a-z][a-z0-9_]*)=(?P<values>\S+)")
_RANGE = re.compile(r"(?P<first>[^.]+)\.\.(?P<last>[^.+]+)(?:\+(?P<step>[^.+]+))?")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
# A factor that replaces two of a profile, and the profile's names of others.
_FILE_EACH = "file_size_each"
_OTHER_NAMES = {"record_size": "request_size", "threads": "processes", "ranks": "processes"}


@dataclass(frozen=True)
class Sweep:
    """A factor's values, parsed from `requested`; only for one tool if it names that."""

    requested: str
    tool: str | None
    name: str
    values: tuple[str, ...]

    @property
    def factor(self) -> str:
        """The profiles' word for it."""
        return _OTHER_NAMES.get(self.name, self.name)

    def is_of(self, profile: Profile, factors: Mapping[str, str]) -> bool:
        """Whether an experiment with these factors has the one that is swept."""
        if self.tool not in (None, profile.tool):
            return False
        if self.name in ("threads", "ranks") and profile.has_ranks != (self.name == "ranks"):
            return False
        if self.name == _FILE_EACH:
            return "file_size" in factors
        return self.factor in factors


@dataclass(frozen=True)
class Swept:
    """The experiments that replace the suite's, each with its original; `values` are the requested
    factors of each, and `requested` all of these with their profile: they run even if a preset
    leaves them out."""

    made: Mapping[SuiteEntry, SuiteEntry]
    values: Mapping[SuiteEntry, Mapping[str, str]]
    requested: frozenset[tuple[str, str]]

    def requests(self, group: LeftOut) -> bool:
        """Whether an experiment that a preset leaves out was requested."""
        return any((group.profile, factor) in self.requested for factor in group.factors)


def parse(text: str) -> Sweep:
    """RejectedError for an invalid sweep."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise RejectedError(
            f"--sweep {shortened(text)}: give FACTOR=VALUES, such as threads=1..256, "
            "file_size=1m,4m or btio:class=A,B"
        )
    found: list[str] = []
    for piece in match["values"].split(","):
        found += _values(text, piece)
        if len(found) > MOST_VALUES:
            raise RejectedError(f"--sweep {shortened(text)}: more than {MOST_VALUES} values")
    if len(set(found)) != len(found):
        raise RejectedError(f"--sweep {shortened(text)}: repeated value")
    return Sweep(text, match["tool"], match["name"], tuple(found))


def _values(text: str, piece: str) -> Iterator[str]:
    span = _RANGE.fullmatch(piece)
    if span is None:
        if not _WORD.fullmatch(piece):
            raise RejectedError(
                f"--sweep {shortened(text)}: {shortened(piece)} is not a value; give a list "
                "(a,b), a..b (doubled) or a..b+step"
            )
        yield piece
        return
    words = [word for word in span.groups() if word is not None]
    first, last, *steps = [_number(text, word) for word in words]
    step = None
    if steps:
        step = steps[0]
    if not 0 < first <= last or step == 0:
        raise RejectedError(f"--sweep {shortened(text)}: {piece} must start above 0 and increase")
    in_bytes = not all(map(str.isdigit, words))
    value, made = first, 0
    while value <= last:
        made += 1
        if made > MOST_VALUES:
            raise RejectedError(f"--sweep {shortened(text)}: more than {MOST_VALUES} values")
        yield _size_word(value) if in_bytes else str(value)
        if value == last:
            return
        value = value * 2 if step is None else value + step
    by = "doubling"
    if step is not None:
        by = f"steps of {span['step']}"
    raise RejectedError(
        f"--sweep {shortened(text)}: {by} from {span['first']} does not meet {span['last']}; give "
        "an end that it meets, or the values with commas between"
    )


def _number(text: str, word: str) -> int:
    try:
        return parse_size(word)
    except EeioError as error:
        raise RejectedError(f"--sweep {shortened(text)}: {error}") from error


def _size_word(size_bytes: int) -> str:
    """As profiles take it: 131072 -> `128k`."""
    for suffix, unit in (("g", 1 << 30), ("m", MIB), ("k", KIB)):
        if size_bytes % unit == 0:
            return f"{size_bytes // unit}{suffix}"
    return str(size_bytes)


def _of_entry(sweeps: Sequence[Sweep], profile: Profile, factors: Mapping[str, str]) -> list[Sweep]:
    """The sweeps of an experiment's factors. RejectedError for two of one factor."""
    own = [sweep for sweep in sweeps if sweep.is_of(profile, factors)]
    if len({_target(sweep) for sweep in own}) != len(own):
        both = " and ".join(sweep.requested for sweep in own)
        raise RejectedError(f"--sweep {both}: of one factor of {profile.tool}; give it once")
    return own


def swept(
    entries: Sequence[SuiteEntry],
    sweeps: Sequence[Sweep],
    profile_of: Callable[[SuiteEntry], Profile],
    factors_of: Callable[[SuiteEntry], Mapping[str, str]],
) -> Swept:
    """The experiments that `sweeps` request. `factors_of` returns all factors of an entry, also the
    preset's. RejectedError if no experiment has a factor, or for too many experiments."""
    made: dict[SuiteEntry, SuiteEntry] = {}
    values_of: dict[SuiteEntry, Mapping[str, str]] = {}
    requested: set[tuple[str, str]] = set()
    seen: set[tuple[str, frozenset[tuple[str, str]]]] = set()
    used: set[str] = set()
    for entry in entries:
        profile, factors = profile_of(entry), factors_of(entry)
        own = _of_entry(sweeps, profile, factors)
        used.update(sweep.requested for sweep in own)
        if not own:
            made[entry] = entry
            continue
        requested.update((entry.profile, sweep.factor) for sweep in own)
        names = [sweep.name for sweep in own]
        for values in product(*(sweep.values for sweep in own)):
            swept_values = dict(zip(names, values, strict=True))
            new = _with(entry, profile.tool, factors, swept_values)
            key = (new.profile, frozenset(new.factors.items()))
            if key not in seen:
                seen.add(key)
                made[new] = entry
                values_of[new] = swept_values
        if len(made) > MOST_EXPERIMENTS:
            raise RejectedError(
                f"--sweep: more than {MOST_EXPERIMENTS} experiments; give fewer values"
            )
    unused = [sweep for sweep in sweeps if sweep.requested not in used]
    for sweep in unused:
        tool = ""
        if sweep.tool:
            tool = f" with {sweep.tool}"
        raise RejectedError(
            f"--sweep {sweep.requested}: no experiment of this suite has {sweep.name}{tool}; they "
            f"have {', '.join(_known(entries, profile_of, factors_of))}"
        )
    return Swept(made, values_of, frozenset(requested))


def _target(sweep: Sweep) -> str:
    if sweep.name == _FILE_EACH:
        return "file_size"
    return sweep.factor


def _known(
    entries: Sequence[SuiteEntry],
    profile_of: Callable[[SuiteEntry], Profile],
    factors_of: Callable[[SuiteEntry], Mapping[str, str]],
) -> list[str]:
    names = {f"{profile_of(entry).tool}:{name}" for entry in entries for name in factors_of(entry)}
    return sorted(names)


def _with(
    entry: SuiteEntry, tool: str, factors: Mapping[str, str], swept_values: Mapping[str, str]
) -> SuiteEntry:
    new = {_OTHER_NAMES.get(name, name): value for name, value in swept_values.items()}
    processes = _count(tool, new.get("processes") or factors.get("processes", "1"))
    if (each := new.pop(_FILE_EACH, None)) is not None:
        new["file_size"] = _size_word(size_of(tool, _FILE_EACH, each) * processes)
    elif "processes" in new and "file_size" in entry.factors and "file_size" not in new:
        # Each process keeps its share of a size that the suite, not the preset, decides.
        before = _count(tool, entry.factors.get("processes", "1"))
        share_bytes = size_of(tool, "file_size", entry.factors["file_size"]) // before
        new["file_size"] = _size_word(share_bytes * processes)
    both = {**entry.factors, **new}
    # The requested values first; the suite's labels are for its values.
    first = {name: both[name] for name in new} | both
    text = " ".join(f"{name}={value}" for name, value in first.items() if name != "level")
    return SuiteEntry(entry.profile, both, f"Sweep: {tool} {text}")


def _count(tool: str, word: str) -> int:
    if not word.isdecimal() or not 0 < int(word[:19]) <= 1 << 20:
        raise RejectedError(f"--sweep: processes of {tool} is {shortened(word)}: no number of them")
    return int(word)


def rejected(swept: Swept, why_not: Callable[[SuiteEntry], str | None]) -> dict[SuiteEntry, str]:
    """The combinations that `why_not` refuses, with its reasons: a record cannot be longer than its
    file. RejectedError for a value that is in no combination which can be run."""
    reasons: dict[SuiteEntry, str] = {}
    left: dict[tuple[str, str, str], str | None] = {}
    for entry, values in swept.values.items():
        if (reason := why_not(entry)) is not None:
            reasons[entry] = reason
        for name, value in values.items():
            key = (entry.profile, name, value)
            # None once it is in a combination that can be run.
            left[key] = left.get(key, reason) and reason
    for reason in left.values():
        if reason is not None:
            raise RejectedError(f"--sweep: {reason}")
    return reasons
