"""docs/machines.md: the tables of all machines as one page."""

from collections.abc import Sequence
from pathlib import Path

from eeio.units.external_text import markdown
from eeio_power.reading import CONTENTS
from tests.machines import machines
from tests.machines.machines import KnownMachine

PATH = Path(__file__).parents[2] / "docs/machines.md"

_HEAD = """\
# Machines

The meters that eeio finds on machines of other people. Each machine is a folder in
`tests/data/machines`: a description (`machine.yaml`), and the expected results. The description is
a capture by a user, or made of published names and values. It lists its sources. A test searches
for meters on it, records for one second, and replays `doctor`, `meter list` and `plan`. This page
is generated from the same tables (`python -m tests.machines`). No value on it was measured by this
project.

*Sum of* lists the channels that are added to the domain's power, or the reason for a rejection.
*Without* lists the parts that the domain excludes, or "all but" those that it includes.
`{redfish}` is the address of the machine's controller. To add your machine, run
`eeio doctor --capture FILE.tar.gz` on it and attach the file to an issue. A developer adds it with
`python -m tests.machines --accept FILE.tar.gz --name NAME`.
"""


def text() -> str:
    """The page."""
    known = [machines.load(name) for name in machines.names()]
    return "\n".join(
        [
            _HEAD,
            _table(known),
            "## Drives\n",
            _disks(known),
        ]
    )


def _table(known: list[KnownMachine]) -> str:
    lines = [
        "| machine | meter | domain | sum of, or why rejected | without | W |",
        "|---|---|---|---|---|---|",
    ]
    for machine in known:
        name = f"**{machine.name}**<br>{_cell(machine.description.about)}"
        for row in _rows(machine):
            lines.append(f"| {name} | {' | '.join(row)} |")
            name = ""
    return "\n".join(lines) + "\n"


def _rows(machine: KnownMachine) -> list[list[str]]:
    expected = machine.expected
    rows = []
    for meter, wanted in expected.meters.items():
        if isinstance(wanted, str):
            rows.append([f"`{meter}`", "", f"rejected: {_cell(wanted)}", "", ""])
            continue
        for domain, channels in wanted.items():
            name = meter.partition(":")[0]
            watts = expected.watts.get(name, {}).get(domain)
            without = _parts(expected.without.get(name, {}).get(domain, ()))
            rows.append([f"`{meter}`", domain, _joined(channels), without, _watts(watts)])
    return rows or [["none", "", "no internal meter: connect an external one", "", ""]]


def _disks(known: list[KnownMachine]) -> str:
    lines = ["| machine | disk | state |", "|---|---|---|"]
    for machine in known:
        for disk, wanted in machine.expected.disks.items():
            texts = [_cell(str(value)) for key, value in wanted.items() if key != "read_bytes"]
            if texts:
                lines.append(f"| {machine.name} | `{disk}` | {'; '.join(texts)} |")
    return "\n".join(lines) + "\n"


def _parts(without: Sequence[str]) -> str:
    """Most parts as those that remain."""
    if len(without) <= len(CONTENTS) / 2:
        return ", ".join(without)
    return f"all but {', '.join(part for part in CONTENTS if part not in without)}"


def _joined(channels: list[str]) -> str:
    shown = [f"`{channel}`" for channel in channels]
    return (
        " + ".join(shown) if len(shown) <= 4 else f"{shown[0]} + ... + {shown[-1]} ({len(shown)})"
    )


def _watts(watts: float | str | None) -> str:
    if isinstance(watts, str):
        return f"missing: {_cell(watts)}"
    return "" if watts is None else f"{watts:g}"


def _cell(message: str) -> str:
    return markdown(message)
