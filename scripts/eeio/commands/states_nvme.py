"""`eeio states` of an NVMe drive: each of its power states, reading, idling, and waking up."""

import time
from contextlib import ExitStack
from pathlib import Path

from eeio.commands.states_reading import StateReading, during, read_for
from eeio.system.direct import read
from eeio.system.nvme_power import NvmeController, PowerState
from eeio.system.undo import UndoEntry, UndoJournal
from eeio_power.monitor import PowerMonitor
from eeio_results.errors import EeioError

_SECTOR_BYTES = 4096


def measure(
    controller: NvmeController,
    node: Path,
    seconds: float,
    settle_s: float,
    power: PowerMonitor,
    journal: UndoJournal,
) -> list[StateReading]:
    """All states, the one with the most power first; a state that the drive refuses is told so.
    Autonomous transitions are off meanwhile. Its state and they are put back."""
    found = []
    with ExitStack() as stack:
        node_name, before = str(controller.node), controller.state()
        stack.enter_context(journal.held(UndoEntry("nvme", node_name, f"state {before}")))
        if controller.is_autonomous():
            stack.enter_context(journal.held(UndoEntry("nvme", node_name, "autonomous 1")))
            controller.set_autonomous(False)
        for state in controller.states():
            try:
                controller.set_state(state.number)
            except EeioError as error:
                found.append(StateReading(f"ps{state.number}", 0.0, (), str(error)))
                continue
            time.sleep(settle_s)
            of_state = _operational if state.is_operational else _sleeping
            found += of_state(controller, state, node, seconds, settle_s, power)
    return found


def _operational(
    controller: NvmeController,
    state: PowerState,
    node: Path,
    seconds: float,
    settle_s: float,
    power: PowerMonitor,
) -> list[StateReading]:
    name = f"ps{state.number}"
    reading = during(f"{name} reading", lambda: read_for(node, seconds), power)
    reading = _proved(reading, controller, state.number)
    time.sleep(settle_s)
    idle = during(f"{name} idle", lambda: time.sleep(seconds), power)
    return [reading, _proved(idle, controller, state.number)]


def _sleeping(
    controller: NvmeController,
    state: PowerState,
    node: Path,
    seconds: float,
    _: float,
    power: PowerMonitor,
) -> list[StateReading]:
    """Idling, and the first read after it: how long that takes is the latency of waking."""
    name = f"ps{state.number}"
    idle = during(f"{name} idle", lambda: time.sleep(seconds), power)
    idle = _proved(idle, controller, state.number)
    waking = during(f"{name} waking", lambda: _wake(node), power)
    if idle.invalid is not None:
        return [idle, waking.because(idle.invalid)]
    if controller.state() == state.number:
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
