"""Cells of tables, and values of JSON."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from eeio.exchange.importing.power_logs.log_lines import unexplained
from eeio_parsers.found import number


def watts_of(text: str) -> float:
    """NaN for a cell that is no number, or -1, which analyzers write for none."""
    value = number(text.strip().removesuffix("W").strip())
    if value is None:
        return math.nan
    return value


def json_values(text: str) -> Iterator[Any]:
    """JSON values one after the other, or the parts of one list. Raises PowerError for text that is
    not JSON between them, and ValueError for a value that is damaged or cut off."""
    decoder, end = json.JSONDecoder(), 0
    while begin := re.compile(r"[\s,\[\]]*(?=\{)").match(text, end):
        body, end = decoder.raw_decode(text, begin.end())
        yield body
    if rest := text[end:].strip(" \t\r\n,[]"):
        place = text.index(rest, end)
        raise unexplained(text.count("\n", 0, place) + 1, rest.partition("\n")[0])
