"""One suite: which experiments, and the protocol that a preset means for them."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from eeio.errors import EeioError, LimitError, RejectedError
from eeio.files import documents, inputs, typed
from eeio.files.trust import why_untrusted
from eeio.paths import check_definition, search_path
from eeio.record.design import AdaptiveProtocol, Protocol, SteadyProtocol, StudyProtocol
from eeio.record.run import FLUSHES, OPERATIONS, SPATIALITIES, CacheLayers, Experiment
from eeio.units import quantities as q
from eeio.units.names import similar
from eeio.units.sizes import parse_size

DEFINITION = "suite-definition.xml"
PROTOCOL = "protocol.yaml"
# As eeio-iozone's first version said it.
_FLUSH_NAMES: Mapping[str, str] = {"on": "end", "off": "none"}
# An MPI program starts MPI before it reads its options.
_HELP_TIMEOUT_S = 60
_HELP_BYTES = 1 << 16
# Programs that are in few people's PATH: servers, and Debian's PostgreSQL.
_SERVERS = ("sbin", "lib/postgresql/*/bin")  # below /usr
_LEVELS = ("device", "filesystem", "library", "application", "context")


@dataclass(frozen=True, eq=False)
class SuiteEntry:
    """One `<Execute>`: a profile, its factors, and PTS's label for them."""

    profile: str
    factors: Mapping[str, str]
    description: str


@dataclass(frozen=True)
class LeftOut:
    """Experiments of a profile that a preset does not run: those with all these factors."""

    profile: str
    factors: Mapping[str, str]
    reason: str

    def matches(self, entry: SuiteEntry) -> bool:
        return self.profile == entry.profile and self.factors.items() <= entry.factors.items()


@dataclass(frozen=True)
class Optional:
    """Experiments with a tool that few machines have; PTS runs the suite without them.

    They run if each name in `command` is a program in PATH, was built by scripts/setup, or is in
    the packages' folder for servers. If an environment variable is defined for it, the program or
    folder that it names is checked first. With `help`, the output of `-h` must also match this
    regular expression, because it shows the build options. `otherwise` is why they do not run
    elsewhere.
    """

    command: str
    variable: str | None
    otherwise: str
    entries: tuple[SuiteEntry, ...]
    help: str = ""

    def is_found(self) -> bool:
        """Runs the program if its help matters. RejectedError for root if another user could
        change that program."""
        named = ""
        if self.variable:
            named = os.environ.get(self.variable, "")
        is_folder = named != "" and Path(named).is_dir()
        path = ":".join(
            ([named] if is_folder else [])
            + [os.environ.get("PATH", os.defpath), str(Path(sys.prefix) / "bin")]
            + [str(folder) for pattern in _SERVERS for folder in Path("/usr").glob(pattern)]
        )
        commands = [named] if named and not is_folder else self.command.split()
        paths = [shutil.which(command, path=path) for command in commands]
        program = paths[0]
        if program is None or not all(paths) or not self.help:
            return all(paths)
        if (reason := why_untrusted(Path(program))) is not None:
            remedy = "put first in PATH"
            if named:
                remedy = f"set {self.variable} to"
            raise RejectedError(
                f"{program} is not run as root: {reason}. Repair: {remedy} a program of root"
            )
        try:
            output = subprocess.run(
                [program, "-h"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_HELP_TIMEOUT_S,
                check=False,
            ).stdout
        except (OSError, subprocess.TimeoutExpired):
            return False
        text = output[:_HELP_BYTES].decode(errors="replace")
        return re.search(self.help, text, re.DOTALL) is not None


@dataclass(frozen=True)
class Preset:
    """A preset of a suite: its protocol, and the tests it leaves out."""

    protocol: Protocol
    leave_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True)
class Suite:
    """A suite folder such as `suites/eeio-suite`."""

    folder: Path
    title: str
    description: str
    entries: tuple[SuiteEntry, ...]
    presets: Mapping[str, Preset]
    optional: tuple[Optional, ...] = ()

    @property
    def name(self) -> str:
        return self.folder.name

    def protocol(self, preset: str) -> Protocol:
        """How the preset repeats and pauses; RejectedError if the suite has none of that name."""
        return self._preset(preset).protocol

    def left_out(self, preset: str) -> tuple[LeftOut, ...]:
        """The tests that the preset skips; RejectedError if the suite has no preset of that
        name."""
        return self._preset(preset).leave_out

    def _preset(self, name: str) -> Preset:
        try:
            return self.presets[name]
        except KeyError:
            raise RejectedError(
                f"suite {self.name} has no preset {q.shortened(name)}"
                f"{similar(name, self.presets)}; it has {', '.join(self.presets)}"
            ) from None


def find(name: str) -> Suite:
    """The suite of that name on the search path, or in the folder of that path."""
    if "\0" in name:  # from a campaign.json of others
        raise RejectedError(f"{q.shortened(name)} is not a valid suite name")
    if "/" in name:
        check_definition(Path(name))  # with its links
        return load(Path(name).resolve())
    folders = search_path("suites")
    for folder in folders:
        if (folder / name / DEFINITION).is_file():
            return load(folder / name)
    known = available()
    raise RejectedError(
        f"no suite {q.shortened(name)}{similar(name, known)}; there are: {', '.join(known)}"
    )


