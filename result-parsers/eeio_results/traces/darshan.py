"""Darshan's binary logs -> events, by PyDarshan (the extra `darshan`), where DXT was on.

Only the POSIX segments: those of MPI-IO are the same bytes once more.
"""

from pathlib import Path

from eeio_limits import LimitError, inputs
from eeio_results.errors import EeioError, ToolOutputError
from eeio_results.traces.events import Event, possible


def read(path: Path) -> list[Event]:
    """Events of a log. Raises EeioError without PyDarshan, ToolOutputError for a log that it
    cannot read, or that holds no DXT data."""
    try:
        import darshan
    except ImportError as error:
        raise EeioError(
            f"{path}: Darshan's logs need PyDarshan: `pip install darshan`, or give the output of "
            "darshan-dxt-parser"
        ) from error
    try:
        inputs.open_file(path).close()  # PyDarshan would wait at a pipe for good
        report = darshan.DarshanReport(str(path), read_all=True)
        partial = report.modules.get("DXT_POSIX", {}).get("partial_flag", False)
        records = report.records["DXT_POSIX"].to_df() if "DXT_POSIX" in report.records else []
    except (LimitError, OSError, RuntimeError, ValueError) as error:
        raise ToolOutputError(f"{path}: not a log that PyDarshan reads: {error}") from error
    if partial:
        raise ToolOutputError(
            f"{path}: incomplete: Darshan had no memory for all segments; run the program again "
            "with more (DARSHAN_MODMEM)"
        )
    events = []
    for record in records:
        file = str(report.name_records.get(record["id"], record["id"]))
        for operation in ("write", "read"):
            segments = record[f"{operation}_segments"]
            for row in segments.itertuples(index=False):
                if int(row.length) == 0:
                    continue  # the end of a file
                took_s = float(row.end_time) - float(row.start_time)
                events.append(
                    possible(
                        Event(
                            float(row.start_time),
                            took_s,
                            str(record["rank"]),
                            operation,
                            file,
                            int(row.offset),
                            int(row.length),
                        )
                    )
                )
    if not events:
        raise ToolOutputError(
            f"{path}: no DXT data in it; run the program with DXT_ENABLE_IO_TRACE=1"
        )
    return events
