"""Result files of the Phoronix Test Suite (composite.xml), read and written.

The files may come from others, so they are not trusted: a document type, an entity, a file longer,
deeper or with more elements than `eeio.files.inputs` allows is rejected before parsing.

Besides the elements of PTS's schema, entries may contain our data in their JSON, under `eeio`:

- a value of a tool: `trial-of-value`, the number of the trial (from 0) that each value of
  RawString came from, `trials`, how many there were, and `phase`, which of the tool's it is; the
  first result of a test also has `told`: of each trial its phases with their windows and energies,
  and the state of the drive (null where the trial failed);
- an energy: `quantity`, `meter`, `domain`, `kind`, and `trials`, a list of `order`, `started_utc`,
  `duration_s`, `failed` and `reading` (an EnergyReading, null where there is none); `phase` where
  it is the energy of one phase and not of the complete trial.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape

from eeio.errors import EeioError, LimitError, RejectedError, SchemaError
from eeio.files import documents, inputs
from eeio.measure.profiles import complete
from eeio.units import quantities as q
from eeio.units.number_text import pts_number

MOST_SYSTEMS = 256
MB_PER_S = "MB/s"
FILES_PER_S = "Files/s"

# Characters that XML 1.0 cannot contain in any form.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# Titles, descriptions and identifiers as PTS's schema allows them.
_PLAIN_TITLE = re.compile(r"[^\w /\-.,:'()+\"@#*!%&=]")


@dataclass(frozen=True)
class ResultEntry:
    """One system's values in one result: the mean, and each trial's value."""

    identifier: str
    value: str
    raw: str = ""
    json: Mapping[str, Any] = field(default_factory=dict)

    @property
    def values(self) -> tuple[float, ...]:
        """The trials' values; only the mean if PTS stored no others; none if it failed."""
        texts = (self.raw or self.value).split(":")
        try:
            return tuple(q.FIGURE.of_text(text, "a value") for text in texts if text.strip())
        except LimitError:
            return ()

    @property
    def run_times_s(self) -> tuple[float, ...]:
        """Seconds that each trial took, as PTS (to 0.01 s) or our module saw it."""
        texts = str(self.json.get("test-run-times", "")).split(":")
        try:
            return tuple(q.DURATION.of_text(text, "a run time") for text in texts if text)
        except LimitError:
            return ()

    @property
    def own(self) -> Mapping[str, Any]:
        """Our data; empty in a file of plain PTS."""
        own = self.json.get("eeio")
        if isinstance(own, dict):
            return own
        return {}


@dataclass(frozen=True)
class Result:
    """One graph: a test with its arguments, in one unit, over one or several systems."""

    identifier: str
    title: str
    app_version: str
    arguments: str
    description: str
    scale: str
    proportion: str
    entries: tuple[ResultEntry, ...]
    display_format: str = "BAR_GRAPH"
    annotation: str = ""
    parent: str = ""

    @property
    def comparison_hash(self) -> str:
        """The key by which PTS matches results, and the `parent` of another result.

        The last part of a profile's version does not count.
        """
        name = self.identifier.rpartition(".")[0] if "." in self.identifier else self.identifier
        parts = (name or self.title, self.arguments, self.description, self.app_version, self.scale)
        return hashlib.sha1(
            ",".join(part.strip() for part in parts).encode(), usedforsecurity=False
        ).hexdigest()


@dataclass(frozen=True)
class System:
    """A machine as PTS saw it; hardware and software are `Name: value, Name: value`."""

    identifier: str
    hardware: str
    software: str
    user: str
    timestamp: str
    client_version: str
    notes: str = ""
    json: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ResultFile:
    """A composite.xml. `environment` contains variables stored by its modules: `EEIO_PRESET` and
    similar."""

    title: str
    last_modified: str
    test_client: str
    description: str
    environment: Mapping[str, str]
    systems: tuple[System, ...]
    results: tuple[Result, ...]


