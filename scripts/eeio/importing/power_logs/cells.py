"""Cells of tables, and values of JSON."""

import csv
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from eeio_parsers.found import number


def watts_of(text: str) -> float:
    """NaN for a cell that is no number, or -1, which analyzers write for none."""
    value = number(text.strip().removesuffix("W").strip())
    return math.nan if value is None else value


def table(text: str, delimiter: str = ",") -> Iterator[dict[str, str]]:
    reader = csv.DictReader(text.splitlines(), delimiter=delimiter, skipinitialspace=True)
    for row in reader:
        yield {str(k).strip(): str(v or "").strip() for k, v in row.items()}


def json_values(text: str) -> Iterator[Any]:
    """JSON values one after the other, or the parts of one list."""
    decoder, place = json.JSONDecoder(), 0
    while found := re.compile(r"[\s,\[\]]*(?=\{)").match(text, place):
        body, place = decoder.raw_decode(text, found.end())
        yield body
