"""A complete page: a template with the style, the script, its data, and a policy that blocks
requests."""

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from eeio.report.campaign.data_source import described, is_imported, source_of
from eeio.units.external_text import shown, shown_lines

_HERE = Path(__file__).parent
_HEAD = """\
// The script of eeio's report page.
// Copyright the eeio authors. SPDX-License-Identifier: GPL-3.0-or-later
"""
_IMPORT = re.compile(r'^import \{ ([\w, ]+) \} from "\./(\w+)\.mjs";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_PACKED_ABOVE = 300_000
"""Characters; shorter data stay readable in the page's source."""


def document(template: str, **parts: Any) -> str:
    """The page as text. External names and reasons cannot break it."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "described": described,
        "is_imported": is_imported,
        "source_of": source_of,
    }
    source = script()
    text = environment.get_template(template).render(
        policy=_policy(source),
        style=Markup((_HERE / "page.css").read_text(encoding="utf-8")),
        script=Markup(source),
        **parts,
    )
    # No characters that change the text direction or that UTF-8 cannot encode. Line by line: long
    # lines are data without anything to escape, which is quick to check.
    return "\n".join(map(shown_lines, text.split("\n")))


def _policy(source: str) -> str:
    """Blocks all requests and other scripts, whatever a name contains. Figures of studies contain
    styles."""
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def embedded(name: str, body: Any, *, always_packed: bool = False) -> Markup:
    """A `script` element that no browser runs, for the page's script to read by its `id`.

    Texts of others are made harmless here, as the script shows them.
    """
    text = json.dumps(_harmless(body), separators=(",", ":"))
    if not always_packed and len(text) <= _PACKED_ABOVE:
        # `</script>` and `<!--` within a text would end the element or hide its end.
        inert = text.replace("<", "\\u003c")
        return Markup(f'<script type="application/json" id="{name}">{inert}</script>')
    packed = base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()
    return Markup(f'<script type="application/gzip" id="{name}">{packed}</script>')


def _harmless(body: Any) -> Any:
    if isinstance(body, str):
        return shown(body)
    if isinstance(body, dict):
        return {key: _harmless(value) for key, value in body.items()}
    if isinstance(body, list | tuple):
        # Most lists are of numbers, and long.
        if body and type(body[0]) in (int, float):
            return body
        return list(map(_harmless, body))
    return body


def script() -> str:
    """A browser runs no modules of a page that was opened from a folder, so they become functions.
    The modules use only the two forms of import and export that are named above."""
    parts: dict[str, str] = {}
    _add("main", parts)
    return f'{_HEAD}"use strict";\n(() => {{\n{"".join(parts.values())}}})();\n'


def _add(name: str, parts: dict[str, str]) -> None:
    """Adds a module after those that it imports."""
    if name in parts:
        return
    text = (_HERE / "script" / f"{name}.mjs").read_text(encoding="utf-8")
    for _, imported in _IMPORT.findall(text):
        _add(imported, parts)
    exported = ", ".join(word for _, word in _EXPORT.findall(text))
    body = _EXPORT.sub(r"\1", _IMPORT.sub(r"const { \1 } = \2_module;", text))
    returned = ""
    if exported:
        returned = f"return {{ {exported} }};\n"
    parts[name] = f"// {name}.mjs\nconst {name}_module = (() => {{\n{body}{returned}}})();\n"
