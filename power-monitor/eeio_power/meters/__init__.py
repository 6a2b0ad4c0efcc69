"""Meters: one file a meter, in this folder or in one of EEIO_METERS, found by its file name.

A meter's module defines three names:

- `OPTIONS: dict[str, str]`: the options its spec takes, each with one line of help;
- `open_meter(spec, options, root) -> Meter`: raises PowerError with the remedy;
- `find(root) -> Detected`: whether this machine has it, and if not, the reason and the remedy.

It may offer `ARGUMENT`, the option that follows a colon: `wattsup:/dev/ttyUSB0` is
`wattsup,port=/dev/ttyUSB0`. What it says about itself is in further names, which `about` reads:

- `DELAY`: the delay of its channels that have none of their own (`eeio_power.delay`);
- `VERIFIED_ON`: `simulator` (other people's programs that speak the protocol, such as ipmi_sim:
  they do not tell how true the watts of a real device are), `recording` (the output of a real
  device that others published), or `hardware`, and then `VERIFIED_WITH`, the device;
- `MEASURES`: `packages` (of the processors in /proc/stat) or `this machine`, if its readings are
  never of another machine unless its spec has `root=` or `host=`;
- `READS`: the files, nodes and programs that `eeio doctor --capture` must keep for it (`Reads`).

`root` replaces `/`, so that a fake tree can replace sysfs and procfs. Every meter also takes
`name=LABEL`, which distinguishes two meters of one kind, `lag_s=` and `averages_s=`.

A meter that pushes its readings sets `paces_itself = True`: its `read` waits for the next one, and
the sampler calls it again at once. A meter that is logged elsewhere has `logged()` and is not read
(`LoggedMeter`). A meter that another process may read for us has `batches()` (`BatchedMeter`), and
`averages_s()` if it averages a fast stream over the period of the sampler (`AveragedMeter`).
"""

import importlib
import math
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, cast, get_args, runtime_checkable

from eeio.errors import LimitError
from eeio.files.modules import Modules
from eeio.units.names import similar
from eeio.units.quantities import FIGURE
from eeio_power.delay import Delay
from eeio_power.errors import PowerError
from eeio_power.meters._own import Guarded
from eeio_power.reading import DOMAINS, UNKNOWN, Contents, Domain, Kind, joined

Quantity = Literal["power_w", "energy_j"]
Verified = Literal["simulator", "recording", "hardware"]
Measured = Literal["packages", "this machine"]

_MODULES = Modules("meter", __name__, "EEIO_METERS", reserved=("auto", "none"))

_PLACE = re.compile(r"([\w.-]{1,200}|\[[0-9a-fA-F:]{2,45}\])(?::(\d{1,5}))?")
COMMON_OPTIONS = {
    "name": "the meter's name in readings, to distinguish two of one kind",
    "lag_s": "how late its readings are, s (`eeio meter calibrate` measures it)",
    "averages_s": "the time that each reading is the mean of, s",
}


@dataclass(frozen=True)
class Channel:
    """One number that a meter reads.

    `power_w` is the mean power, W, of the time up to the reading; `energy_j` is a counter, J,
    that only grows, until it wraps at `range_j`.
    """

    name: str
    """Such as `rapl:package-0`."""
    domain: Domain
    quantity: Quantity
    range_j: float | None = None
    """Where the counter starts again at 0, J; None if it does not."""
    accuracy_relative: float = 0.0
    """Accuracy class: uncertainty as a share of the value."""
    resolution: float = 0.0
    """The quantum of the value, in the unit of `quantity`."""
    in_domain_total: bool = True
    """False for a part of something that another channel already counts: recorded, not added."""
    max_power_w: float | None = None
    """Maximum power of the channel, W: limits how long a gap may hide a complete wrap."""
    contents: Contents = UNKNOWN
    """The parts of the machine in it."""
    remark: str | None = None
    """Remark on how the figure is made, such as which sensors are added."""
    doubt: str | None = None
    """Why the domain may be another one: every reading is doubtful."""
    counts: str | None = None
    """A source that several counters of one meter may share, such as `package-0`: if those of one
    name move in step, they are one counter, and their sum is not an energy. None: not shared."""
    delay: Delay | None = None
    """How late its values are and over how long they are means; None: unknown, taken for not late
    and means of the time since the reading before."""
    rule: str | None = None
    """Which rule chose which sensors of several, and which are not counted."""


