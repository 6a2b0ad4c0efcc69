"""Darshan: the counters of each file and API, of a log or of the output of darshan-parser.

Times are those in calls, added over the calls of a process, and over all processes for a file that
they share. So only a file of one process has a rate; that of a shared file is not known.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from eeio.errors import EeioError, ToolOutputError
from eeio.traces import darshan
from eeio.units.quantities import DURATION
from eeio_parsers.format import Format
from eeio_parsers.found import FoundPhase, FoundReport, first_group, none_found, number, utc
from eeio_parsers.rules import Rules

MAGIC = (6567223).to_bytes(8, "little"), (6567223).to_bytes(8, "big")
"""Bytes 8 to 15 of a log."""
TEXT = re.compile(r"^# darshan log version: (\S{1,20})[\s\S]{0,20000}?^# nprocs: \d", re.M)
_APIS = {"POSIX": "POSIX", "MPI-IO": "MPIIO", "STDIO": "STDIO"}
"""Module -> how the names of its counters begin. Bytes of MPI-IO are in POSIX once more."""
_COLLECTIVE = {
    ("MPIIO", "read"): ("INDEP_READS", "COLL_READS", "SPLIT_READS", "NB_READS"),
    ("MPIIO", "write"): ("INDEP_WRITES", "COLL_WRITES", "SPLIT_WRITES", "NB_WRITES"),
}
"""The counters of calls, of an interface with several kinds of calls."""
_USED = re.compile(r"_(?:BYTES_|F_READ_|F_WRITE_|ACCESS[1-4]_|(?:[A-Z]+_)?(?:READS|WRITES)$)")
_LIMIT_S = 120.0
_WHY = 9
"""Exit code of the process if the last line of its stderr is the reason."""


@dataclass(frozen=True)
class _Record:
    """One file of one process, or of all of them (`rank` -1)."""

    module: str
    rank: int
    file: str
    counters: Mapping[str, float]


def read_log(path: Path) -> Iterator[FoundReport]:
    """A log, by the program darshan-parser if it is installed, else by PyDarshan. Raises EeioError
    with the remedy if neither is.

    It reads a copy in a process of its own: PyDarshan removes some damaged logs, and others end it
    with a signal.
    """
    program = shutil.which("darshan-parser")
    command = [program] if program else [sys.executable, "-P", "-m", __name__]
    with tempfile.TemporaryDirectory(prefix="eeio-") as folder:
        copy = shutil.copyfile(path, Path(folder) / "log.darshan")
        try:
            done = subprocess.run([*command, str(copy)], capture_output=True, timeout=_LIMIT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ToolOutputError(f"Darshan: {command[-1]}: {error!s:.200}") from error
    if done.returncode == _WHY:
        reason = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise ToolOutputError(reason.replace(f"{copy}: ", "")[:300])
    if done.returncode:
        name = "PyDarshan"
        if program:
            name = "darshan-parser"
        raise ToolOutputError(f"Darshan: damaged: {name} cannot read it (exit {done.returncode})")
    yield from read_text(done.stdout.decode("utf-8", "replace"))


def read_text(text: str) -> Iterator[FoundReport]:
    """The output of darshan-parser."""
    header = dict(re.findall(r"^# (nprocs|start_time): (\d{1,18})", text, re.M))
    # The log's format has a version of its own.
    version = re.search(r"^# metadata: lib_ver = (\S{1,40})", text, re.M)
    start_s, processes = number(header.get("start_time")), int(header.get("nprocs", 1))
    phases = []
    for record in _records(text):
        for operation in ("read", "write"):
            phase = _phase(record, operation, start_s, processes)
            if phase is not None:
                phases.append(phase)
    if not phases and re.search(r"^# DXT, file_id", text, re.M):
        raise none_found("Darshan", "output of darshan-dxt-parser: give that of darshan-parser")
    if not phases:
        raise none_found("Darshan", "no bytes were read or written by POSIX, MPI-IO or STDIO")
    if command := re.search(r"^# exe: (\S[^\n]{0,999})", text, re.M):
        options = {"command": command[1].strip()}
        phases = [replace(phase, options={**options, **phase.options}) for phase in phases]
    incomplete = re.findall(r"WARNING\*?: .{0,40}?(\S{1,20}) module contains incomplete", text)
    notes = []
    for module in dict.fromkeys(incomplete):
        notes.append(f"{module}: incomplete: Darshan had no memory for all files")
    yield FoundReport(tuple(phases), first_group(version), notes=tuple(notes))


def _records(text: str) -> Iterator[_Record]:
    """One for each interface, rank and file. Raises ToolOutputError for a damaged line."""
    records: dict[tuple[str, int, str, str], dict[str, float]] = {}
    for line in text.splitlines():
        cells = line.split("\t")
        if len(cells) < 6 or cells[0] not in _APIS or not _USED.search(cells[3]):
            continue
        module, rank, file_id, counter, text_value, file = cells[:6]
        # -1 stands for a value that is not known.
        value = 0.0 if text_value.startswith("-") else number(text_value)
        if value is None and "_ACCESS" in counter:
            continue  # Darshan 3.2 may print sizes of requests that cannot be.
        if value is None or not re.fullmatch(r"-1|\d{1,9}", rank):
            raise none_found("Darshan", f"a damaged line: {line[:80]!r}")
        records.setdefault((module, int(rank), file_id, file), {})[counter] = value
    for (module, rank_number, _, file), counters in records.items():
        yield _Record(module, rank_number, file, counters)


def _print(path: Path) -> None:
    """A log by PyDarshan, in the form of darshan-parser."""
    with darshan.opened(path) as report:
        job = report.metadata["job"]
        print(f"# darshan log version: {job['log_ver']}")
        if library := job.get("metadata", {}).get("lib_ver"):
            print("# metadata: lib_ver =", "".join(str(library).split()))
        print("# exe:", " ".join(str(report.metadata.get("exe", "")).split()))
        print(f"# start_time: {job['start_time_sec']}\n# nprocs: {job['nprocs']}")
        for module in (m for m in _APIS if m in report.records):
            if report.modules[module]["partial_flag"]:
                print(f"# *WARNING*: The {module} module contains incomplete data!")
            frames = report.records[module].to_df()
            for name in ("counters", "fcounters"):
                for row in frames[name].to_dict("records"):
                    file = str(report.name_records.get(row["id"], row["id"]))
                    file = file.replace("\t", " ").replace("\n", " ")
                    for counter, value in row.items():
                        print(module, row["rank"], row["id"], counter, value, file, sep="\t")


def _phase(
    record: _Record, operation: str, start_s: float | None, processes: int
) -> FoundPhase | None:
    prefix, counters = _APIS[record.module], record.counters

    def total(*names: str) -> float:
        return sum(max(0.0, counters.get(f"{prefix}_{name}", 0.0)) for name in names)

    read, written = total("BYTES_READ"), total("BYTES_WRITTEN")
    moved = written
    if operation == "read":
        moved = read
    if not moved:
        return None
    count = total(*_COLLECTIVE.get((prefix, operation), (f"{operation.upper()}S",)))
    spent_s = total(f"F_{operation.upper()}_TIME")
    begin_s = total(f"F_{operation.upper()}_START_TIMESTAMP")
    sizes = _sizes(total)
    request_bytes = None
    # Counts of sizes are of reads and writes together.
    if list(sizes.values()) == [count] and not (read > 0 and written > 0):
        request_bytes = next(iter(sizes))
    metrics = {f"{operation}_calls": count}
    if DURATION.contains(spent_s):
        metrics[f"{operation}_time_all_processes_s"] = spent_s
    options = {}
    if sizes:
        options["access sizes"] = ", ".join(f"{size} x {n:g}" for size, n in sizes.items())
    phase = FoundPhase(
        name=record.file[:200],
        operation=operation,
        group=f"{record.module} {record.rank}",
        request_bytes=request_bytes,
        jobs=processes,
        engine=record.module,
        bytes=round(moved),
        metrics=metrics,
        options=options,
    )
    if start_s:
        phase = replace(
            phase,
            started_utc=utc(start_s + begin_s),
            time_source="Darshan's start of the job and of the first call",
        )
    if record.rank < 0:
        return phase
    phase = replace(phase, jobs=1, options={**options, "rank": str(record.rank)})
    if not spent_s:
        return phase
    iops = None
    if count:
        iops = count / spent_s
    return replace(phase, bandwidth_bytes_per_s=moved / spent_s, iops=iops, runtime_s=spent_s)


def _sizes(total: Callable[[str], float]) -> dict[int, float]:
    """The most frequent sizes of requests, at most four, with their counts."""
    found = {}
    for place in (1, 2, 3, 4):
        found[round(total(f"ACCESS{place}_ACCESS"))] = total(f"ACCESS{place}_COUNT")
    sizes = {}
    for size, count in found.items():
        if size and count:
            sizes[size] = count
    return sizes


FORMATS = (Format("darshan", "text", read_text, begins=TEXT),)
RULES = {"darshan": Rules()}


if __name__ == "__main__":
    try:
        _print(Path(sys.argv[1]))
    except EeioError as error:
        print(error, file=sys.stderr)
        sys.exit(_WHY)
