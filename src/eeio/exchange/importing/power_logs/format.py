"""The description of a log: how it is recognized, and what reads it."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from eeio.exchange.importing.power_logs.series import ReadLog


@dataclass(frozen=True)
class LogFormat:
    """`begins` matches the beginning of a log; the format that matches first is that of a file."""

    tool: str
    begins: re.Pattern[str]
    read: Callable[[str], ReadLog]
