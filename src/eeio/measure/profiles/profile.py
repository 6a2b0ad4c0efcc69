"""One test profile: its files and its presets."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eeio.errors import LimitError, RejectedError
from eeio.files import documents, inputs
from eeio.measure.profiles import complete, factors
from eeio.measure.profiles.factors import Factors
from eeio.paths import check_definition, search_path
from eeio.units.external_text import shown
from eeio.units.names import LONGEST_NAME
from eeio.units.quantities import FRACTION, PAUSE, shortened

# Keys of presets.conf that speak to the plan, not to the profile's executable.
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_FORECAST_KEYS = (
    "passes_written",
    "memory_multiple",
    "footprint",
    "footprint_each",
    "each_s",
    "parallel_pause_s",
    "grows",
    "room",
)


_FIELDS = ("level", "operation", "spatiality", "request_size", "buffer", "processes", "api")


@dataclass(frozen=True)
class Profile:
    """A profile folder such as `test-profiles/eeio-fio-1.0.0`."""

    folder: Path
    title: str
    version: str
    presets: Mapping[str, Mapping[str, str]]
    factors: Factors | None = None

    @property
    def identifier(self) -> str:
        """Name with version: `eeio-fio-1.0.0`."""
        return self.folder.name

    @property
    def name(self) -> str:
        """The executable that install.sh makes: `eeio-fio`."""
        return self.identifier.rpartition("-")[0]

    @property
    def files(self) -> Mapping[str, Path]:
        """Name -> path of each file of the complete profile, the shared ones included."""
        return complete.files(self.folder)

    @property
    def has_ranks(self) -> bool:
        """Whether MPI starts its processes."""
        return "mpi.sh" in self.files

    @property
    def tool(self) -> str:
        """The parser's name: `fio`."""
        return self.name.removeprefix("eeio-")

    @property
    def default_factors(self) -> dict[str, str]:
        """The factors of a run that names no level, such as one from PTS's menu: the defaults of
        those that an experiment has fields for. A single level is the default."""
        if self.factors is None:
            return {}
        pairs = {name: factor.default for name, factor in self.factors.by_name.items()}
        if "level" in pairs and len(self.factors.by_name["level"].words) == 1:
            pairs["level"] = self.factors.by_name["level"].values
        return {name: pairs[name] for name in _FIELDS if pairs.get(name)}

    def why_not(self, preset: str, factors: Mapping[str, str]) -> str | None:
        """Why the profile rejects these factors; None if it accepts them. Without a factors.conf it
        is checked only when it runs."""
        if self.factors is None:
            return None
        given = [f"{name}={value}" for name, value in sorted(factors.items())]
        missing = f"EEIO_PRESET={preset}: not in {self.folder / 'presets.conf'}"
        wrong = self.factors.problem(given, self.presets.get(preset, {}), missing)
        if wrong is None:
            return None
        return shown(f"{self.name}: {wrong}")

    def preset(self, preset: str) -> Mapping[str, str]:
        """The preset's values for this profile (`file_size`, `runtime_s`, ...)."""
        try:
            return self.presets[preset]
        except KeyError:
            raise RejectedError(
                f"{self.folder / 'presets.conf'}: no preset {preset!r}; "
                f"it has {', '.join(sorted(self.presets)) or 'none'}"
            ) from None

    def factors_of(
        self, preset: str, named: Mapping[str, str], work_bytes: int | None = None
    ) -> dict[str, str]:
        """The factors of a run with these arguments: the preset's sizes, and the profile's defaults
        if they name no level. Raises RejectedError if there is no such preset."""
        defaults = {}
        if "level" not in named:
            defaults = self.default_factors
        return {**defaults, **self.preset_factors(preset, work_bytes), **named}

    def preset_factors(self, preset: str, work_bytes: int | None = None) -> dict[str, str]:
        """Of those the factors of an experiment: without what speaks to the plan alone.

        With `work_bytes` a tool that moves a file moves that much, and no time ends it before; one
        that has no file of a chosen size keeps what its preset says.
        """
        factors = {k: v for k, v in self.preset(preset).items() if k not in _FORECAST_KEYS}
        if work_bytes is None or "file_size" not in factors:
            return factors
        fixed = {"file_size": str(work_bytes), "runtime_s": "0"}
        return {key: fixed.get(key, value) for key, value in factors.items()}


def find(identifier: str) -> Profile:
    """The profile of that name and version, from the search path."""
    folders = search_path("test-profiles")
    # It may come from a file of others.
    if len(identifier) > LONGEST_NAME or not _IDENTIFIER.fullmatch(identifier):
        raise RejectedError(f"{shortened(identifier)} is not a valid test profile name")
    for folder in folders:
        if (folder / identifier / "test-definition.xml").is_file():
            return load(folder / identifier)
    raise RejectedError(
        f"no test profile {identifier} in {', '.join(map(str, folders))}; `eeio list` shows them"
    )


def available() -> dict[str, Path]:
    """Name -> folder of every profile on the search path, by name; the first folder that has one
    wins. Not read yet: a damaged one must not hide the others."""
    folders: dict[str, Path] = {}
    for folder in search_path("test-profiles"):
        for definition in sorted(folder.glob("*/test-definition.xml")):
            folders.setdefault(definition.parent.name, definition.parent)
    return dict(sorted(folders.items()))


def load(folder: Path) -> Profile:
    """The profile in `folder`. RejectedError for root if another user could change it."""
    check_definition(folder)
    definition = folder / "test-definition.xml"
    try:
        root = documents.read_xml(definition)
    except (OSError, LimitError) as error:
        raise RejectedError(f"{definition}: not a PTS test definition: {error}") from error
    return Profile(
        folder=folder,
        title=root.findtext("TestInformation/Title") or folder.name,
        version=root.findtext("TestProfile/Version") or "",
        presets=_read_presets(folder / "presets.conf"),
        factors=factors.read(folder / "factors.conf"),
    )


def _read_presets(path: Path) -> dict[str, dict[str, str]]:
    """Lines `preset key=value ...`; `#` starts a comment."""
    if not path.is_file():
        return {}
    presets: dict[str, dict[str, str]] = {}
    try:
        text = inputs.read_text(path, inputs.DEFINITION_BYTES)
    except (OSError, LimitError) as error:
        raise RejectedError(f"{path}: {error}") from error
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        pairs = [field.partition("=") for field in fields[1:]]
        if any(not separator for _, separator, _ in pairs):
            raise RejectedError(
                f"{path}:{number}: expected `preset key=value ...`, found {line!r:.100}"
            )
        preset = presets[fields[0]] = {key: value for key, _, value in pairs}
        try:
            for name, quantity in _NUMBERS.items():
                if name in preset:
                    quantity.of_text(preset[name], name)
        except LimitError as error:
            raise RejectedError(f"{path}:{number}: {error}") from error
    return presets


# Of a preset: how often a run writes its file, a pause of runs with several processes, how much
# larger than memory a file is, and what each of many files takes.
_NUMBERS = {
    "passes_written": FRACTION,
    "parallel_pause_s": PAUSE,
    "memory_multiple": FRACTION,
    "each_s": PAUSE,
}


def script_environment(home: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """The environment PTS gives a profile's scripts: the caller's own, HOME the install folder."""
    return {**os.environ, "HOME": str(home), "LC_ALL": "C", **extra}
