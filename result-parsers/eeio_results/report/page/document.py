"""A complete page: a template with the style, the script, and a policy that blocks requests."""

import base64
import hashlib
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from eeio_limits.text import shown_lines
from eeio_results.report.page import script

_HERE = Path(__file__).parent


def document(template: str, **parts: Any) -> str:
    """The page as text. External names and reasons cannot break it."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    source = script.script()
    text = environment.get_template(template).render(
        policy=_policy(source),
        style=Markup((_HERE / "page.css").read_text(encoding="utf-8")),
        script=Markup(source),
        **parts,
    )
    # No characters that change the text direction or that UTF-8 cannot encode. Line by line: long
    # lines are data without anything to escape, which is quick to check.
    return "\n".join(shown_lines(line) for line in text.split("\n"))


def _policy(source: str) -> str:
    """Blocks all requests and other scripts, whatever a name contains. Figures of studies contain
    styles."""
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
