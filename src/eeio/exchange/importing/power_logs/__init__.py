"""Power logs of other programs, recognized by their content, in one form (`Series`).

A log is rejected if its power domain or the meaning of its values is unknown. Times without a zone
are read as UTC, and the log says so (`clock`).
"""

from eeio.exchange.importing.power_logs.log import read
from eeio.exchange.importing.power_logs.series import (
    Form,
    PowerLog,
    Series,
    default_accuracy,
    described,
)

__all__ = ["Form", "PowerLog", "Series", "default_accuracy", "described", "read"]
