"""fio's terse output, versions 2 to 5."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from eeio_parsers.fio import verification
from eeio_parsers.fio.jobs import DIRECTIONS
from eeio_parsers.found import KIB, FoundPhase, FoundReport, none_found, number

TERSE = re.compile(
    # Version 2 is known by its percentiles.
    r"^(?:(?P<form>[345]);fio-(?P<version>[^;\n]{1,80})|2(?=(?:;[^;\n]{0,200}){15};[\d.]{1,30}%=))"
    r"(?P<cells>;[^\n]*)$",
    re.M,
)
_TERSE_REST = 34
"""Cells behind those of the directions: processor, depths, latencies."""


def read_terse(text: str) -> Iterator[FoundReport]:
    """`--output-format=terse`, versions 2 to 5: a line for each job, or for each group with
    group_reporting. Its percentiles may be of completion or of the total, which it does not say."""
    for line in TERSE.finditer(text):
        name, group, error, *cells = line["cells"][1:].split(";")
        width = 41
        if line["form"] == "5":
            width = 47
        directions = DIRECTIONS[: 2 if line["form"] == "3" else 3]
        blocks = [cells[width * k : width * (k + 1)] for k in range(len(directions))]
        is_known = all(
            re.fullmatch(r"\d{1,18}(?:;\d{1,18}){3}", ";".join(block[:4]))
            and all("%=" in cell for cell in block[12:32])
            for block in blocks
        )
        rest = cells[width * len(directions) :]
        # The shares of the processor are the first cells behind the directions.
        is_known = is_known and all(cell.endswith("%") for cell in rest[:2])
        if not is_known or len(rest) < _TERSE_REST:
            raise none_found("fio", f"terse output of {name[:80]} is cut off, or of another form")
        phases = tuple(
            replace(
                _terse(block),
                name=name,
                operation=direction,
                group=group,
                error=None if error == "0" else f"fio's error {error}",
            )
            for direction, block in zip(directions, blocks, strict=True)
            if block[0] != "0"
        )
        note = "fio's terse output has neither settings nor the number of jobs of a line"
        yield verification.without_settings(phases, line["version"], note)


def _terse(block: Sequence[str]) -> FoundPhase:
    """In KiB, KiB/s and ms, latencies in us."""
    moved, rate, requests, ms = map(int, block[:4])
    exact = 0.0
    if ms:
        exact = moved * 1000 / ms
    agrees = ms > 0 and abs(exact - rate) <= 1 + 1000 / ms
    means = {
        "submission": number(block[6]),
        "completion": number(block[10]),
        "total": number(block[34]),
    }
    return FoundPhase(
        name="",
        operation=None,
        bandwidth_bytes_per_s=exact * KIB if agrees else None,
        # Its decimals are cut, which counts in a small number.
        iops=requests if requests >= 100 else None,
        bytes=moved * KIB,
        runtime_s=ms / 1000,
        metrics={f"latency_{kind}_mean_s": mean * 1e-6 for kind, mean in means.items() if mean},
    )
