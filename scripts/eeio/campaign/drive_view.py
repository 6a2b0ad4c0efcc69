"""What the drive saw of a run: its requests by the kernel's block layer, cut into phases.

An instance of tracefs of its own, with a buffer that keeps the first events and drops the rest, is
read when the run is over: nothing runs beside the tool (docs/decisions/0021-what-the-drive-saw.md).
"""

import contextlib
import itertools
import os
from dataclasses import dataclass, replace
from pathlib import Path

from eeio.journal import trace
from eeio.system.filesystem import BlockDevice
from eeio.system.owner import own_name
from eeio.system.undo import UndoEntry, UndoJournal
from eeio_results.errors import EeioError
from eeio_results.record import Phase
from eeio_results.traces.block import Issued, parse
from eeio_results.traces.order import LEAST_REQUESTS, describe

MOST_REQUESTS = 65536
"""As many as eeio-dataserver keeps of its own."""
_EVENT_BYTES = 80  # in the kernel's buffer, with the share of its pages' heads
_LEAST_KIB = 256  # of one processor: only few of many give requests to one drive
_SLACK_S = 0.001  # stamps of the tool and of the kernel


@dataclass(frozen=True)
class Seen:
    """The requests of a run; `until_s` is when there was no room for more. `reason`: why none."""

    requests: tuple[Issued, ...] = ()
    until_s: float | None = None
    reason: str | None = None

    def add_to(self, phase: Phase, began_s: float, processes: int) -> Phase:
        """The phase with the order that the drive saw, or why it is not known. What the program
        itself knows of its requests stays; `began_s` is the run's start on the monotonic clock,
        `processes` is how many were at work."""
        if phase.spatiality_seen is not None or phase.operation == "metadata":
            return phase
        if self.reason is not None:
            return replace(phase, spatiality_seen_reason=self.reason)
        if phase.start_s is None or phase.end_s is None:
            why = f"when it was is not known: {phase.window_source}"
            return replace(phase, spatiality_seen_reason=why)
        end_s = phase.until_durable.end_s if phase.until_durable else phase.end_s
        first_s, last_s = began_s + phase.start_s - _SLACK_S, began_s + end_s + _SLACK_S
        if self.until_s is not None and self.until_s <= first_s:
            why = f"the first {len(self.requests)} requests of the run, which are kept, were before"
            return replace(phase, spatiality_seen_reason=why)
        found = [
            issued.request
            for issued in self.requests
            if first_s <= issued.at_s <= last_s
            and (phase.operation == "mixed" or issued.reads == (phase.operation == "read"))
        ]
        words = describe(found, phase.request_size_bytes, processes)
        if words is None:
            why = f"{len(found)} requests reached the drive, fewer than {LEAST_REQUESTS} whole ones"
            return replace(phase, spatiality_seen_reason=why)
        return replace(phase, spatiality_seen=words, spatiality_seen_by="drive")


class DriveView:
    """Keeps the first requests to a device from `begin` to `end`. It is in the undo journal."""

    def __init__(self, device: BlockDevice, journal: UndoJournal) -> None:
        self._device = device
        self._journal = journal
        self._instance = Path()
        self._entry: UndoEntry | None = None

    def begin(self) -> None:
        """EeioError where it cannot be seen."""
        root = trace.find_tracefs(self._journal, "the drive's requests")
        self._instance = root / "instances" / f"{own_name()}-drive"
        self._entry = UndoEntry("directory", str(self._instance))
        self._journal.add(self._entry)
        try:
            self._instance.mkdir()
            self._set_up()
        except OSError as error:
            self._remove()
            raise EeioError(
                f"{error.filename or self._instance}: {error.strerror}: the drive's requests "
                "cannot be traced here (a kernel with CONFIG_BLK_DEV_IO_TRACE is needed)"
            ) from error

    def end(self) -> Seen:
        """What was seen since `begin`."""
        try:
            self._write("tracing_on", "0")
            dropped = {}
            for path in (self._instance / "per_cpu").glob("cpu*/stats"):
                fields = dict(
                    line.split(":", 1)
                    for line in path.read_text(encoding="ascii").splitlines()
                    if ":" in line
                )
                dropped[int(path.parent.name[3:])] = int(fields.get("dropped events", "0"))
            with (self._instance / "trace").open(encoding="ascii", errors="replace") as lines:
                found, until_s = parse(itertools.islice(lines, 2 * MOST_REQUESTS), dropped)
            return Seen(tuple(found[:MOST_REQUESTS]), until_s)
        except OSError as error:
            return Seen(reason=f"the drive's requests could not be read: {error.strerror}")
        finally:
            self._remove()

    def _set_up(self) -> None:
        processors = os.cpu_count() or 1
        room_kib = max(_LEAST_KIB, MOST_REQUESTS * _EVENT_BYTES // 1024 // processors)
        for name, value in (
            ("tracing_on", "0"),
            ("trace_clock", "mono"),
            ("options/overwrite", "0"),
            ("buffer_size_kb", str(room_kib)),
        ):
            self._write(name, value)
        # Device mapper, md and NVMe's multipath take what file systems submit, not requests.
        takes_requests = (self._device.disk_sysfs / "mq").is_dir()
        event = f"block/{'block_rq_issue' if takes_requests else 'block_bio_queue'}"
        self._write(f"events/{event}/filter", self._filter())
        self._write(f"events/{event}/enable", "1")
        self._write("tracing_on", "1")

    def _filter(self) -> str:
        """Of the whole disk, whose number requests bear, what lies on the partition."""
        device, disk = self._device, self._device.disk_sysfs
        numbers = {(disk / "dev").read_text(encoding="ascii").strip()}
        numbers.add(f"{device.major}:{device.minor}")
        words = " || ".join(
            f"dev == {int(major) << 20 | int(minor)}"
            for major, _, minor in (number.partition(":") for number in sorted(numbers))
        )
        start = 0
        with contextlib.suppress(OSError, ValueError):
            start = int((device.sysfs / "start").read_text(encoding="ascii"))
        end = start + device.size_bytes // 512
        return f"({words}) && sector >= {start} && sector < {end}"

    def _write(self, name: str, value: str) -> None:
        (self._instance / name).write_text(value, encoding="ascii")

    def _remove(self) -> None:
        if self._entry is not None:
            with contextlib.suppress(OSError):
                self._write("events/enable", "0")
            self._journal.undo(self._entry)
            self._entry = None