def read(path: Path) -> ResultFile:
    """Raises EeioError if the file cannot be read, SchemaError if it is no result file."""
    try:
        if not path.is_file():
            raise RejectedError(f"{path}: no such file; PTS keeps them in test-results/NAME/")
        content = inputs.read_bytes(path, inputs.XML_BYTES)
    except OSError as error:
        raise EeioError(f"{path}: {error.strerror}") from error
    except LimitError as error:
        raise SchemaError(f"{path}: {error}: not a result file of PTS") from error
    return parse(content, str(path))


def parse(content: bytes, source: str = "composite.xml") -> ResultFile:
    """The result file in `content`; SchemaError names `source` and the error."""
    root = _tree(content, source)
    generated, systems = root.findall("Generated"), root.findall("System")
    if root.tag != "PhoronixTestSuite" or not generated or not systems:
        raise SchemaError(f"{source}: not a result file of PTS (no Generated and System in it)")
    if len(systems) > MOST_SYSTEMS:
        raise SchemaError(f"{source}: more than {MOST_SYSTEMS} systems")
    about = generated[0]
    return ResultFile(
        title=_of(about, "Title"),
        last_modified=_of(about, "LastModified"),
        test_client=_of(about, "TestClient"),
        description=_of(about, "Description"),
        environment=_pairs(_of(about, "PreSetEnvironmentVariables")),
        systems=tuple(_system(node, source) for node in systems),
        results=tuple(_result(node, source) for node in root.findall("Result")),
    )


def _tree(content: bytes, source: str) -> Element:
    try:
        return documents.parse_xml(content)
    except LimitError as error:
        raise SchemaError(f"{source}: {error}") from error


def _of(node: Element, name: str) -> str:
    """The text of the first child of that name; empty if there is none."""
    return (node.findtext(name) or "").strip()


def _system(node: Element, source: str) -> System:
    return System(
        identifier=_of(node, "Identifier"),
        hardware=_of(node, "Hardware"),
        software=_of(node, "Software"),
        user=_of(node, "User"),
        timestamp=_of(node, "TimeStamp"),
        client_version=_of(node, "TestClientVersion"),
        notes=_of(node, "Notes"),
        json=_json(_of(node, "JSON"), source),
    )


def _result(node: Element, source: str) -> Result:
    entries = [entry for data in node.findall("Data") for entry in data.findall("Entry")]
    return Result(
        identifier=_of(node, "Identifier"),
        title=_of(node, "Title"),
        app_version=_of(node, "AppVersion"),
        arguments=_of(node, "Arguments"),
        description=_of(node, "Description"),
        scale=_of(node, "Scale"),
        proportion=_of(node, "Proportion"),
        display_format=_of(node, "DisplayFormat"),
        annotation=_of(node, "Annotation"),
        parent=_of(node, "Parent"),
        entries=tuple(
            ResultEntry(
                identifier=_of(entry, "Identifier"),
                value=_of(entry, "Value"),
                raw=_of(entry, "RawString"),
                json=_json(_of(entry, "JSON"), source),
            )
            for entry in entries
        ),
    )


def _json(text: str, source: str) -> Mapping[str, Any]:
    if not text:
        return {}
    try:
        body = inputs.parse_json(text)
    except LimitError as error:
        raise SchemaError(f"{source}: a JSON element does not hold JSON: {error}") from error
    if isinstance(body, dict):
        return body
    return {}


def _pairs(text: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in text.split(";"))
    return {key.strip(): value for key, separator, value in pairs if separator}


_PHASE_LINE = re.compile(r"EEIO (.+) (?:bandwidth: #_RESULT_# MB/s|rate: #_RESULT_# Files/s)")


