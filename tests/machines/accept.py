"""A capture by a user becomes a machine of tests/data/machines, with what eeio answers today as the
expected answer. A developer checks that before it is committed."""

import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from eeio.errors import EeioError, RejectedError
from eeio.machine import power_saving
from eeio.machine.as_data import capture
from eeio.machine.as_data import description as descriptions
from eeio.machine.as_data.description import Description, MeterReadings
from eeio.machine.as_data.replay import DOCTOR
from eeio.machine.filesystem import block_device
from eeio_power.errors import PowerError
from eeio_power.meters import Meter, close_meters, discover, open_meters
from tests.machines import machines
from tests.machines.living import Living, adds_up, alive, record, wanted_meters
from tests.machines.machines import COUNTER_TEXT, Expected, KnownMachine

SOURCE = "all values: `eeio doctor --capture` by a user on this machine"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_OWN = ("modelled", "demo")
_PROBE_W = 1000.0


class _Plain(yaml.SafeDumper):
    """Repeats equal lists, for review."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def accept(file: Path, name: str) -> Path:
    """Writes the folder of the machine and returns it. Raises RejectedError."""
    folder = machines.FOLDER / name
    if not _NAME.fullmatch(name) or folder.exists():
        raise RejectedError(f"--name {name}: taken, or not small letters, digits and -")
    taken = capture.load(file)
    kept = replace(
        taken,
        sources=(*taken.sources, SOURCE),
        # What eeio said there is no fact of the machine.
        commands=tuple(command for command in taken.commands if command.run != DOCTOR),
    )
    with tempfile.TemporaryDirectory(prefix="eeio-accept-") as scratch:
        descriptions.save(kept, Path(scratch) / "machine.yaml")
        descriptions.load(Path(scratch) / "machine.yaml")  # within the limits of such a file
        expected = _answers(KnownMachine(name, kept, _table()), Path(scratch))
    folder.mkdir()
    descriptions.save(kept, folder / "machine.yaml")
    text = yaml.dump(expected, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=100)
    (folder / "expected.yaml").write_text(text, encoding="utf-8")
    return folder


def _table(
    meters: Mapping[str, Any] | None = None, moves: Mapping[str, float] | None = None
) -> Expected:
    return Expected(meters or {}, {}, moves or {}, {}, {}, (), {})


def _answers(machine: KnownMachine, scratch: Path) -> dict[str, Any]:
    """The table of expected.yaml."""
    with alive(machine, scratch / "once") as living:
        meters = _meters(living, scratch / "empty")
        disks = _disks(living)
        moves = _moves(living)
    moving = replace(machine, expected=_table(meters, moves))
    with alive(moving, scratch / "again") as living:
        opened = wanted_meters(living)
        try:
            readings = record(opened, living.life)
        finally:
            close_meters(opened)
    watts: dict[str, dict[str, float | str]] = {}
    without: dict[str, dict[str, list[str]]] = {}
    for reading in readings:
        power_w = reading.power_w
        reported = float(f"{power_w:.4g}") if power_w is not None else _pattern(reading.reasons[0])
        watts.setdefault(reading.meter, {})[reading.domain] = reported
        if reading.leaves_out:
            without.setdefault(reading.meter, {})[reading.domain] = list(reading.leaves_out)
    table = {"watts": watts, "moves": moves, "without": without, "disks": disks}
    return {"meters": meters, **{key: value for key, value in table.items() if value}}


def _meters(living: Living, empty: Path) -> dict[str, Any]:
    """Available meters, and those that are rejected for another reason than on an empty machine."""
    usual = {finding.spec: finding.reason for finding in discover(empty)}
    found: dict[str, Any] = {}
    for finding in discover(living.root):
        if finding.available and finding.spec not in _OWN:
            found[finding.spec] = adds_up(living, finding.spec)
        elif finding.reason and not finding.available:
            reason = _pattern(finding.reason.partition(str(living.root))[0])
            if reason and not re.search(reason, usual.get(finding.spec) or ""):
                found[finding.spec] = reason
    return found


def _pattern(reason: str) -> str:
    """An expression that is found in the reason, and is easy to read."""
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", reason)


def _disks(living: Living) -> dict[str, dict[str, str]]:
    found = {}
    for path in sorted(living.root.glob("sys/block/*")):
        device = block_device(Path("/dev") / path.name, living.root)
        if device is not None:
            with suppress(EeioError):
                found[path.name] = {"state": str(power_saving.state_of(device.node))}
    return found


def _moves(living: Living) -> dict[str, float]:
    """File of a counter -> power, W, that the user's readings give: which channel a file belongs to
    shows when it counts on."""
    tree = living.machine.description.tree
    files = [
        n for n, text in tree.items() if "energy" in n and COUNTER_TEXT.fullmatch(text.strip())
    ]
    power_w = _channel_powers(living.machine.description)
    moves = {}
    for meter in _opened(living):
        for file in files:
            before = meter.read()
            living.life.move(file, _PROBE_W)
            changed = [
                channel.name
                for channel, a, b in zip(meter.channels, before, meter.read(), strict=True)
                if a != b and channel.quantity == "energy_j"
            ]
            living.life.move(file, 0.0)
            if len(changed) == 1 and changed[0] in power_w:
                moves[file] = float(f"{power_w[changed[0]]:.4g}")
        meter.close()
    return moves


def _opened(living: Living) -> list[Meter]:
    """Meters with a counter that can be read here."""
    found = []
    for finding in discover(living.root):
        if finding.available and finding.spec not in _OWN:
            with suppress(PowerError):
                found += open_meters([finding.spec], living.root)
    return [m for m in found if any(c.quantity == "energy_j" for c in m.channels)]


def _channel_powers(description: Description) -> dict[str, float]:
    """Mean increase per second of each channel that was read."""

    def rise(readings: MeterReadings, name: str) -> float | None:
        first, last = readings.channels[name][0], readings.channels[name][-1]
        lasted_s = readings.times_s[-1]
        if first is None or last is None or last < first or lasted_s == 0.0:
            return None
        return (last - first) / lasted_s

    return {
        name: power_w
        for readings in description.readings
        for name in readings.channels
        if (power_w := rise(readings, name)) is not None
    }
