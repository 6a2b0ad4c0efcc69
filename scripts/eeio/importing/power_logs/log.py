"""A log by the name of its file."""

import csv
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from eeio.importing.power_logs import tools
from eeio.importing.power_logs.eeio_samples import read_samples
from eeio.importing.power_logs.series import PowerLog, ReadLog, Series, check
from eeio_limits import LimitError, inputs
from eeio_power.delay import stated
from eeio_power.errors import PowerError
from eeio_power.meters import number_option

_WITH_OPTIONS = re.compile(r"(.+?)((?:,(?:lag_s|averages_s)=[^,]{1,20}){1,2})", re.DOTALL)


def _split(named: Path) -> tuple[Path, dict[str, str]]:
    """The file, and the options behind its name."""
    match = _WITH_OPTIONS.fullmatch(str(named))
    if match is None or named.exists():
        return named, {}
    pairs = (text.partition("=") for text in match[2].strip(",").split(","))
    return Path(match[1]), {key: value for key, _, value in pairs}


def _with_delay(series: Series, options: Mapping[str, str]) -> Series:
    """Raises PowerError for an option that is no time."""
    lag_s = number_option(series.meter, options, "lag_s")
    averages_s = number_option(series.meter, options, "averages_s")
    if series.recorded is None:
        return replace(series, delay=stated(series.delay, lag_s, averages_s, series.period_s))
    info = series.recorded.info
    channels = tuple(
        replace(channel, delay=stated(channel.delay, lag_s, averages_s, info.native_period_s))
        for channel in info.channels
    )
    recorded = replace(series.recorded, info=replace(info, channels=channels))
    return replace(series, recorded=recorded)


def read(named: Path) -> PowerLog:
    """The series of a log, or the reason for its rejection. Its name may be followed by the delay
    of the readings: `power.log,lag_s=2,averages_s=10`."""
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
        if options:
            found.series = [_with_delay(series, options) for series in found.series]
        for series in found.series:
            check(series)
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
        log, tool=tool, clock=found.clock, same_machine=found.same_machine,
        unsure_s=found.unsure_s, series=tuple(found.series), notes=tuple(found.notes),
    )  # fmt: skip


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
        raise PowerError("perf's totals without times: run `perf stat -I 1000 -x,`")
    raise PowerError("no known power log (docs/how-to/import-results.md); a table needs a map")
