"""`eeio states` of an NVMe drive: each of its power states, reading, idling, and waking up."""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from eeio.commands.states_reading import StateReading, during, read_for
from eeio.system.direct import read
from eeio.system.nvme_power import NvmeController, PowerState
from eeio.system.undo import UndoEntry, UndoJournal
from eeio_power.monitor import PowerMonitor
from eeio_results.errors import EeioError

_SECTOR_BYTES = 4096


@dataclass(frozen=True)
class Sweep:
    """What is measured, and how long: `seconds` in each state, after `settle_s`."""

    controller: NvmeController
    node: Path
    seconds: float
    settle_s: float
    power: PowerMonitor


def sweep(asked: Sweep, journal: UndoJournal) -> list[StateReading]:
    """All states, the one with the most power first; a state that the drive refuses is told so.
    Autonomous transitions are off meanwhile. Its state and they are put back."""
    controller = asked.controller
    name, found = str(controller.node), []
    with ExitStack() as stack:
        before = controller.state()
        stack.enter_context(journal.held(UndoEntry("nvme", name, f"state {before}")))
        if controller.is_autonomous():
            stack.enter_context(journal.held(UndoEntry("nvme", name, "autonomous 1")))
            controller.set_autonomous(False)
        for state in controller.states():
            try:
                controller.set_state(state.number)
            except EeioError as error:
                found.append(StateReading(f"ps{state.number}", 0.0, (), str(error)))
                continue
            time.sleep(asked.settle_s)
            if state.is_operational:
                found.append(_reading(asked, state))
                time.sleep(asked.settle_s)
                found.append(_idle(asked, state))
            else:
                found += _sleeping(asked, state)
    return found


def _reading(asked: Sweep, state: PowerState) -> StateReading:
    reading = during(
        f"ps{state.number} reading", lambda: read_for(asked.node, asked.seconds), asked.power
    )
    return _proved(reading, asked.controller, state.number)


def _idle(asked: Sweep, state: PowerState) -> StateReading:
    idle = during(f"ps{state.number} idle", lambda: time.sleep(asked.seconds), asked.power)
    return _proved(idle, asked.controller, state.number)


def _sleeping(asked: Sweep, state: PowerState) -> list[StateReading]:
    """Idling, and the first read after it: how long that takes is the latency of waking."""
    idle = _idle(asked, state)
    waking = during(f"ps{state.number} waking", lambda: _wake(asked.node), asked.power)
    if idle.invalid is not None:
        return [idle, waking.because(idle.invalid)]
    if asked.controller.state() == state.number:
        return [idle, waking.because("the read did not wake it: a cache answered")]
    return [idle, waking]


def _wake(node: Path) -> None:
    read(node, _SECTOR_BYTES)


def _proved(reading: StateReading, controller: NvmeController, wanted: int) -> StateReading:
    """The state must still be the same at the end."""
    at_end = controller.state()
    if at_end == wanted:
        return reading
    return reading.because(f"the drive was in ps{at_end} at the end of {reading.state}")
