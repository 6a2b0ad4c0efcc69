"""`eeio states`: what a drive takes when it reads, idles, stands by, and spins up; with --gap, in
which pauses standing by pays (states_gap.py)."""

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from eeio import terminal
from eeio.commands import states_gap
from eeio.errors import EXIT_DONE, EXIT_DONE_WITH_INVALID_RUNS, RefusedError
from eeio.power import check_meters, recorded
from eeio.system import power_state
from eeio.system.device import check_unused
from eeio.system.direct import read
from eeio.system.lock import TargetLock
from eeio_power.monitor import PowerMonitor, open_source
from eeio_results.errors import EeioError
from eeio_results.record import EnergyReading
from eeio_results.report.columns import number
from eeio_results.report.parts import Table
from eeio_results.report.tables import ESTIMATE
from eeio_results.report.text import render_table

SCHEMA_VERSION = 1

_SECTOR_BYTES = 4096


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "states",
        help="power of a drive that reads, idles, stands by, and what a spin-up costs",
        description="Measures an ATA drive's power states: active (reading sequentially), idle, "
        "standby, and the energy of the spin-up that the next read causes "
        "(docs/studies/). The drive is only read, and must not be mounted. With --gap it measures "
        "a pause and the work after it, with the drive standing by in the pause and without, and "
        "tells from which pause on that pays.",
    )
    parser.add_argument("--device", metavar="DEV", type=Path, required=True)
    parser.add_argument(
        "--meter", metavar="SPEC", action="append", default=[], help="repeatable (default: auto)"
    )
    parser.add_argument(
        "--seconds", metavar="S", type=float, default=30.0, help="in each state (default: 30)"
    )
    parser.add_argument(
        "--settle", metavar="S", type=float, default=10.0, help="before each state (default: 10)"
    )
    states_gap.add(parser)
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(action=states)


@dataclass(frozen=True)
class StateReading:
    """One state: how long it was measured, and what the meters saw. `invalid` says why not."""

    state: str
    duration_s: float
    energy: tuple[EnergyReading, ...]
    invalid: str | None


def states(arguments: argparse.Namespace) -> int:
    node: Path = arguments.device
    if states_gap.is_asked(arguments):
        return states_gap.gaps(arguments)
    device = check_unused(node)
    check_meters(tuple(arguments.meter))
    if not 0 < arguments.seconds < math.inf or not 0 <= arguments.settle < math.inf:
        raise RefusedError("--seconds is above 0, --settle not below")
    try:
        power_state.state_of(node)
    except EeioError as error:
        raise RefusedError(f"not measured: {error}") from error
    source = open_source(tuple(arguments.meter), False)
    if source.reason is not None:
        raise RefusedError(f"not measured: {source.reason}")
    with (
        TargetLock(device.disk_sysfs.name),
        tempfile.TemporaryDirectory(prefix="eeio-") as folder,
        PowerMonitor(source, Path(folder) / "power.csv.gz") as power,
    ):
        found = _measure(node, arguments.seconds, arguments.settle, power)
    if arguments.json:
        body = {
            "schema_version": SCHEMA_VERSION,
            "device": str(node),
            "states": [asdict(reading) for reading in found],
        }
        print(json.dumps(body, indent=1))
    else:
        print(_table(node, found))
    valid = all(r.invalid is None and all(e.valid for e in r.energy) for r in found)
    return EXIT_DONE if valid else EXIT_DONE_WITH_INVALID_RUNS


def _measure(
    node: Path, seconds: float, settle_s: float, power: PowerMonitor
) -> list[StateReading]:
    found = []
    read(node, _SECTOR_BYTES)  # awake
    time.sleep(settle_s)
    found.append(_during("active", lambda: _read_for(node, seconds), power))
    time.sleep(settle_s)
    found.append(_idle(node, seconds, power))
    try:
        power_state.put_into_standby(node)
    except EeioError as error:
        return [*found, *(StateReading(s, 0.0, (), str(error)) for s in ("standby", "spin-up"))]
    time.sleep(settle_s)
    standby = _during("standby", lambda: time.sleep(seconds), power)
    standby = _proved(standby, node, power_state.STANDBY)
    found.append(standby)
    # What the drive answers from its own cache spins nothing up.
    spin_up = _during("spin-up", lambda: read(node, _SECTOR_BYTES), power)
    spin_up = _proved(spin_up, node, power_state.IDLE)
    if standby.invalid is not None:
        spin_up = StateReading("spin-up", spin_up.duration_s, spin_up.energy, standby.invalid)
    return [*found, spin_up]


def _idle(node: Path, seconds: float, power: PowerMonitor) -> StateReading:
    """Drives with several idle states go from one to the next by themselves: the row bears the name
    of the one it was measured in, and one in which that changed is of none."""
    before = power_state.state_of(node)
    name = "idle" if before == "active/idle" else before
    reading = _during(name, lambda: time.sleep(seconds), power)
    after = power_state.state_of(node)
    if after == before and before in power_state.IDLE:
        return reading
    if after == before:
        return replace(reading, state="idle", invalid=f"the drive was {after} while it idled")
    reason = f"the drive went from {before} to {after} meanwhile; a longer --settle waits for that"
    return replace(reading, state="idle", invalid=reason)


def _during(state: str, act: Callable[[], None], power: PowerMonitor) -> StateReading:
    power.mark()
    start_s = time.monotonic()
    act()
    end_s = time.monotonic()
    power.mark()
    return StateReading(state, end_s - start_s, recorded(power.energy(start_s, end_s)), None)


def _proved(reading: StateReading, node: Path, wanted: tuple[str, ...]) -> StateReading:
    """The state must still be the same at the end: anything may have woken the drive."""
    at_end = power_state.state_of(node)
    if at_end in wanted:
        return reading
    return replace(reading, invalid=f"the drive was {at_end} at the end of {reading.state}")


def _read_for(node: Path, seconds: float) -> None:
    """Reads the drive from its beginning, over and over, past the page cache."""
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        read(node, None, end_s=end_s)


def _table(node: Path, found: list[StateReading]) -> str:
    rows = []
    for reading in found:
        for energy in reading.energy or (None,):
            mark = f"{ESTIMATE} " if energy is not None and energy.kind == "modelled" else ""
            rows.append(
                (
                    reading.state,
                    f"{reading.duration_s:.2f}",
                    mark + energy.domain if energy else "-",
                    number(energy.power_w) if energy and energy.power_w is not None else "-",
                    number(energy.energy_j) if energy and energy.energy_j is not None else "-",
                    reading.invalid or (energy.reasons[0] if energy and energy.reasons else ""),
                )
            )
    header = ("State", "Length (s)", "Domain", "Power (W)", "Energy (J)", "Note")
    table = Table(f"Power states of {node}", header, tuple(rows), frozenset((1, 3, 4)))
    return render_table(table, terminal.width())
