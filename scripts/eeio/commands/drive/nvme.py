"""`eeio drive states` of an NVMe drive: each of its power states, reading, idling, and waking
up."""

import time
from contextlib import ExitStack

from eeio.commands.drive.reading import Asked, StateReading, during, read_for, wake
from eeio.system.nvme_power import NvmeController, PowerState
from eeio.system.undo import UndoEntry, UndoJournal
from eeio_results.errors import EeioError


def sweep(controller: NvmeController, asked: Asked, journal: UndoJournal) -> list[StateReading]:
    """All states, the one with the most power first; a state that the drive refuses is told so.
    Autonomous transitions are off meanwhile. Its state and they are put back."""
    node, found = controller.node, []
    with ExitStack() as stack:
        before = controller.state()
        entry = UndoEntry("nvme", str(node), f"state {before}").of_drive(node)
        stack.enter_context(journal.held(entry))
        if controller.is_autonomous():
            entry = UndoEntry("nvme", str(node), "autonomous 1").of_drive(node)
            stack.enter_context(journal.held(entry))
            controller.set_autonomous(False)
        for state in controller.states():
            try:
                controller.set_state(state.number)
            except EeioError as error:
                found.append(StateReading(f"ps{state.number}", 0.0, (), str(error)))
                continue
            time.sleep(asked.settle_s)
            if state.is_operational:
                found.append(_reading(controller, asked, state))
                time.sleep(asked.settle_s)
                found.append(_idle(controller, asked, state))
            else:
                found += _sleeping(controller, asked, state)
    return found


def _reading(controller: NvmeController, asked: Asked, state: PowerState) -> StateReading:
    reading = during(
        f"ps{state.number} reading", lambda: read_for(asked.node, asked.seconds), asked.power
    )
    return _proved(reading, controller, state.number)


def _idle(controller: NvmeController, asked: Asked, state: PowerState) -> StateReading:
    idle = during(f"ps{state.number} idle", lambda: time.sleep(asked.seconds), asked.power)
    return _proved(idle, controller, state.number)


def _sleeping(controller: NvmeController, asked: Asked, state: PowerState) -> list[StateReading]:
    """Idling, and the first read after it: how long that takes is the latency of waking."""
    idle = _idle(controller, asked, state)
    waking = during(f"ps{state.number} waking", lambda: wake(asked.node), asked.power)
    if idle.invalid is not None:
        return [idle, waking.because(idle.invalid)]
    if controller.state() == state.number:
        return [idle, waking.because("the read did not wake it: a cache answered")]
    return [idle, waking]


def _proved(reading: StateReading, controller: NvmeController, wanted: int) -> StateReading:
    """The state must still be the same at the end."""
    at_end = controller.state()
    if at_end == wanted:
        return reading
    return reading.because(f"the drive was in ps{at_end} at the end of {reading.state}")
