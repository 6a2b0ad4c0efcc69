"""`eeio drive states --setting`: a drive that reads, idles and answers again, at each value of a
setting of the kernel that saves power."""

import time

from eeio.commands.drive.reading import Asked, StateReading, during, read_for, wake
from eeio.system.power_saving import Setting
from eeio.system.undo import UndoJournal
from eeio_results.errors import EeioError


def sweep(setting: Setting, asked: Asked, journal: UndoJournal) -> list[StateReading]:
    """Values that the kernel or the drive refuses are told so. The first read after idling is what
    the setting may make late: its duration is the latency."""
    found = []
    for value in setting.choices:
        name = f"{setting.key}={value}"
        try:
            with setting.held_at(value, journal):
                time.sleep(asked.settle_s)
                found += [
                    during(f"{name} reading", lambda: read_for(asked.node, asked.seconds),
                           asked.power),
                    during(f"{name} idle", lambda: time.sleep(asked.seconds), asked.power),
                    during(f"{name} first read", lambda: wake(asked.node), asked.power),
                ]  # fmt: skip
        except EeioError as error:
            found.append(StateReading(name, 0.0, (), str(error)))
    return found