def available() -> dict[str, Path]:
    """Name -> folder of every suite on the search path, by name; the first folder that has one
    wins. Not read yet: a damaged one must not hide the others."""
    folders: dict[str, Path] = {}
    for folder in search_path("suites"):
        for definition in sorted(folder.glob(f"*/{DEFINITION}")):
            folders.setdefault(definition.parent.name, definition.parent)
    return dict(sorted(folders.items()))


def load(folder: Path) -> Suite:
    """The suite in `folder`: suite-definition.xml (PTS's file) and protocol.yaml (ours).
    RejectedError for root if another user could change it."""
    check_definition(folder)
    path = folder / DEFINITION
    try:
        root = documents.read_xml(path)
    except (OSError, LimitError) as error:
        raise RejectedError(f"{path}: not a PTS suite definition: {error}") from error
    entries = tuple(_entry(node, path) for node in root.findall("Execute"))
    if not entries:
        raise RejectedError(f"{path}: contains no <Execute>, so it has no runs")
    presets, optional = _read_protocol_file(folder / PROTOCOL)
    return Suite(
        folder=folder,
        title=root.findtext("SuiteInformation/Title") or folder.name,
        description=" ".join((root.findtext("SuiteInformation/Description") or "").split()),
        entries=entries,
        presets=presets,
        optional=optional,
    )


def _entry(node: Element, path: Path) -> SuiteEntry:
    test = (node.findtext("Test") or "").removeprefix("local/")
    if not test:
        raise RejectedError(f"{path}: an <Execute> without <Test>")
    factors = {}
    try:
        arguments = shlex.split(node.findtext("Arguments") or "")
    except ValueError as error:
        raise RejectedError(f"{path}: arguments of {test}: {error}") from error
    for argument in arguments:
        key, separator, value = argument.partition("=")
        if not separator:
            raise RejectedError(f"{path}: argument {argument!r} of {test} is not key=value")
        factors[key] = value
    return SuiteEntry(test, factors, node.findtext("Description") or "")


def _read_protocol_file(path: Path) -> tuple[dict[str, Preset], tuple[Optional, ...]]:
    try:
        body: Any = documents.read_yaml(path)
        if not isinstance(body, dict) or not isinstance(body.get("presets"), dict):
            raise LimitError("no presets in it")
        optional = tuple(
            Optional(
                command=_text(item["command"], "command"),
                variable=_text(item["variable"], "variable") if "variable" in item else None,
                otherwise=" ".join(item["otherwise"].split()),
                entries=tuple(
                    SuiteEntry(
                        _text(entry["profile"], "profile"),
                        _factors(entry["factors"]),
                        _text(entry["description"], "description"),
                    )
                    for entry in item["experiments"]
                ),
                help=_pattern(item.get("help", "")),
            )
            for item in body.get("optional", ())
        )
        return {
            str(preset): Preset(
                Protocol(
                    repetitions=q.REPETITIONS.whole_number(values["repetitions"], "repetitions"),
                    settle_s=q.PAUSE.checked(values["settle_s"], "settle_s"),
                    idle_s=q.PAUSE.checked(values["idle_s"], "idle_s"),
                    is_measurement=_truth(values["is_measurement"], "is_measurement"),
                    study=_study({**body["study"], **values}) if "study" in body else None,
                    work_bytes=_work(values.get("work")),
                    min_phase_s=_optional_pause(values, "min_phase_s"),
                    adaptive=_adaptive(values.get("adaptive"), values["repetitions"]),
                    sizes_of=None if "like" not in values else _text(values["like"], "like"),
                    steady=_steady(values.get("steady"), values),
                    device_share=_device_share(values.get("device_share")),
                    drive_states_s=_optional_pause(values, "drive_states_s"),
                ),
                tuple(
                    LeftOut(
                        _text(item["profile"], "profile"),
                        _factors(item["factors"]),
                        _text(item["reason"], "reason"),
                    )
                    for item in values.get("leave_out", ())
                ),
            )
            for preset, values in body["presets"].items()
        }, optional
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise RejectedError(f"{path}: not a suite protocol: {error!s:.300}") from error


def _work(value: object) -> int | None:
    if value is None:
        return None
    if (size_bytes := size_of("work", "the work", _word(value))) == 0:
        raise LimitError("work: 0 bytes are none; leave it out, or give such as 1g")
    return size_bytes


def _adaptive(value: object, repetitions: int) -> AdaptiveProtocol | None:
    """`adaptive:` of a preset; missing values are the defaults there."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise LimitError(f"adaptive: {q.shortened(value)} is not a mapping")
    usual = {
        k: list(v) if isinstance(v, tuple) else v for k, v in asdict(AdaptiveProtocol()).items()
    }
    rule: AdaptiveProtocol = typed.read(AdaptiveProtocol, {**usual, **value})
    if repetitions < 3:
        raise LimitError("adaptive: repetitions are to be 3 at least")
    return rule


def _steady(value: object, preset: Mapping[str, Any]) -> SteadyProtocol | None:
    """`steady:` of a preset; missing values are the defaults there."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise LimitError(f"steady: {q.shortened(value)} is not a mapping")
    rule: SteadyProtocol = typed.read(SteadyProtocol, {**asdict(SteadyProtocol()), **value})
    if preset["repetitions"] != rule.rounds:
        raise LimitError(f"steady: repetitions are to be the {rule.rounds} rounds of the window")
    if "adaptive" in preset:
        raise LimitError("steady: its rounds are not those of an adaptive protocol; give one")
    return rule


