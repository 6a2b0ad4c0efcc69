"""docs/machines.md: the tables of all machines as one page."""

from pathlib import Path

from eeio_limits.text import markdown
from tests.machines import machines
from tests.machines.machines import KnownMachine

PATH = Path(__file__).parents[2] / "docs/machines.md"

_HEAD = """\
# Machines

The meters that eeio finds on machines of other people. Each machine is a folder in
`tests/data/machines`: a description made of published names and values, and a table of the expected
results. A test makes the machine from its description, searches for meters, records for one second,
and replays `doctor`, `meter list` and `plan`. All results must equal the table. This page is
generated from the same tables (`python -m tests.machines`). No value on it was measured.

*Sum of* lists the channels that are added to the domain's power, or the reason for a rejection.
*Without* lists the parts that the domain excludes. `{redfish}` is the address of the machine's
controller. To add your machine, run `eeio doctor --capture FILE.tar.gz` on it; `eeio doctor
--replay FILE.tar.gz` examines it anywhere.
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
            "## Sources of the values\n",
            _sources(known),
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
            without = ", ".join(expected.without.get(name, {}).get(domain, ()))
            rows.append([f"`{meter}`", domain, _joined(channels), without, _watts(watts)])
    return rows or [["none", "", "no internal meter: connect an external one", "", ""]]


def _disks(known: list[KnownMachine]) -> str:
    lines = ["| machine | disk | what it says |", "|---|---|---|"]
    for machine in known:
        for disk, wanted in machine.expected.disks.items():
            words = [
                f"{value} bytes read" if key == "read_bytes" else _cell(str(value))
                for key, value in wanted.items()
            ]
            lines.append(f"| {machine.name} | `{disk}` | {'; '.join(words)} |")
    return "\n".join(lines) + "\n"


def _joined(channels: list[str]) -> str:
    shown = [f"`{channel}`" for channel in channels]
    return (
        " + ".join(shown) if len(shown) <= 4 else f"{shown[0]} + ... + {shown[-1]} ({len(shown)})"
    )


def _watts(watts: float | str | None) -> str:
    if isinstance(watts, str):
        return f"missing: {_cell(watts)}"
    return "" if watts is None else f"{watts:g}"


def _sources(known: list[KnownMachine]) -> str:
    return (
        "\n".join(
            f"* **{machine.name}**: {_cell('; '.join(machine.description.sources))}."
            for machine in known
        )
        + "\n"
    )


def _cell(words: str) -> str:
    return markdown(words)
