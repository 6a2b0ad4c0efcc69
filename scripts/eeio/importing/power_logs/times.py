"""Times as programs print them."""

import re
from datetime import UTC, datetime

from eeio.importing.power_logs.series import Clock
from eeio_parsers.found import local_date
from eeio_power.errors import PowerError


def time_of(text: str) -> tuple[float, Clock]:
    """Unix s of a time, and whether it has a zone. Raises PowerError."""
    text = text.strip().rstrip(",;:|")
    if re.fullmatch(r"\d{1,19}(?:\.\d{1,12})?", text):
        seconds = float(text)  # s, ms, us, ns since 1970; or since a start
        while seconds > 1e11:
            seconds /= 1000
        return seconds, "utc" if seconds > 1e8 else "start"
    written = local_date(text) or re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", text.replace("/", "-"))
    if found := re.fullmatch(r"(\d\d)-(\d\d)-(\d{4})([ T].*)", written):
        written = f"{found[3]}-{found[1]}-{found[2]}{found[4]}"
    try:
        moment = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", written))
    except ValueError:
        raise PowerError(f"{text[:40]!r} is not a time") from None
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC).timestamp(), "local"
    return moment.timestamp(), "utc"


STAMP = re.compile(
    r"\[?(\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|[+-]\d\d:?\d\d)\b)?"
    r"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6} [A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d"
    r"(?: [AP]M)?(?: [A-Z]{3,4})? \d{4}|1\d{9}(?:\.\d{1,9})?|1\d{12}|1\d{18})\b"
)
