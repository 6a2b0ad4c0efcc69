"""BT-IO: the output of eeio's kernel (`eeio.json`), or of the original NPB (EEIO_NPB).

The original's I/O time is that of its writes and its close, without the open and without reading
back, and the harmonic mean of the ranks; it does not flush. The time is printed in steps of 0.01 s,
which can be 0.00; the rate is of the same time and closer. It does not report when its dumps were,
so they have no energy.
"""

import re

from eeio.errors import ToolOutputError
from eeio.record.tools import native
from eeio.record.tools.capture import Capture, PhaseResult, ToolResult, naming
from eeio.record.tools.description import FSYNC, About

ABOUT = About(
    reports_all_bytes=True,
    words={**FSYNC, ("subtype", "full"): "full", ("subtype", "simple"): "simple"},
    named=(),
)

ORIGINAL_FILE = "npb.txt"
PROGRAM_FILE = "npb-program.txt"

_BYTES_A_POINT = 40
# Printed figures have two decimal places.
_ROUNDED = 0.006
_NUMBER = r"(\d{1,15}(?:\.\d{0,15})?)(?![\d.])"


def parse(capture: Capture) -> ToolResult:
    """Writing and reading back by our kernel, or writing by the original."""
    if not (capture.directory / ORIGINAL_FILE).exists():
        return native.parse(capture)
    try:
        result = parse_text(capture.text(ORIGINAL_FILE))
    except ToolOutputError as error:
        raise ToolOutputError(f"{capture.directory / ORIGINAL_FILE}: {error}") from error
    program = capture.text(PROGRAM_FILE).strip()
    return ToolResult(result.phases, result.context, (*result.notes, f"program: {program}"))


def parse_text(text: str) -> ToolResult:
    """The original's output. Bytes are those of its grid and dumps: its megabytes are rounded."""
    with naming("BT-IO"):
        return _written(text)


def _written(text: str) -> ToolResult:
    version = _found(r"NAS Parallel Benchmarks (\S+) -- BT Benchmark", text)[0]
    points = 1
    for side in _found(r"^ *Size: *(\d{1,6})x *(\d{1,6})x *(\d{1,6})\b", text):
        points *= int(side)
    dumps = len(re.findall(r"Writing data set", text))
    (shown_s,) = map(float, _found(r"I/O timing in seconds *: *" + _NUMBER, text))
    (megabytes,) = map(float, _found(r"Total data written \(MB\) *: *" + _NUMBER, text))
    (rate,) = map(float, _found(r"I/O data rate *\(MB/sec\) *: *" + _NUMBER, text))
    (verified,) = _found(r"^ *Verification *= *(\w+)", text)
    moved = points * _BYTES_A_POINT * dumps
    io_s = None
    if rate:
        io_s = moved / 1e6 / rate
    if abs(moved / 1e6 - megabytes) > _ROUNDED or abs((io_s or 0.0) - shown_s) > _ROUNDED:
        raise ToolOutputError(
            f"{dumps} dumps of {points} points are not its {megabytes} MB in {shown_s} s"
        )
    invalid = []
    if verified != "SUCCESSFUL":
        invalid = [f"its verification: {verified}"]
    if io_s is None:
        invalid.append("it reports no I/O rate")
    phase = PhaseResult(
        name="write",
        operation="write",
        spatiality="strided",
        request_size_bytes=None,
        bytes_moved=moved,
        bandwidth_bytes_per_s=rate * 1e6 if rate else None,
        start_s=None,
        end_s=None,
        window_source="none: the original does not report the times of its dumps",
        metrics={} if io_s is None else {"npb_io_time_s": io_s},
        invalid=tuple(invalid),
        durable_reason="the original does not flush, and does not report the times of its dumps",
    )
    note = f"the original NPB {version}, its I/O time without opening: harmonic mean of the ranks"
    return ToolResult(phases=(phase,), notes=(note,))


def _found(pattern: str, text: str) -> tuple[str, ...]:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise ToolOutputError(f"incomplete output of NPB's BT-IO: no {pattern!r}")
    return match.groups()
