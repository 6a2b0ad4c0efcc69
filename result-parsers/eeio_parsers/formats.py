"""All formats, found by the folders of the tools; and which of them a file has, by its content."""

import importlib
import json
import pkgutil
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from eeio_parsers.format import Format
from eeio_parsers.rules import Rules

HEAD_CHARACTERS = 65536
"""Of the beginning of a file; noise before the tool's output may be there."""


@cache
def every() -> tuple[Format, ...]:
    """Of all tools, in the order of their names."""
    return tuple(form for report in _reports() for form in report.FORMATS)


@cache
def rules() -> Mapping[str, Rules]:
    """Tool -> its rules."""
    return {tool: of for report in _reports() for tool, of in report.RULES.items()}


def _reports() -> Iterator[Any]:
    folder = Path(__file__).parent
    for module in pkgutil.iter_modules([str(folder)]):
        if (folder / module.name / "report.py").exists():
            yield importlib.import_module(f"eeio_parsers.{module.name}.report")


def rules_of(tool: str | None) -> Rules:
    """Those of a tool without a format here are the usual ones."""
    return rules().get(tool or "", Rules())


def names() -> list[str]:
    """The values of `format` in a map; without one, a file may be any tool's."""
    further = (name for of in rules().values() for name in of.formats)
    return list(dict.fromkeys(["", *rules(), *further]))


def is_named(tool: str, name: str) -> bool:
    """Whether the `format` of a map means the output of this tool."""
    return name in ("", tool, *rules_of(tool).formats)


_LABEL = r"^(?:stdout\[\d{1,9}\]|\[\d{1,9},\d{1,9}\]<std(?:out|err)>:|\d{1,9}:) ?"
_LABELLED = re.compile(rf"{_LABEL}(?:IOR-\d|mdtest-\S{{1,300}} was launched)", re.M)


def unlabelled(text: str) -> str:
    """Without the labels that mpirun, srun and others put before each line of a process, where one
    is before the first line of IOR or mdtest."""
    # The pattern takes as long as reading a file of JSON.
    may_be = "IOR-" in text or "was launched" in text
    if may_be and _LABELLED.search(text):
        return re.sub(_LABEL, "", text, flags=re.M)
    return text


def format_of(text: str, path: Path) -> Format | None:
    """None for a file that is no result of a known tool."""
    head = text[:HEAD_CHARACTERS]
    return (
        _with_keys(text, head)
        or _first_in(head)
        or next((form for form in every() if form.fits and form.fits(head, path)), None)
        # Noise of many processes before a tool's output may be longer than the head.
        or _first_in(text)
        or next((form for form in every() if form.fits_at_last and form.fits_at_last(text)), None)
    )


def _with_keys(text: str, head: str) -> Format | None:
    """The format of a file that contains JSON."""
    if '"fio version"' not in text and not re.search(r"^\s{0,99}[{\[]", head, re.M):
        return None
    for form in every():
        if form.keys and all(f'"{key}"' in text for key in form.keys):
            return form
    return None


def _first_in(text: str) -> Format | None:
    """That whose report is the first in the text."""
    places = []
    for order, form in enumerate(every()):
        if form.begins is not None and (match := form.begins.search(text)) is not None:
            places.append((form.prepares_others, match.start(), order, form))
    if places:
        return min(places)[3]
    return None


def in_json_string(text: str, form: Format | None) -> str | None:
    """The tool whose text is inside a string of a JSON file, as scripts store it, or None."""
    if (form is not None and form.keys) or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    inside = format_of(re.sub(r'(?:\\r)?\\n|"', "\n", text), Path())
    if inside is not None and not inside.keys:
        return inside.tool
    return None


def others_in(text: str, form: Format) -> list[Format]:
    """A format of each further tool in one file; a script's output may contain several."""
    if form.keys:
        return []
    of_tool = {form.tool: form}
    for other in every():
        if other.tool not in of_tool and other.begins and other.begins.search(text):
            of_tool[other.tool] = other
    return list(of_tool.values())[1:]
