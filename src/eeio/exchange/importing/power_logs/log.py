"""A log by the name of its file."""

import csv
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from eeio.errors import LimitError
from eeio.exchange.importing.power_logs import csv_table, tools
from eeio.exchange.importing.power_logs.eeio_samples import read_samples
from eeio.exchange.importing.power_logs.renewals import all_with_renewals
from eeio.exchange.importing.power_logs.series import PowerLog, ReadLog, Series, check, check_steps
from eeio.files import inputs
from eeio_power.delay import later, stated
from eeio_power.errors import PowerError
from eeio_power.meters import number_option, offset_option

_WITH_OPTIONS = re.compile(
    r"(.+?)((?:,(?:lag_s|averages_s|offset_s|domain|pairs)=[^,]{1,20}){1,5})", re.DOTALL
)


def _split(named: Path) -> tuple[Path, dict[str, str]]:
    """The file, and the options behind its name."""
    match = _WITH_OPTIONS.fullmatch(str(named))
    if match is None or named.exists():
        return named, {}
    pairs = (text.partition("=") for text in match[2].strip(",").split(","))
    return Path(match[1]), {key: value for key, _, value in pairs}


def _selected(found: ReadLog, options: Mapping[str, str]) -> list[Series]:
    """The series that `domain=` and `pairs=` select. Raises PowerError for a log that states its
    domain."""
    chosen = {key: options[key] for key in ("domain", "pairs") if key in options}
    if not chosen:
        return found.series
    if found.select is None:
        raise PowerError(f"{' and '.join(chosen)}: only for dumps of PowerSensor3")
    return found.select(chosen)


def _with_delays(every: Sequence[Series], options: Mapping[str, str]) -> list[Series]:
    """The series, with the delay that the user states: that of the late meters, where the log has
    punctual ones, too. Raises PowerError for an option that is no time."""
    if not {"lag_s", "averages_s"} & options.keys():
        return list(every)
    are_punctual = all(series.is_punctual for series in every)
    return [
        _with_delay(series, options) if are_punctual or not series.is_punctual else series
        for series in every
    ]


def _with_delay(series: Series, options: Mapping[str, str]) -> Series:
    """Raises PowerError for an option that is no time."""
    lag_s = number_option(series.meter, options, "lag_s")
    averages_s = number_option(series.meter, options, "averages_s")
    delay = stated(series.known_delay, lag_s, averages_s)
    if series.recorded is None:
        if lag_s is not None:
            delay = later(delay, series.scraped_s)  # The user states that of the meter.
        return replace(series, delay=delay)
    info = series.recorded.info
    channels = tuple(
        replace(channel, delay=stated(channel.delay or series.known_delay, lag_s, averages_s))
        for channel in info.channels
    )
    recorded = replace(series.recorded, info=replace(info, channels=channels))
    return replace(series, delay=delay, recorded=recorded)


def read(named: Path) -> PowerLog:
    """The series of a log, or the reason for its rejection. Its name may be followed by the delay
    of the readings and the offset of its clock: `power.log,lag_s=2,averages_s=10,offset_s=3600`."""
    if str(named).startswith(csv_table.PREFIX):
        return _of_table(str(named))
    path, options = _split(named)
    log = PowerLog(path)
    try:
        data = inputs.read_bytes(path, inputs.TABLE_BYTES)
        log = replace(log, sha256=hashlib.sha256(data).hexdigest())
        if data[:2] == b"\x1f\x8b":
            tool, found = "eeio", read_samples(path)
        else:
            text = inputs.decode(data, "replace")
            tool, reader = _reader_of(text)
            log = replace(log, tool=tool)
            found = reader(text)
            if text[-1:] not in "\n]}":
                found.notes.append("the last line has no line end, so it may be cut off: not used")
        log = replace(log, offset_s=offset_option(options))
        delayed = _with_delays(_selected(found, options), options)
        found.series = all_with_renewals(delayed, found.notes)
        for series in found.series:
            check(series)
            if found.clock == "local":
                check_steps(series)
        if not found.series:
            raise PowerError("no power in it")
    except OSError as error:
        return replace(log, rejected=error.strerror or str(error))
    except (PowerError, LimitError, csv.Error) as error:
        return replace(log, rejected=str(error))
    except RecursionError:
        return replace(log, rejected="objects and lists are nested too deeply")
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError) as error:
        return replace(log, rejected=f"damaged or cut off: {error!r:.120}")
    return replace(
        log,
        tool=tool,
        clock=found.clock,
        same_machine=found.same_machine,
        unsure_s=found.unsure_s,
        is_elapsed=found.is_elapsed,
        series=tuple(found.series),
        notes=tuple(found.notes),
    )


def _of_table(spec: str) -> PowerLog:
    """That of a table with its map, or the reason for its rejection."""
    log = PowerLog(Path(spec), tool="csv")
    try:
        path, offset_s = csv_table.file_and_offset(spec)
        data = inputs.read_bytes(path, inputs.TABLE_BYTES)
        log = replace(log, path=path, sha256=hashlib.sha256(data).hexdigest())
        log = replace(
            log, offset_s=offset_option({} if offset_s is None else {"offset_s": offset_s})
        )
        found = csv_table.read_table(spec)
        found.series = all_with_renewals(found.series, found.notes)
        for series in found.series:
            check(series)
    except OSError as error:
        return replace(log, rejected=error.strerror or str(error))
    except (PowerError, LimitError) as error:
        return replace(log, rejected=str(error))
    return replace(log, series=tuple(found.series), notes=tuple(found.notes))


_HEAD = 65536


_RESULTS_ONLY = re.compile(r"SPECpower_ssj2008|ssj_ops", re.I)


_PERF_TOTALS = re.compile(r"\bJoules\b.{0,9}power/energy-")


def _reader_of(text: str) -> tuple[str, Callable[[str], ReadLog]]:
    """Raises PowerError for a file that is no known power log."""
    head = text[:_HEAD]
    matches = [
        (match.start(), order)
        for order, form in enumerate(tools.every())
        if (match := form.begins.search(head))
    ]
    if matches:
        form = tools.every()[min(matches)[1]]
        return form.tool, form.read
    if _RESULTS_ONLY.search(head):
        raise PowerError("means of SPECpower's load levels without times: give PTDaemon's log")
    if _PERF_TOTALS.search(head):
        raise PowerError("perf's totals, or a table for readers: run `perf stat -I 1000 -x,`")
    raise PowerError(
        "no known power log (docs/how-to/import-results.md); a table needs a map of its columns: "
        "csv:FILE,map=time:NAME+power_w:NAME"
    )
