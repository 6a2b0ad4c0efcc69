"""`eeio drive states --list`: which states and settings of a drive save power, and where they
stand."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from eeio.errors import EeioError
from eeio.machine import nvme_power, power_saving
from eeio.machine.filesystem import BlockDevice
from eeio.machine.nvme_power import NvmeController, PowerState
from eeio.machine.power_saving import Setting, settings
from eeio.report.document import Document
from eeio.report.table_and_plot import Table
from eeio.units.number_text import number

SCHEMA_VERSION = 1


def power_saving_of(node: Path, device: BlockDevice) -> Document:
    """Changes no setting; queries the drive without reading data."""
    states: list[PowerState] = []
    try:
        controller = nvme_power.controller_of(device.disk_sysfs)
        if controller is None:
            found = [_ata(node)]
        else:
            states = controller.states()
            found = _nvme(controller)
    except EeioError as error:
        found = [Setting("power state", None, None, str(error))]
    found += settings(device.disk_sysfs)

    def body() -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "device": str(node),
            "power_states": [asdict(state) for state in states],
            "settings": [asdict(setting) for setting in found],
        }

    tables = ([_states(node, states)] if states else []) + [_settings(node, found)]
    return Document(
        f"Power saving of {node}",
        tuple(tables),
        body,
        lambda: [{"device": str(node), **asdict(setting)} for setting in found],
    )


def _nvme(controller: NvmeController) -> list[Setting]:
    name = str(controller.node)
    autonomous = controller.is_autonomous()
    state = {True: "on", False: "off", None: None}[autonomous]
    return [
        Setting("power state", f"ps{controller.state()}", name),
        Setting(
            "autonomous transitions (APST)",
            state,
            name,
            "the drive has none" if state is None else None,
        ),
    ]


def _ata(node: Path) -> Setting:
    try:
        return Setting("power state", power_saving.state_of(node), str(node))
    except EeioError as error:
        return Setting("power state", None, str(node), str(error))


def _states(node: Path, states: list[PowerState]) -> Table:
    return Table(
        f"Power states of {node}, as the drive describes them",
        ("State", "Most (W)", "Operational", "Enter (ms)", "Leave (ms)"),
        tuple(
            (
                f"ps{state.number}",
                "-" if state.most_w is None else number(state.most_w),
                "yes" if state.is_operational else "no",
                *(number(1e3 * s) if s else "-" for s in (state.enter_s, state.leave_s)),
            )
            for state in states
        ),
        frozenset((1, 3, 4)),
    )


def _settings(node: Path, found: list[Setting]) -> Table:
    return Table(
        f"Power saving features of {node}",
        ("Mechanism", "Now", "Where"),
        tuple((s.name, s.value or "-", s.reason or s.path or "") for s in found),
    )