class Meter(Protocol):
    """A source of power or energy values."""

    @property
    def spec(self) -> str:
        """The spec it was opened with, such as `rapl,root=/tmp/powercap`."""

    @property
    def name(self) -> str:
        """Its name in readings; unique among the meters opened together."""

    @property
    def kind(self) -> Kind:
        """Whether its values are measured, reported by the device, or modelled."""

    @property
    def native_period_s(self) -> float:
        """Time between two updates of its value, s: faster reading gives no new values."""

    @property
    def channels(self) -> Sequence[Channel]:
        """The values of `read`, in that order."""

    def read(self) -> Sequence[float | None]:
        """One value a channel, in the unit of its quantity; None for one that failed.

        Raises OSError or PowerError if no value could be read.
        """

    def close(self) -> None:
        """Release devices and processes. May be called again."""


@runtime_checkable
class LoggedMeter(Protocol):
    """A meter with a log from another program: it gives all its readings at once."""

    def logged(self) -> tuple[Sequence[float], tuple[Sequence[float], ...]]:
        """Times (monotonic s, rising) and a column of values a channel, NaN where one is missing.

        Raises PowerError if the log is not there or cannot be used.
        """


@dataclass(frozen=True)
class Batch:
    """Readings in the order they were taken."""

    begun_s: Sequence[float]
    """Monotonic s before each read."""
    done_s: Sequence[float]
    """After it."""
    columns: tuple[Sequence[float], ...]
    """The values of each channel; NaN where one could not be read."""
    problems: Mapping[int, str] = field(default_factory=dict)
    """Errors of readings, by their position."""


class Batches(Protocol):
    """A process that reads a meter and stores the readings until they are fetched.

    The sampler starts it, fetches now and then, requests a reading if it needs one at once, and
    finishes it.
    """

    def start(self) -> None: ...

    def fetch(self) -> Batch:
        """Readings since the last call, without waiting. Raises PowerError if they cannot be
        fetched."""

    def wait(self, limit_s: float) -> None:
        """Until there may be something to fetch."""

    def sample_now(self) -> None: ...

    def finish(self) -> None:
        """Ask for a last reading; `ended` once that was fetched."""

    @property
    def ended(self) -> bool: ...

    def kill(self) -> None: ...


@runtime_checkable
class PacedBatches(Protocol):
    """Such a process that can read more often for a while."""

    def set_period(self, period_s: float | None) -> None:
        """Read so often from now on; None: as at its start."""


@runtime_checkable
class BatchedMeter(Protocol):
    """A meter that another process can read at less cost than a thread."""

    def batches(self, period_s: float) -> Batches | None:
        """That process, not yet started; None if there is none: then the meter is read."""


@runtime_checkable
class AveragedMeter(Protocol):
    """A fast stream whose readings are means over about the period of the sampler."""

    def averages_s(self, period_s: float) -> float:
        """The time that each reading is the mean of, s, if the sampler reads it each `period_s`."""


@dataclass(frozen=True)
class Detected:
    """Whether a meter is there, for `eeio doctor`."""

    spec: str
    kind: Kind
    domains: tuple[Domain, ...]
    available: bool
    reason: str | None = None
    """Why it is not available, or a remark about it."""
    remedy: str | None = None
    """The remedy."""
    contents: Mapping[Domain, Contents] = field(default_factory=dict)
    """Contents of each domain: included and excluded parts."""
    in_auto: bool = True
    """False if another meter reads the same counters: `auto` must not open both."""
    rule: str | None = None
    """Which rule chose which sensors of several, and which are not counted."""
    doubt: str | None = None
    """Why each of its readings will be doubtful."""

    @property
    def is_taken_by_auto(self) -> bool:
        """Whether `auto` opens it where it is available: drives and GPUs only report."""
        return self.in_auto and self.kind == "measured"


