"""Result files: which tool's they are, and their reports."""

import codecs
import csv
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from eeio.errors import EeioError, LimitError, RejectedError
from eeio.files import inputs
from eeio.pts import read as pts
from eeio_parsers import formats
from eeio_parsers.darshan import report as darshan
from eeio_parsers.format import Format
from eeio_parsers.found import FoundPhase, FoundReport, with_mixed
from eeio_parsers.rules import FoundFile

MOST_FILES = 100_000


def found(arguments: Sequence[Path]) -> list[FoundFile]:
    """All files of the arguments, read. Raises RejectedError for a path that does not exist."""
    made: list[FoundFile] = []
    seen: dict[str, Path] = {}
    for path, place in _files(arguments):
        file, *further = _read(path, place)
        if file.sha256 and (first := seen.setdefault(file.sha256, path)) != path:
            file, further = replace(file, reports=[], rejected=f"the same content as {first}"), []
        made += (file, *further)
    for rules in formats.rules().values():
        rules.reject_repeated(made)
    return [file for file in made if not file.is_part]


def _files(arguments: Sequence[Path]) -> Iterator[tuple[Path, tuple[str, ...]]]:
    count = 0
    for argument in arguments:
        if not argument.exists():
            raise RejectedError(f"{argument}: no such file or folder")
        if not argument.is_dir():
            yield argument, ()
            continue
        for folder, folders, names in os.walk(argument):
            folders.sort()
            for name in sorted(names):
                if name.startswith("."):
                    continue
                count += 1
                if count > MOST_FILES:
                    raise RejectedError(f"{argument}: more than {MOST_FILES} files; import parts")
                yield Path(folder, name), Path(folder).relative_to(argument).parts


def _read(path: Path, place: tuple[str, ...]) -> list[FoundFile]:
    """One for each tool whose output is in the file."""
    file = FoundFile(path, place)
    try:
        body = _body(path)
        file.sha256 = hashlib.sha256(body).hexdigest()
        if body[8:16] in darshan.MAGIC:
            file.tool, file.form = "darshan", "log"
            _take(file, darshan.read_log(path))
            return [file]
        text = _text(body)
        if "<PhoronixTestSuite>" in text[: formats.HEAD_CHARACTERS]:
            file.tool, file.form = "pts", "xml"
            file.parsed = pts.read_file(path)
            file.reports = list(_pts_reports(file.parsed))
            return [file]
        return [file, *_read_tools(formats.unlabelled(text), file)]
    except _DAMAGED as error:
        file.rejected, file.reports = _why(error), []
    return [file]


def _body(path: Path) -> bytes:
    """Raises EeioError and OSError for a path that is no file to read."""
    if path.is_symlink() and not path.exists():
        raise EeioError("a link to a file that does not exist")
    if not path.is_file():
        raise EeioError("no regular file")
    if (size := path.stat().st_size) > inputs.TOOL_FILE_BYTES:
        raise EeioError(f"{size} bytes; eeio reads result files up to {inputs.TOOL_FILE_BYTES}")
    return path.read_bytes()


def _as_shown(text: str) -> str:
    """As a terminal shows it: what follows a carriage return is over what was there, as progress
    is. A text without line ends has them in place of these."""
    if "\r" not in text:
        return text
    if "\n" not in text:
        return text.replace("\r", "\n")
    lines = []
    for line in text.split("\n"):
        lines.append(line.rstrip("\r").rpartition("\r")[2])
    return "\n".join(lines)


def _text(body: bytes) -> str:
    """Raises EeioError for a file that is no text, and LimitError for too long lines."""
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        # As `>` of PowerShell 5 writes it.
        body = body.decode("utf-16", errors="replace").encode()
    if _is_binary(body[:4096]):
        raise EeioError("binary: unpack an archive first")
    text = body.replace(b"\0", b"").decode("utf-8", errors="replace").replace("\r\n", "\n")
    text = _as_shown(text)
    if not text.strip():
        raise EeioError("empty")
    if not text.lstrip().startswith(("{", "[")):
        inputs.check_lines(text)
    return text


