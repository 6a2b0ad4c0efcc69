"""Makes external text harmless on output.

Names, reasons and tool output may contain anything. Inside they are stored unchanged; each output
makes them harmless for its reader: a terminal, a spreadsheet, a Markdown viewer, XML.
"""

import re
import unicodedata

# A spreadsheet takes a cell that begins so for a formula (OWASP, "CSV Injection").
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
# Characters that begin a tag or an entity, end the text of a link or an image, end a cell, or
# stress. Other brackets stay: intervals use them.
_MARKDOWN = re.compile(r"&(?=[#\w])|<|\](?=[(\[:])|[\\|*~]")
_ENTITIES = {"&": "&amp;", "<": "&lt;"}
# Characters with a meaning in LaTeX, or another glyph in the first fonts (OT1). [ would be an
# option after a line's end, so it is in a group.
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "–": "--",
    "µ": r"$\mu$",
    "μ": r"$\mu$",
    "−": "$-$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≈": r"$\approx$",
    "≠": r"$\neq$",
    "Δ": r"$\Delta$",
}
# Letters of Latin alphabets but those that T1 has not, and signs: pdflatex sets them as they are.
_HYPHENS = re.compile("-(?=-)")
_LATEX_LETTERS = frozenset(
    {chr(code) for code in range(0xA1, 0x180)} - set("ĦħĸĿŀŉŦŧſ\u00ad") | set("—‘’“”…€")
)
# XML 1.0 allows no other control characters, and no lone surrogates (production 2, Char).
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def shown(text: str, keep: str = "") -> str:
    """For one line of a terminal: control and format characters (escapes, line breaks, marks that
    turn the direction of writing) and lone surrogates as escapes that name them, all else as it is.

    `keep`: characters that stay, such as line breaks of a text that may have several lines.
    """
    rest = text
    for character in keep:
        rest = rest.replace(character, "")
    if rest.isprintable():
        return text
    return "".join(
        character if character in keep or not _hidden(character) else _escape(character)
        for character in text
    )


def shown_lines(text: str) -> str:
    """As `shown`, for text of several lines: line breaks and tabs stay."""
    return shown(text, keep="\n\t")


def csv_cell(text: str) -> str:
    """For a cell of a CSV file: as `shown`, and a text that a spreadsheet would run begins with an
    apostrophe. Numbers stay numbers."""
    harmless = shown(text)
    if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text):
        return "'" + harmless
    return harmless


def markdown(text: str) -> str:
    """For a line of Markdown, table cells included: no HTML, link, image or new cell."""
    return _MARKDOWN.sub(lambda match: _ENTITIES.get(match[0], "\\" + match[0]), shown(text))


def latex(text: str) -> str:
    """For a line of a LaTeX document: no external command, comment, group or formula. Letters of
    Latin alphabets stay, as every engine sets them with the T1 encoding; pdflatex stops at others,
    which become escapes."""
    # Two hyphens would be set as one dash.
    return "-{}".join("".join(map(_latex, part)) for part in _HYPHENS.split(shown(text)))


def _latex(character: str) -> str:
    known = _LATEX.get(character)
    if known is not None:
        return known
    if character < "\x7f" or character in _LATEX_LETTERS:
        return character
    return "".join(_LATEX.get(written, written) for written in _escape(character))


def xml(text: str) -> str:
    """Text that an XML document (SVG, composite.xml) may contain, before XML escaping. Characters
    that XML forbids, and those that `shown` escapes except line breaks and tabs, become escapes."""
    return _NO_XML.sub(lambda match: _escape(match[0]), shown_lines(text))


def _hidden(character: str) -> bool:
    # Cc control, Cf format (bidi marks, zero-width), Cs surrogates, Zl and Zp separators of lines.
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"