@dataclass(frozen=True)
class Reads:
    """What a meter reads of a machine, below `/`: files as (pattern of folders, patterns of names
    with commas), patterns of nodes in /dev, programs."""

    files: tuple[tuple[str, str], ...] = ()
    nodes: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


@dataclass(frozen=True)
class About:
    """What a kind of meter says about itself; None where it says nothing."""

    delay: Delay | None = None
    verified_on: Verified | None = None
    verified_with: str | None = None
    """The device, if it was verified on hardware."""
    measures: Measured | None = None
    reads: Reads = field(default_factory=Reads)

    @property
    def verified(self) -> str | None:
        """As text: `hardware (NVIDIA H100 80GB HBM3)`."""
        if self.verified_with is None:
            return self.verified_on
        return f"{self.verified_on} ({self.verified_with})"


def about(meter: str) -> About:
    """Of meters of that kind; with nothing in it if the kind is unknown. Raises PowerError for a
    module that cannot be loaded."""
    if meter not in meter_names():
        return About()
    module = _module(meter)
    told = About(
        getattr(module, "DELAY", None),
        getattr(module, "VERIFIED_ON", None),
        getattr(module, "VERIFIED_WITH", None),
        getattr(module, "MEASURES", None),
        getattr(module, "READS", Reads()),
    )
    for name, value, known in (
        ("VERIFIED_ON", told.verified_on, get_args(Verified)),
        ("MEASURES", told.measures, get_args(Measured)),
    ):
        if value is not None and value not in known:
            raise PowerError(f"meter {meter!r}: {name} is {value!r}, none of {', '.join(known)}")
    if told.verified_on == "hardware" and told.verified_with is None:
        raise PowerError(f"meter {meter!r}: VERIFIED_WITH must name the device")
    return told


def about_all() -> dict[str, About]:
    """Of all kinds of meters that can be loaded."""
    every = {}
    for name in meter_names():
        with suppress(PowerError):
            every[name] = about(name)
    return every


def verifications() -> dict[str, str]:
    """Kind of meter -> what it was verified on, as text; of those that say it."""
    return {name: kind.verified for name, kind in about_all().items() if kind.verified is not None}


def contents_of(channels: Sequence[Channel]) -> dict[Domain, Contents]:
    """Contents of each domain of a meter, by the channels that are added up to it."""
    counted = [channel for channel in channels if channel.in_domain_total]
    return {
        domain: joined(tuple(c.contents for c in counted if c.domain == domain))
        for domain in dict.fromkeys(channel.domain for channel in counted)
    }


class MeterModule(Protocol):
    """Interface of a file in this folder, or in a folder of EEIO_METERS."""

    OPTIONS: dict[str, str]

    def open_meter(self, spec: str, options: Mapping[str, str], root: Path) -> Meter: ...

    def find(self, root: Path) -> Detected: ...


def meter_names() -> list[str]:
    """The meters this installation has, by file name, and those in the folders of EEIO_METERS.

    Raises PowerError for a folder that is not there and a name that is taken.
    """
    return sorted((*_MODULES.ours(), *_own_meters()))


def _own_meters() -> dict[str, Path]:
    try:
        modules = _MODULES.own()
    except LimitError as error:
        raise PowerError(str(error)) from error
    for name, path in modules.items():
        if not name.isidentifier():
            raise PowerError(
                f"{_MODULES.variable}: {path}: '{name}' is not a valid meter name: letters, digits "
                "and _ only; other files begin with _"
            )
    return modules