def _device_share(value: object) -> float | None:
    if value is None:
        return None
    if (share := q.FRACTION.checked(value, "device_share")) == 0:
        raise LimitError("device_share: 0 leaves no area to measure")
    return share


def _optional_pause(values: Mapping[str, Any], name: str) -> float | None:
    if name not in values:
        return None
    return q.PAUSE.checked(values[name], name)


def _study(body: Mapping[str, Any]) -> StudyProtocol:
    half_width = body["half_width"]
    return StudyProtocol(
        variants=tuple(map(str, body["variants"])),
        frequencies=tuple(map(str, body["frequencies"])),
        window_us={
            str(tool): q.COUNT.whole_number(value, "window_us")
            for tool, value in body["window_us"].items()
        },
        max_resets=q.COUNT.whole_number(body["max_resets"], "max_resets"),
        flush_first=_truth(body["flush_first"], "flush_first"),
        half_width=None if half_width is None else q.FRACTION.checked(half_width, "half_width"),
        most_repetitions=q.REPETITIONS.whole_number(body["most_repetitions"], "most_repetitions"),
        name=None if body.get("name") is None else _text(body["name"], "name"),
    )


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise LimitError(f"{name}: {q.shortened(value)} is not text")
    return value


def _pattern(value: object) -> str:
    text = _text(value, "help")
    try:
        re.compile(text)
    except re.error as error:
        raise LimitError(
            f"help: {q.shortened(text)} is not a regular expression: {error}"
        ) from error
    return text


def _truth(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise LimitError(f"{name}: {q.shortened(value)} is neither true nor false")
    return value


def _factors(value: object) -> dict[str, str]:
    """Arguments of a profile; YAML reads some as numbers or truth values, which the suite's XML
    does not."""
    if not isinstance(value, dict):
        raise LimitError("factors: no keys and values")
    return {_text(key, "factors"): _word(word) for key, word in value.items()}


def _word(value: object) -> str:
    if isinstance(value, bool):
        if value:
            return "on"
        return "off"
    if isinstance(value, int | float) and q.FIGURE.contains(value):
        return str(value)
    return _text(value, "factors")


def experiment_of(
    tool: str, factors: Mapping[str, str], target: str, disk: str | None
) -> Experiment:
    """The experiment that a profile's factors describe.

    Factors that `Experiment` has a field for go into it; the rest stay as arguments.
    Factors without a level describe the machine (`context`).
    """
    rest = dict(factors)
    level = rest.pop("level", "context")
    if level not in _LEVELS:
        raise RejectedError(f"{tool}: unknown level {level!r}; it is one of {', '.join(_LEVELS)}")
    for name, known in (("operation", OPERATIONS), ("spatiality", SPATIALITIES)):
        if (value := rest.get(name)) is not None and value not in known:
            raise RejectedError(
                f"{tool}: unknown {name} {value!r}; it is one of {', '.join(known)}"
            )
    count = str(rest.pop("processes", "1"))  # YAML has numbers
    processes = inputs.whole_number(count)
    if not processes:
        raise RejectedError(
            f"{tool}: processes is {q.shortened(count)}; it is a number of at least 1"
        )
    request_size = rest.pop("request_size", None)
    flush = rest.pop("flush", None)
    if flush is not None:
        flush = _FLUSH_NAMES.get(flush, flush)
        if flush not in FLUSHES:
            raise RejectedError(
                f"{tool}: unknown flush {flush!r}; it is one of {', '.join(FLUSHES)}"
            )
    buffer = _switch(tool, "buffer", rest.pop("buffer", None))
    return Experiment(
        level=level,  # type: ignore[arg-type]
        tool=tool,
        operation=rest.pop("operation", None),
        spatiality=rest.pop("spatiality", None),
        request_size_bytes=None
        if request_size is None
        else size_of(tool, "request_size", request_size),
        cache=CacheLayers(buffer=buffer, disk=_switch(tool, "disk", disk)),  # type: ignore[arg-type]
        api=rest.pop("api", "posix"),
        processes=processes,
        target=target,
        arguments=tuple(sorted(rest.items())),
        flush=flush,
    )


def size_of(tool: str, name: str, value: str) -> int:
    """Bytes of a factor that is a size; RejectedError when it is none."""
    try:
        return parse_size(value)
    except EeioError as error:
        raise RejectedError(f"{tool}: {name} is {error}") from error


def _switch(tool: str, name: str, value: str | None) -> str | None:
    if value not in (None, "on", "off"):
        raise RejectedError(f"{tool}: {name} is {value!r}; it is on or off")
    return value
