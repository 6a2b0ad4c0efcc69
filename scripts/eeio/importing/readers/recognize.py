"""Which tool wrote a file, by its content: names and suffixes do not count."""

import email
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from eeio.importing.readers import (
    bonnie,
    darshan,
    dd,
    elbencho,
    fio,
    hyperfine,
    ior,
    iozone,
    lmbench,
    npb,
    sysbench,
    vdbench,
)
from eeio.importing.readers.found import FoundReport
from eeio.importing.readers.rules import Rules

Read = Callable[[str], Iterator[FoundReport]]
HEAD_CHARACTERS = 65536
"""Of the beginning of a file; noise before the tool's output may be there."""


@dataclass(frozen=True)
class Kind:
    """A form of output of a tool, and its reader."""

    tool: str
    form: str
    read: Read


_READERS = (bonnie, dd, elbencho, fio, hyperfine, ior, iozone, lmbench, npb, sysbench, vdbench)
RULES: Mapping[str, Rules] = {name: of for reader in _READERS for name, of in reader.RULES.items()}
"""Tool -> its rules."""
FORMATS: Mapping[str, tuple[str, ...]] = {
    name: tuple(tool for tool, rules in RULES.items() if name in (tool, *rules.formats))
    for name in dict.fromkeys(["", *RULES, *(name for of in RULES.values() for name in of.formats)])
}
"""`format` in a map -> the tools whose output it may be. Without a format it is any tool's."""


def rules_of(tool: str | None) -> Rules:
    """Those of a tool without a reader here are the usual ones."""
    return RULES.get(tool or "", Rules())


PTS = re.compile(r"<PhoronixTestSuite>")
_TEXTS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (darshan.TEXT, Kind("darshan", "text", darshan.read_text)),
    (fio.RECOGNIZED, Kind("fio", "text", fio.read_text)),
    (fio.TERSE, Kind("fio", "terse", fio.read_terse)),
    (ior.BEGIN, Kind("ior", "text", ior.read_text)),
    (ior.SUMMARY, Kind("ior", "summary", ior.read_summary)),
    (ior.MDTEST, Kind("mdtest", "text", ior.read_mdtest)),
    (ior.MDTEST_SUMMARY, Kind("mdtest", "text", ior.read_mdtest)),
    (re.compile(r"^[^\[\n]{0,40}\[RESULT\w{0,80}\]", re.M), Kind("io500", "text", ior.read_io500)),
    (re.compile(r"^access,bw\(MiB/s\)", re.M), Kind("ior", "csv", ior.read_csv)),
    (re.compile(r"^ISO date,label,path type", re.M), Kind("elbencho", "csv",
                                                          elbencho.read_csv)),
    (elbencho.TEXT, Kind("elbencho", "text", elbencho.read_text)),
    (iozone.TEXT, Kind("iozone", "text", iozone.read_text)),
    (bonnie.CSV, Kind("bonnie", "csv", bonnie.read_csv)),
    (bonnie.TEXT, Kind("bonnie", "text", bonnie.read_text)),
    (lmbench.TEXT, Kind("lmbench", "text", lmbench.read_text)),
    (lmbench.SUMMARY, Kind("lmbench", "summary", lmbench.read_summary)),
    (sysbench.TEXT, Kind("sysbench", "text", sysbench.read_text)),
    (vdbench.FLATFILE, Kind("vdbench", "flatfile", vdbench.read_flatfile)),
    (vdbench.FLATFILE_CSV, Kind("vdbench", "flatfile",
                                       vdbench.read_flatfile_csv)),
    (vdbench.TEXT, Kind("vdbench", "text", vdbench.read_text)),
    (npb.TEXT, Kind("npb-btio", "text", npb.read_text)),
    (hyperfine.TEXT, Kind("hyperfine", "text", hyperfine.read_text)),
    (hyperfine.TIMES, Kind("hyperfine", "text", hyperfine.read_text)),
    (hyperfine.MARKDOWN, Kind("hyperfine", "markdown", hyperfine.read_markdown)),
    (hyperfine.CSV, Kind("hyperfine", "csv", hyperfine.read_csv)),
    (dd.TEXT, Kind("dd", "text", dd.read_text)),
)  # fmt: skip
_JSONS: tuple[tuple[tuple[str, ...], Kind], ...] = (
    (('"fio version"', '"jobs"'), Kind("fio", "json", fio.read_json)),
    (('"fio version"', '"client_stats"'), Kind("fio", "json", fio.read_json)),
    (('"phase_type"', '"last_done"'), Kind("elbencho", "json", elbencho.read_json)),
    (('"tests"', '"Results"', '"Parameters"'), Kind("ior", "json", ior.read_json)),
    (('"results"', '"command"', '"mean"'), Kind("hyperfine", "json", hyperfine.read_json)),
)