def parse_spec(spec: str) -> tuple[str, dict[str, str]]:
    """`rapl,root=/x` -> ("rapl", {"root": "/x"}). Raises PowerError on anything else.

    Text after a colon, as in `wattsup:/dev/ttyUSB0`, has the empty key.
    """
    head, *parts = spec.split(",")
    name, colon, argument = head.partition(":")
    options: dict[str, str] = {}
    if colon:
        options = {"": argument.strip()}
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise PowerError(
                f"meter '{spec}': '{part}' is not an option; write options as key=value, "
                "separated by commas"
            )
        if key.strip() in options:
            raise PowerError(f"meter '{spec}': option '{key.strip()}' is repeated; give it once")
        options[key.strip()] = value.strip()
    return name.strip(), options


def open_meters(specs: Sequence[str], root: Path = Path("/")) -> list[Meter]:
    """Open the meters that `specs` name.

    `auto` opens every measured source that is there and not named by another spec, never the model;
    that may be none. `none` opens no meter. Raises PowerError for unknown names and options
    (listing what exists), and for a meter that was named and cannot be read.
    """
    wanted = [spec.strip() for spec in specs]
    if "none" in wanted and len(wanted) > 1:
        raise PowerError(f"meters {', '.join(wanted)}: 'none' cannot be combined with other meters")
    kinds = {parse_spec(spec)[0] for spec in wanted}
    for spec in wanted:
        if wanted.count(spec) > 1:
            raise PowerError(f"meter '{spec}' is named twice; name it once")
    if "demo" in kinds and len(wanted) > 1:
        raise PowerError(
            f"meters {', '.join(wanted)}: 'demo' is fictitious and cannot be combined with "
            "other meters; use only 'demo', or leave it out"
        )
    meters: list[Meter] = []
    try:
        for spec in _expand_auto([spec for spec in wanted if spec != "none"], root):
            meter = _open(spec, root)
            meters.append(meter)
            if meter.name in {other.name for other in meters[:-1]}:
                raise PowerError(
                    f"meter '{spec}': another meter has the name '{meter.name}'; rename one "
                    "with name=LABEL"
                )
    except BaseException:
        close_meters(meters)
        raise
    return meters


def close_meters(meters: Sequence[Meter]) -> None:
    """Close every meter, also if one of them fails."""
    for meter in meters:
        with suppress(OSError, PowerError):
            meter.close()


def discover(root: Path = Path("/")) -> list[Detected]:
    """One finding for every kind of meter, there or not."""
    return [_find(name, root) for name in meter_names()]


_M = TypeVar("_M", bound=Meter)


def first_reading(meter: _M, remedy: str = "") -> _M:
    """The meter, if it can be read once. Raises PowerError, with `remedy`, and closes it if not."""
    try:
        meter.read()
    except PowerError as error:
        meter.close()
        raise PowerError(f"meter '{meter.spec}': {error}{remedy}") from error
    return meter


