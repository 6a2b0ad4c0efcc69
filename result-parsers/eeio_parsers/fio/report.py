"""fio's formats: JSON, text, terse output and logs, of 2.x and 3.x."""

from collections.abc import Mapping
from functools import partial

from eeio_parsers.fio.json_report import TEXT, read_json
from eeio_parsers.fio.logs import LOG_KINDS, is_log, read_log
from eeio_parsers.fio.terse import TERSE, read_terse
from eeio_parsers.fio.text import STATUS, has_rates, read_rates, read_status, read_text
from eeio_parsers.format import Format
from eeio_parsers.rules import Rules


def _flushes(options: Mapping[str, str]) -> bool:
    return options.get("end_fsync") == "1" or options.get("sync") in ("1", "sync", "dsync")


RULES = {"fio": Rules(groups_at_once=True, flushes=_flushes, formats=("fio-json",))}
FORMATS = (
    Format("fio", "json", read_json, keys=("fio version", "jobs")),
    Format("fio", "json", read_json, keys=("fio version", "client_stats")),
    Format("fio", "text", read_text, begins=TEXT),
    Format("fio", "terse", read_terse, begins=TERSE),
    *(
        Format("fio", f"log of {kind}", partial(read_log, kind=kind), fits=partial(is_log, kind))
        for kind in LOG_KINDS
    ),
    Format("fio", "text", read_status, fits_at_last=lambda text: bool(STATUS.search(text))),
    Format("fio", "text", read_rates, fits_at_last=has_rates),
)
