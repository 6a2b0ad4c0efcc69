"""The page's script: the modules in script/ in one text, each with a separate scope."""

import re
from pathlib import Path

_FOLDER = Path(__file__).parent / "script"
_HEAD = """\
// The script of eeio's report page.
// Copyright the eeio authors. SPDX-License-Identifier: GPL-3.0-or-later
"""
_IMPORT = re.compile(r'^import \{ ([\w, ]+) \} from "\./(\w+)\.mjs";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


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
    text = (_FOLDER / f"{name}.mjs").read_text(encoding="utf-8")
    for _, imported in _IMPORT.findall(text):
        _add(imported, parts)
    exported = ", ".join(word for _, word in _EXPORT.findall(text))
    body = _EXPORT.sub(r"\1", _IMPORT.sub(r"const { \1 } = \2_module;", text))
    returned = f"return {{ {exported} }};\n" if exported else ""
    parts[name] = f"// {name}.mjs\nconst {name}_module = (() => {{\n{body}{returned}}})();\n"
