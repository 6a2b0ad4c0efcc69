"""The further axes of a study: variants of ext4, and processor frequencies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from eeio import studies
from eeio.errors import EeioError, RejectedError
from eeio.machine import frequency, nvme_power
from eeio.machine.filesystem import block_device
from eeio.record.design import StudyProtocol

POWER_STATE = "power_state"
"""The argument of an experiment's record."""


@dataclass(frozen=True)
class Variant:
    """How the journal is changed. `volume` is the file system that is made (system/image.py);
    `delays` preloads libdelayjc.so."""

    volume: str
    delays: bool = False


VARIANTS: Mapping[str, Variant] = {
    "ext4": Variant("ext4"),
    "nojc": Variant("ext4+nojc"),
    "fast_commit": Variant("ext4+fast_commit"),
    "delayjc": Variant("ext4", delays=True),
}


@dataclass(frozen=True)
class Setting:
    """Where an experiment runs and under which settings. `arguments` describe them in its
    record."""

    target: str
    volume: str
    variant: str | None = None
    frequency_hz: int | None = None
    labels: tuple[str, ...] = ()
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Processors:
    """Processor settings for an experiment; None: unchanged. A set frequency implies SMT and turbo
    off."""

    frequency_hz: int | None = None
    smt: str | None = None
    turbo: str | None = None

    @property
    def arguments(self) -> Mapping[str, str]:
        """As in the experiment's record."""
        hz = None
        if self.frequency_hz is not None:
            hz = str(self.frequency_hz)
        values = {"frequency_hz": hz, "smt": self.smt, "turbo": self.turbo}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def labels(self) -> tuple[str, ...]:
        """For the experiment's description."""
        frequency_ghz = None
        if self.frequency_hz is not None:
            frequency_ghz = f"{self.frequency_hz / 1e9:g} GHz"
        values = (("Frequency", frequency_ghz), ("SMT", self.smt), ("Turbo", self.turbo))
        return tuple(f"{name}: {value}" for name, value in values if value is not None)


@dataclass(frozen=True)
class PowerState:
    """The power state of an NVMe drive for an experiment; None: unchanged."""

    number: int | None = None

    @property
    def arguments(self) -> Mapping[str, str]:
        """As in the experiment's record."""
        if self.number is None:
            return {}
        return {POWER_STATE: str(self.number)}

    @property
    def labels(self) -> tuple[str, ...]:
        """For the experiment's description."""
        if self.number is None:
            return ()
        return (f"Power state: {self.number}",)


def power_state_settings(
    requested: Sequence[str], device: str | None, root: Path
) -> list[PowerState]:
    """One for each requested state of the device; one that changes nothing if none is requested.
    RejectedError for a drive without them, and for a state in which it does no I/O."""
    if not requested:
        return [PowerState()]
    if device is None:
        raise RejectedError("--power-state: it sets the states of a drive; give --device")
    block = block_device(Path(device), root)
    try:
        controller = None
        if block is not None:
            controller = nvme_power.controller_of(block.disk_sysfs)
        if controller is None:
            raise EeioError(f"{device} is not an NVMe drive")
        working = [state.number for state in controller.states() if state.is_operational]
    except EeioError as error:
        raise RejectedError(f"--power-state: {error}") from error
    if "all" in requested:
        return [PowerState(number) for number in working]
    numbers = []
    for text in requested:
        if not text.isdecimal() or int(text) not in working:
            known = ", ".join(map(str, working))
            raise RejectedError(
                f"--power-state: {text!r:.40} is no state in which {device} works: there are "
                f"{known}"
            )
        numbers.append(int(text))
    return [PowerState(number) for number in dict.fromkeys(numbers)]


def study_settings(
    study: StudyProtocol | None,
    variants: Sequence[str],
    frequencies: Sequence[str],
    sysfs_root: Path,
) -> tuple[list[Setting], str | None]:
    """Every variant at every frequency, and why no frequency is set. Empty without a study.

    Unsupported requests of the user are rejected; those of the suite are skipped, with the reason.
    """
    if study is None:
        if variants:
            raise RejectedError("--variant belongs to suites with `study:` in their protocol.yaml")
        return [], None
    _check_study(study)
    chosen = variants or study.variants
    if unknown := [name for name in chosen if name not in VARIANTS]:
        raise RejectedError(f"variant {unknown[0]!r}: there are {', '.join(VARIANTS)}")
    try:
        steps: list[int | None] = [*_frequencies(frequencies or study.frequencies, sysfs_root)]
        reason = None
    except EeioError as error:
        if frequencies:
            raise RejectedError(f"--frequency: {error}") from error
        steps, reason = [None], str(error)
    return [_setting(name, step) for name in dict.fromkeys(chosen) for step in steps], reason


def processor_settings(
    frequencies: Sequence[str], smt: Sequence[str], turbo: Sequence[str], sysfs_root: Path
) -> list[Processors]:
    """Every frequency, or every state of SMT with every one of turbo; one that changes no setting
    if none is requested. RejectedError for unsupported settings."""
    if not (frequencies or smt or turbo):
        return [Processors()]
    frequency.check_smt_and_turbo(tuple(smt), tuple(turbo), sysfs_root)
    if not frequencies:
        of_smt: Sequence[str | None] = smt or (None,)
        of_turbo: Sequence[str | None] = turbo or (None,)
        pairs = dict.fromkeys(product(of_smt, of_turbo))
        return [Processors(smt=one, turbo=other) for one, other in pairs]
    if "on" in (*smt, *turbo):
        raise RejectedError(
            "--frequency: a fixed frequency requires SMT and turbo off; leave out --smt and "
            "--turbo, or --frequency"
        )
    try:
        return [Processors(step) for step in _frequencies(frequencies, sysfs_root)]
    except EeioError as error:
        raise RejectedError(f"--frequency: {error}") from error


def _check_study(study: StudyProtocol) -> None:
    """Before any change: the program that decides when to stop must exist, and work."""
    try:
        found_studies = studies.of_campaign(study.name)
    except EeioError as error:
        raise RejectedError(str(error)) from error
    if study.half_width is not None and all(
        found.figure_of_merit is None for found in found_studies
    ):
        raise RejectedError(
            f"the study {study.name!r} has no figure to repeat for: set half_width to null in the "
            "suite's protocol.yaml"
        )


def _frequencies(arguments: Sequence[str], sysfs_root: Path) -> list[int]:
    """In Hz, ascending: `all` the machine's steps, its `lowest` and `highest`, or numbers."""
    steps = frequency.steps_hz(sysfs_root)
    found: set[int] = set()
    for argument in arguments:
        if argument == "all":
            found.update(steps)
        elif argument in ("lowest", "highest"):
            found.add(min(steps) if argument == "lowest" else max(steps))
        else:
            wanted_hz = frequency.parse_hz(argument)
            frequency.check_reachable(wanted_hz, sysfs_root)
            found.add(wanted_hz)
    return sorted(found)


def _setting(name: str, frequency_hz: int | None) -> Setting:
    arguments = {"variant": name}
    labels = [f"Variant: {name}"]
    if frequency_hz is not None:
        arguments["frequency_hz"] = str(frequency_hz)
        labels.append(f"Frequency: {frequency_hz / 1e9:g} GHz")
    return Setting(
        "file on ext4", VARIANTS[name].volume, name, frequency_hz, tuple(labels), arguments
    )
