"""Two machines and four drives on one port: what they are called changes no figure of a study."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.eeio.studies.test_commands import MIX
from tests.plugin import Eeio
from tests.published import PUBLISHED, needs_published

NAMES = [f"ccpe2017-{m}-{d}" for m in ("pc", "mpsoc") for d in ("hdd1", "hdd2", "ssd1", "ssd2")]


def _as_one_port(results: Path, identities: Mapping[str, Mapping[str, str]]) -> None:
    """As the campaigns had been if each drive had hung on the one port that the board has."""
    for name in NAMES:
        machine = results / name / "machine.json"
        body = json.loads(machine.read_text())
        body |= identities[body["device"]] | {"device": "sda"}
        machine.write_text(json.dumps(body))
        runs = results / name / "runs.jsonl"
        records = [json.loads(line) for line in runs.read_text().splitlines()]
        runs.write_text("".join(json.dumps({**r, "device": "sda"}) + "\n" for r in records))


def _reported(eeio: Eeio, home: Path) -> dict[str, str]:
    """What each command makes of the eight campaigns."""
    sides = ("--traditional", *NAMES[:4], "--low-power", *NAMES[4:])
    mix = ("--workload", str(home / "mix.yaml"), "--choice", "best-worst", "--format", "json")
    reported = {}
    for arguments in (("compare", *NAMES, "--format", "json"), ("cost", *sides, *mix)):
        reported[arguments[0]] = eeio(*arguments).stdout
    eeio("report", *NAMES, "--plots", str(home / "figures"))
    return reported


@pytest.mark.slow
@needs_published
def test_four_drives_called_sda_give_pavans_tables_and_guideline(home: Path, eeio: Eeio) -> None:
    eeio("import", "ccpe2017", str(PUBLISHED))
    (home / "mix.yaml").write_text(MIX)
    wanted = _reported(eeio, home)
    drives = ("HDD1", "HDD2", "SSD1", "SSD2")
    results = home / "data/eeio/results"
    _as_one_port(results, {name: {"drive_label": name} for name in drives})
    assert _reported(eeio, home) == wanted
    # Without labels the drives have their models' names, and the figures stay.
    _as_one_port(results, {"sda": {}})
    for name in NAMES:
        machine = results / name / "machine.json"
        body = json.loads(machine.read_text())
        body |= {"drive_id": f"wwn-0x5000c500{body.pop('drive_label').lower():0>8}"}
        machine.write_text(json.dumps(body))
    reported = _reported(eeio, home)
    for command in wanted:
        assert _figures(json.loads(reported[command])) == pytest.approx(
            _figures(json.loads(wanted[command]))
        )


def _figures(body: object) -> list[float]:
    """All numbers, in an order that does not depend on what drives are called."""
    if isinstance(body, dict):
        return sorted(x for value in body.values() for x in _figures(value))
    if isinstance(body, list):
        return sorted(x for value in body for x in _figures(value))
    return [float(body)] if isinstance(body, int | float) else []
