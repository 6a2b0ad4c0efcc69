"""NPB BT-IO's text."""

import re
from collections.abc import Iterator

from eeio_parsers.format import Format
from eeio_parsers.found import (
    FoundPhase,
    FoundReport,
    figure,
    first_group,
    none_found,
)
from eeio_parsers.rules import Rules

TEXT = re.compile(r"NAS Parallel Benchmarks .*BT Benchmark|BTIO -- statistics", re.M)


def read_text(text: str) -> Iterator[FoundReport]:
    """BT-IO: MB of 10^6 bytes written in the time of its I/O."""
    rate = re.search(r"I/O data rate\s{1,99}\(MB/sec\)\s{0,99}:\s{0,99}([\d.]{1,30})", text)
    seconds = re.search(r"I/O timing in seconds\s{0,99}:\s{0,99}([\d.]{1,30})", text)
    moved = re.search(r"Total data written\s{1,99}\(MB\)\s{0,99}:\s{0,99}([\d.]{1,30})", text)
    if rate is None:
        raise none_found("NPB BT-IO", "no I/O data rate: not a BT-IO build, or cut off")
    processes = re.search(
        r"(?:Number of active processes|Total processes)\s{0,99}[:=]\s{0,99}(\d{1,20})", text
    )
    version = re.search(r"NAS Parallel Benchmarks (\S{1,300})", text)
    kind = re.search(r"^\s{0,99}Class\s{0,99}=\s{0,99}(\w)", text, re.M)
    yield FoundReport(
        (
            FoundPhase(
                name="BT-IO",
                operation="write",
                options={} if kind is None else {"class": kind[1]},
                access_pattern="strided",
                bandwidth_bytes_per_s=figure(rate[1]) * 1e6,
                bytes=round(figure(moved[1]) * 1e6) if moved else None,
                runtime_s=figure(seconds[1]) if seconds else None,
                jobs=int(processes[1]) if processes else None,
            ),
        ),
        first_group(version),
    )


RULES = {"npb-btio": Rules(level="library")}
FORMATS = (Format("npb-btio", "text", read_text, begins=TEXT),)
