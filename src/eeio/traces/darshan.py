"""Darshan's binary logs -> events, by PyDarshan (the extra `darshan`), where DXT was on.

Only the POSIX segments: those of MPI-IO are the same bytes once more.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eeio.errors import EeioError, LimitError, ToolOutputError
from eeio.files import inputs
from eeio.traces.events import Event, possible


def read(path: Path) -> list[Event]:
    """Events of a log. Raises EeioError without PyDarshan, ToolOutputError for a log that it cannot
    read, or that contains no DXT data."""
    with opened(path) as report:
        partial = report.modules.get("DXT_POSIX", {}).get("partial_flag", False)
        records = []
        if "DXT_POSIX" in report.records:
            records = report.records["DXT_POSIX"].to_df()
    if partial:
        raise ToolOutputError(
            f"{path}: incomplete: Darshan had no memory for all segments; run the program again "
            "with more (DARSHAN_MODMEM)"
        )
    try:
        names = report.name_records
        events = list[Event]()
        for record in records:
            events.extend(_events(record, names))
    except (LimitError, ValueError, OverflowError) as error:
        raise ToolOutputError(f"{path}: a segment that cannot be: {error}") from error
    if not events:
        raise ToolOutputError(
            f"{path}: no DXT data in it; run the program with DXT_ENABLE_IO_TRACE=1"
        )
    return events


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """PyDarshan's report of a log. Raises EeioError without PyDarshan, ToolOutputError for a log
    that it cannot read, also while the report is used."""
    try:
        import darshan
    except ImportError as error:
        raise EeioError(
            f"{path}: Darshan's logs need PyDarshan: `pip install darshan`, or give the output of "
            "darshan-parser (of darshan-dxt-parser for `eeio record trace`)"
        ) from error
    try:
        inputs.open_file(path).close()  # PyDarshan would wait at a pipe for good
        yield darshan.DarshanReport(str(path), read_all=True)
    except (LimitError, OSError, RuntimeError, ValueError) as error:
        raise ToolOutputError(f"{path}: not a log that PyDarshan reads: {error}") from error


def _events(record: Mapping[str, Any], names: Mapping[int, str]) -> Iterator[Event]:
    file = str(names.get(record["id"], record["id"]))
    for operation in ("write", "read"):
        for row in record[f"{operation}_segments"].itertuples(index=False):
            if int(row.length) == 0:
                continue  # the end of a file
            start_s = float(row.start_time)
            yield possible(
                Event(
                    start_s,
                    float(row.end_time) - start_s,
                    str(record["rank"]),
                    operation,
                    file,
                    int(row.offset),
                    int(row.length),
                )
            )
