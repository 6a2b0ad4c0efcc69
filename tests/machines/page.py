"""docs/machines.md: the tables of all machines as one page."""

from pathlib import Path

from eeio_limits.text import markdown
from tests.machines import machines
from tests.machines.machines import KnownMachine

PATH = Path(__file__).parents[2] / "docs/machines.md"

_HEAD = """\
# Machines

What eeio finds on machines that its makers do not have. Each is a folder of `tests/data/machines`:
a description made of names and values that people published (values carry over, files do not), and
a table of what must be found. A test lays the machine out, looks for every meter, records for a
second, replays `doctor`, `power list` and `plan`, and holds all of it against the table. This page
is made of the same tables (`python -m tests.machines`); nothing in it was measured.

*adds up* are the channels whose sum is the domain's power, *without* is what the domain is known to
leave out; what is refused is said with its reason and is never guessed. `{redfish}` stands for the
address of the machine's controller. A user's own machine comes in by `eeio doctor --capture
FILE.tar.gz`, and is looked at anywhere by `eeio doctor --replay FILE.tar.gz`.
"""


def text() -> str:
    """The whole page."""
    known = [machines.load(name) for name in machines.names()]
    return "\n".join(
        [
            _HEAD,
            _table(known),
            "## Drives\n",
            _disks(known),
            "## Where the values were seen\n",
            _sources(known),
        ]
    )


def _table(known: list[KnownMachine]) -> str:
    lines = [
        "| machine | meter | domain | adds up, or why it is refused | without | W |",
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
            rows.append([f"`{meter}`", "", f"refused: {_cell(wanted)}", "", ""])
            continue
        for domain, channels in wanted.items():
            name = meter.partition(":")[0]
            watts = expected.watts.get(name, {}).get(domain)
            without = ", ".join(expected.without.get(name, {}).get(domain, ()))
            rows.append([f"`{meter}`", domain, _joined(channels), without, _watts(watts)])
    return rows or [["none", "", "no power source of its own: an external meter", "", ""]]


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
