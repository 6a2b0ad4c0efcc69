"""Requests as the kernel's block layer gave them to a drive: the text of a trace of tracefs.

One line an event, block_rq_issue (or block_bio_queue, of devices that take no requests), with the
monotonic clock:

    fio-4711    [001] ...1.  1234.567890: block_rq_issue: 254,0 R 4096 () 2048 + 8 none,0,0 [fio]
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from eeio.traces.order import Request

EVENTS = ("block_rq_issue", "block_bio_queue")
_SECTOR_BYTES = 512  # the unit of these events, for any sector size of the drive
_EVENT = re.compile(
    r"\[(?P<cpu>\d{1,5})\] +\S+ +(?P<time>\d{1,12}\.\d{1,9}): (?:block_rq_issue|block_bio_queue): "
    r"\d{1,8},\d{1,8} (?P<what>[A-Z]{1,9}) (?:\d{1,12} \([^)]{0,200}\) )?"
    r"(?P<sector>\d{1,19}) \+ (?P<sectors>\d{1,10}) "
)
# F before the operation requests a flush; after it come F (FUA), A (readahead), S and M (metadata).
_DATA = re.compile(r"F?(?P<operation>[RW])[FAS]*")


class Issued(NamedTuple):
    """A request of data: when (CLOCK_MONOTONIC, seconds), whether it reads, and where."""

    at_s: float
    reads: bool
    request: Request


def parse(lines: Iterable[str], dropped: Mapping[int, int]) -> tuple[list[Issued], float | None]:
    """The data requests by time, without metadata of the file system and its journal; and when the
    first processor had no more room for its events (`dropped`: how many, by processor). After that
    the others' events are incomplete. None if there were no drops."""
    requests: list[Issued] = []
    last_s: dict[int, float] = {}
    for line in lines:
        event = _EVENT.search(line)
        if event is None:
            continue
        at_s, cpu = float(event["time"]), int(event["cpu"])
        last_s[cpu] = at_s
        what = _DATA.fullmatch(event["what"])
        if what is not None and int(event["sectors"]) > 0:
            place = int(event["sector"]) * _SECTOR_BYTES
            length = int(event["sectors"]) * _SECTOR_BYTES
            requests.append(Issued(at_s, what["operation"] == "R", Request(place, length)))
    full = [last_s.get(cpu, 0.0) for cpu, count in dropped.items() if count]
    until_s = min(full, default=None)
    if until_s is not None:
        requests = [issued for issued in requests if issued.at_s <= until_s]
    requests.sort(key=lambda issued: issued.at_s)
    return requests, until_s