def _read_tools(text: str, file: FoundFile) -> list[FoundFile]:
    """Reads the first tool into `file`; the further ones are returned."""
    form = formats.format_of(text, file.path)
    if (tool := formats.in_json_string(text, form)) is not None:
        raise EeioError(
            f"the output of {tool} is inside a string of JSON: write it to a file of its own"
        )
    if form is None:
        raise EeioError("no result of a known tool in it (docs/how-to/import-results.md)")
    _read_by(form, text, file)
    begins = [report.begins_at for report in file.reports if report.begins_at is not None]
    file.above = "" if form.keys else text[: min(begins, default=0)]
    further = []
    for other in formats.others_in(text, form):
        part = FoundFile(file.path, file.place, file.sha256)
        _read_by(other, text, part)
        further.append(part)
    return further


def _is_binary(head: bytes) -> bool:
    """Of a file's beginning. Programs print a few NUL bytes into text by mistake; binary files have
    more of them, or bytes that are no characters."""
    nuls = head.count(0)
    return nuls > 0 and (nuls > 16 or head.decode("utf-8", "replace").count("\ufffd") > nuls)


def _read_by(form: Format, text: str, file: FoundFile) -> None:
    file.tool, file.form = form.tool, form.name
    try:
        _take(file, form.reports(text))
        formats.rules_of(form.tool).complete(file)
        if not any(report.phases for report in file.reports):
            notes = [note for report in file.reports for note in report.notes]
            raise EeioError(": ".join(["no result in it", *notes[:1]]))
    except _DAMAGED as error:
        why = _why(error)
        is_named = form.tool.lower() in why.lower()
        file.rejected, file.reports = why if is_named else f"{form.tool}: {why}", []


_DAMAGED = (
    OSError,
    EeioError,
    LimitError,
    csv.Error,
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
    ZeroDivisionError,
    RecursionError,
)
"""Errors that readers raise for files that are cut off, damaged or of another form."""


def _why(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "objects and lists are nested too deeply"
    known = isinstance(error, OSError | EeioError | LimitError | csv.Error)
    if known:
        return str(error)
    return f"not understood: {error!r:.150}"


def _take(file: FoundFile, reports: Iterator[FoundReport]) -> None:
    for report in reports:
        phases = (replace(p.checked(), options=_shared(p.options)) for p in report.phases)
        checked = replace(report, phases=tuple(phases))
        at_once = formats.rules_of(file.tool).groups_at_once
        file.reports.append(with_mixed(checked) if at_once else checked)


def _shared(options: Mapping[str, str]) -> Mapping[str, str]:
    """The same object for equal options, of which a campaign has very many."""
    return _of_items(tuple(options.items()))


@lru_cache(maxsize=10_000)
def _of_items(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return dict(items)


def _pts_reports(file: pts.PtsFile) -> Iterator[FoundReport]:
    """One report for each system, with the phases of all trials."""
    for system, tests in file.systems:
        phases = []
        for test in tests:
            for trial in range(test.trials):
                measured, run = test.trial(trial), pts.run_of(test, trial, system)
                for phase in run.phases:
                    found = FoundPhase(
                        name=f"{test.profile} {phase.name}",
                        operation=phase.operation,
                        access_pattern=phase.spatiality,
                        group=f"{test.experiment.id} {trial + 1}",
                        request_bytes=phase.request_size_bytes,
                        jobs=run.experiment.processes,
                        bandwidth_bytes_per_s=phase.bandwidth_bytes_per_s,
                        iops=phase.metrics.get("operations_per_s", phase.metrics.get("iops")),
                        bytes=phase.bytes_moved,
                        runtime_s=phase.lasted_s,
                        started_utc=measured.started_utc if measured else None,
                        time_source="the trial's start" if measured else None,
                        metrics=phase.metrics,
                        options=test.factors,
                        error="; ".join((*run.validity, *phase.validity)) or None,
                        energy=phase.energy,
                    )
                    phases.append(found.checked())
        yield FoundReport(tuple(phases), system.client_version or None, system.identifier)
