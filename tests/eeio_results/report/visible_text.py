"""What a reader sees of a page."""

import html
import re


def visible_text(page: str) -> str:
    """Its text, without its script, its data, its style and the policy in its head."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", "", bare))