def library(spec: str, name: str, extra: str) -> Any:
    """An optional Python module. Raises PowerError with the way to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        module = name.partition(".")[0]
        raise PowerError(
            f"meter '{spec}': it needs the Python module {module}; install it: "
            f"pip install 'eeio[{extra}]'"
        ) from error


def host_and_port(spec: str, text: str, port: int) -> tuple[str, int]:
    """Of HOST, HOST:PORT or [IPV6]:PORT; `port` if there is none. Raises PowerError."""
    place = _PLACE.fullmatch(text)
    if place is None or int(place[2] or port) > 65535:
        raise PowerError(f"meter '{spec}': '{text:.80}' is not HOST or HOST:PORT")
    return place[1].strip("[]"), int(place[2] or port)


def domain_option(spec: str, options: Mapping[str, str]) -> Domain:
    """`domain=`, else the system. Raises PowerError for a name that is none."""
    return cast(Domain, choice_option(spec, options, "domain", DOMAINS, "system"))


def number_option(
    spec: str,
    options: Mapping[str, str],
    key: str,
    *,
    above_zero: bool = False,
    most: float = FIGURE.most,
) -> float | None:
    """The option as a finite number >= 0 (> 0 if so wanted), None if it was not given.

    Raises PowerError.
    """
    text = options.get(key)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= most or (above_zero and value == 0.0):
        least = "of at least 0"
        if above_zero:
            least = "above 0"
        limit = ""
        if most != FIGURE.most:
            limit = f", at most {most:g}"
        raise PowerError(f"meter '{spec}': {key}={text} is not a number {least}{limit}")
    return value


def offset_option(options: Mapping[str, str], prefix: str = "") -> float | None:
    """`offset_s=`, of either sign; None without it. Raises PowerError, whose text begins with
    `prefix`."""
    text = options.get("offset_s")
    if text is None:
        return None
    try:
        offset_s = float(text)
    except ValueError:
        offset_s = math.nan
    if not math.isfinite(offset_s):
        raise PowerError(f"{prefix}offset_s={text:.40} is not a number of seconds")
    return offset_s


def choice_option(
    spec: str, options: Mapping[str, str], key: str, known: Collection[str], default: str
) -> str:
    """The option as one of the known words. Raises PowerError."""
    text = options.get(key, default)
    if text not in known:
        raise PowerError(f"meter '{spec}': {key}={text:.80} is not one of {', '.join(known)}")
    return text


def _expand_auto(specs: Sequence[str], root: Path) -> list[str]:
    named = {parse_spec(spec)[0] for spec in specs}
    expanded: list[str] = []
    for spec in dict.fromkeys(specs):
        if spec != "auto":
            expanded.append(spec)
            continue
        for name in meter_names():
            if name not in named:
                finding = _find(name, root)
                if finding.available and finding.is_taken_by_auto:
                    expanded.append(finding.spec)
    return expanded


def _open(spec: str, root: Path) -> Meter:
    name, options = parse_spec(spec)
    if name not in meter_names():
        known = ", ".join(["auto", "none", *meter_names()])
        meant = similar(name, meter_names())
        raise PowerError(f"meter '{spec}': there is no meter '{name}'{meant}; there are: {known}")
    module = _module(name)
    known_options = {**module.OPTIONS, **COMMON_OPTIONS}
    options = _named_argument(spec, name, options, getattr(module, "ARGUMENT", None))
    for key in options:
        if key not in known_options:
            raise PowerError(
                f"meter '{spec}': {name} has no option '{key}'; it has: "
                + "; ".join(f"{option} ({text})" for option, text in known_options.items())
            )
    return module.open_meter(spec, options, root)


def _named_argument(
    spec: str, name: str, options: Mapping[str, str], argument: str | None
) -> dict[str, str]:
    """The options with the text after the colon under its option name."""
    if "" not in options:
        return dict(options)
    if argument is None:
        raise PowerError(f"meter '{spec}': {name} takes no value after the colon; use key=value")
    if not options[""]:
        raise PowerError(f"meter '{spec}': no value after the colon; give its {argument}")
    if argument in options:
        raise PowerError(f"meter '{spec}': {argument} is repeated; give it once")
    return {argument: options[""], **{k: v for k, v in options.items() if k}}


def _find(name: str, root: Path) -> Detected:
    try:
        return _module(name).find(root)
    except PowerError as error:
        # A meter without its Python module must not hide the others.
        return Detected(name, "measured", (), False, str(error))


def _module(name: str) -> MeterModule:
    if name in _own_meters():
        try:
            module = _MODULES.load(name)
        except LimitError as error:
            raise PowerError(str(error)) from error
        return cast(MeterModule, Guarded(name, module, Detected))
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ImportError as error:
        raise PowerError(
            f"meter '{name}' cannot be loaded ({error}); install its dependencies "
            "(docs/reference/meters.md)"
        ) from error
