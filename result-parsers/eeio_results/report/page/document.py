"""A whole page: a template with the style, the script, and a policy that fetches nothing."""

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
    """The page as text. What came in by a name or a reason cannot break it."""
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
    # Nothing that turns the direction of writing or that UTF-8 cannot hold.
    # Line by line: long ones are data without anything to escape, which is seen at once.
    return "\n".join(shown_lines(line) for line in text.split("\n"))


def _policy(source: str) -> str:
    """Nothing is fetched, and no other script runs, whatever stands in a name. Figures of studies
    hold styles of their own."""
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