_LABEL = r"^(?:stdout\[\d{1,9}\]|\[\d{1,9},\d{1,9}\]<std(?:out|err)>:|\d{1,9}:) ?"
_LABELLED = re.compile(rf"{_LABEL}(?:IOR-\d|mdtest-\S{{1,300}} was launched)", re.M)


def recognized(text: str, path: Path) -> tuple[str, Kind | None]:
    """The text as a tool printed it, and what it is."""
    text = _unlabelled(text)
    kind = kind_of(text, path)
    if kind is None and not text.lstrip().startswith(("{", "[")):
        text = without_margin(text)
        kind = kind_of(text, path)
    return text, kind


def _unlabelled(text: str) -> str:
    """Without the labels that mpirun, srun and others put before each line of a process, where one
    is before the first line of IOR or mdtest."""
    return re.sub(_LABEL, "", text, flags=re.M) if _LABELLED.search(text) else text


def kind_of(text: str, path: Path) -> Kind | None:
    """None for a file that is no result of a known tool."""
    head = text[:HEAD_CHARACTERS]
    if re.search(r"^\s{0,99}[{\[]", head, re.M) or '"fio version"' in text:
        for marks, kind in _JSONS:
            if all(mark in text for mark in marks):
                return kind
    # The first in the file wins: a script's output may contain several tools. dd is the last, as
    # such scripts often begin with it.
    # Noise of many processes before a tool's output may be longer than the head.
    for part in (head, text):
        places = [
            (match.start(), order, kind)
            for order, (pattern, kind) in enumerate(_TEXTS)
            if (match := pattern.search(part)) is not None
        ]
        if places:
            return min(places, key=lambda place: (place[2].tool == "dd", *place[:2]))[2]
        if fio.LOG.match(head):
            break
    if fio.STATUS.search(text):
        return Kind("fio", "text", fio.read_status)
    if fio.has_rates(text):
        return Kind("fio", "text", fio.read_rates)
    name = fio.LOG_NAME.search(path.name)
    if fio.LOG.match(head) or (name and fio.LOG_OF_BOTH.match(head)):
        log = name[1] if name else "lat"
        return Kind("fio", f"log of {log}", lambda body: fio.read_log(body, log))
    return None


_HEADERS = re.compile(
    r"(?:From \S|[A-Z][\w-]{1,60}: )[\s\S]{0,20000}?^Content-Transfer-Encoding:\s{0,9}"
    r"(?:quoted-printable|base64)", re.M | re.I
)  # fmt: skip


def of_mail(body: bytes, text: str) -> str:
    """The text of a mail whose characters are encoded; any other text unchanged."""
    if not _HEADERS.match(text[:HEAD_CHARACTERS]):
        return text
    parts = [part for part in email.message_from_bytes(body).walk()
             if part.get_content_type() == "text/plain"]  # fmt: skip
    decoded = (part.get_payload(decode=True) for part in parts)
    # What tools print is ASCII, or nearly.
    texts = [one.decode("utf-8", errors="replace") for one in decoded if isinstance(one, bytes)]
    return "\n".join(texts).replace("\r\n", "\n") or text


_MARGIN = re.compile(r"[ \t]*(?:>[> \t]*)?")
QUOTED = re.compile(r"^>(?: ?>)* ?", re.M)
_MOST_MARGINS, _MOST_CHARACTERS = 8, 1 << 20


def without_margin(text: str) -> str:
    """A text in which no tool is recognized, without the indentation or the marks of a quotation
    that its author put before each line of a tool's output; unchanged if that helps nothing."""
    return next((moved for moved in unquoted(text) if kind_of(moved, Path())), text)


def unquoted(text: str) -> Iterator[str]:
    """A text without the indentation or the marks of a quotation, for each of those that many of
    its lines have, the shortest first."""
    if len(text) > _MOST_CHARACTERS:
        return
    found = Counter(
        margin[0]
        for line in text.splitlines()
        if line.strip() and (margin := _MARGIN.match(line)) and margin[0]
    )
    for marks in sorted((one for one, _ in found.most_common(_MOST_MARGINS)), key=len):
        yield re.sub(rf"^{re.escape(marks)}", "", text, flags=re.M)
    if any(">" in marks for marks in found):
        yield QUOTED.sub("", text)


def in_json_string(text: str, kind: Kind | None) -> str | None:
    """The tool whose text is inside a string of a JSON file, as scripts store it, or None."""
    if (kind is not None and kind.form == "json") or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    inside = kind_of(re.sub(r'(?:\\r)?\\n|"', "\n", text), Path())
    return inside.tool if inside is not None and inside.form != "json" else None


def others_in(text: str, kind: Kind) -> list[Kind]:
    """The further tools in one file, each once; a script's output may contain several."""
    if kind.form == "json":
        return []
    found = {kind.tool: kind}
    for pattern, other in _TEXTS:
        if other.tool not in found and pattern.search(text):
            found[other.tool] = other
    return list(found.values())[1:]
