"""Data within the page: JSON that cannot break out of its element, packed if it is long."""

import base64
import gzip
import json
from typing import Any

from markupsafe import Markup

from eeio_limits.text import shown

_PACKED_ABOVE = 300_000
"""Characters; shorter data stay readable in the page's source."""


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
        return body if body and type(body[0]) in (int, float) else [_harmless(v) for v in body]
    return body