def pts_descriptions(profile: Path) -> dict[str, str]:
    """Phase -> PTS's suffix to the description of its result, from a profile's folder.

    `EEIO random read bandwidth: ...` is the bandwidth of the phase `random read`, `EEIO create
    rate: ...` in files a second that of the phase `create`. The sum over IOzone's child processes
    is not a phase: its bandwidth is that of their parent.
    """
    path = complete.file(profile, "results-definition.xml")
    if not path.exists():
        raise EeioError(f"{profile.name}: the Phoronix Test Suite has no such results")
    root = _definition(path)
    descriptions = {}
    for parser in root.findall("ResultsParser"):
        match = _PHASE_LINE.fullmatch(_of(parser, "OutputTemplate"))
        if match and not match[1].endswith(" children"):
            descriptions[match[1]] = _of(parser, "AppendToArgumentsDescription")
    return descriptions


def phase_label(phase: str, scale: str) -> str:
    """The suffix to the description of a phase that the profile does not print for PTS."""
    if scale == FILES_PER_S:
        return phase.title()
    return f"{phase.title()} Bandwidth"


def pts_app_version(profile: Path) -> str:
    """PTS's version of the tool; it separates results of two versions."""
    root = _definition(profile / "test-definition.xml")
    return next((_of(node, "AppVersion") for node in root.findall("TestInformation")), "")


def _definition(path: Path) -> Element:
    try:
        return _tree(inputs.read_bytes(path, inputs.XML_BYTES), str(path))
    except OSError as error:
        raise EeioError(f"{path}: {error.strerror}") from error
    except LimitError as error:
        raise EeioError(f"{path}: {error}") from error


def entry_of(identifier: str, values: Sequence[float], body: Mapping[str, Any]) -> ResultEntry:
    """The entry of several trials: their mean, and all of them."""
    texts = [pts_number(value) for value in values]
    mean = pts_number(sum(values) / len(values))
    return ResultEntry(identifier, mean, ":".join(texts), body)


def render(file: ResultFile) -> str:
    """The file as PTS writes it, in the order of its schema."""
    lines = ['<?xml version="1.0"?>', "<PhoronixTestSuite>"]
    environment = ";".join(f"{key}={value}" for key, value in file.environment.items())
    lines += _element(
        "Generated",
        ("Title", _plain(file.title)),
        ("LastModified", file.last_modified),
        ("TestClient", file.test_client),
        ("Description", file.description),
        ("PreSetEnvironmentVariables", environment or None),
    )
    for system in file.systems:
        lines += _element(
            "System",
            ("Identifier", system.identifier),
            ("Hardware", system.hardware),
            ("Software", system.software),
            ("User", system.user),
            ("TimeStamp", system.timestamp),
            ("TestClientVersion", system.client_version),
            ("Notes", system.notes),
            ("JSON", _compact(system.json)),
        )
    for result in file.results:
        lines += _render_result(result)
    return "\n".join([*lines, "</PhoronixTestSuite>"]) + "\n"


def _render_result(result: Result) -> list[str]:
    head = _element(
        "Result",
        ("Identifier", result.identifier),
        ("Title", _plain(result.title)),
        ("AppVersion", result.app_version),
        ("Arguments", result.arguments),
        ("Description", result.description),
        ("Scale", result.scale),
        ("Proportion", result.proportion),
        ("DisplayFormat", result.display_format),
        ("Annotation", result.annotation or None),
        ("Parent", result.parent or None),
    )
    lines = [*head[:-1], "    <Data>"]
    for entry in result.entries:
        lines += [
            "    " + line
            for line in _element(
                "Entry",
                ("Identifier", entry.identifier),
                ("Value", entry.value),
                ("RawString", entry.raw or None),
                ("JSON", _compact(entry.json)),
            )
        ]
    return [*lines, "    </Data>", head[-1]]


def _element(name: str, *children: tuple[str, str | None]) -> list[str]:
    return [
        f"  <{name}>",
        *(
            f"    <{key}>{escape(_NO_XML.sub('', text))}</{key}>"
            for key, text in children
            if text is not None
        ),
        f"  </{name}>",
    ]


def _compact(body: Mapping[str, Any]) -> str | None:
    if body:
        return json.dumps(body, separators=(",", ":"))
    return None


def _plain(text: str) -> str:
    return _PLAIN_TITLE.sub(" ", text)
