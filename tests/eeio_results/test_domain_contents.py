"""What a power domain holds, from the record to every format of the report."""

import csv as csv_module
import io
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from eeio.errors import LimitError
from eeio.files import typed
from eeio.record.run import EnergyReading, Run
from eeio.record.store import Campaign
from eeio.report import page, text
from eeio.report.campaign.characterized import Report, build, to_json
from eeio.report.campaign.contents import document
from eeio.report.campaign.tables import tables
from eeio.report.document import render_csv, render_markdown
from eeio.schemas.published import FOLDER as SCHEMAS
from tests.eeio_results.made import MACHINE, design, energy, phase, run
from tests.eeio_results.report.visible_text import visible_text

DOUBT = "system (plug) and package (rapl): the part draws more than the whole"


def reading(
    domain: str,
    includes: tuple[str, ...] = (),
    leaves_out: tuple[str, ...] = (),
    doubts: tuple[str, ...] = (),
) -> EnergyReading:
    return replace(
        energy(50.0, domain=domain, reasons=doubts),
        includes=includes, leaves_out=leaves_out, doubtful=bool(doubts),
    )  # fmt: skip


def report(*readings: EnergyReading) -> Report:
    runs = tuple(run(k, (phase(100e6, readings),)) for k in range(3))
    return build([Campaign(Path("c"), design("c", 3), MACHINE, (), None, runs)])


MODULE = reading("module", ("processor", "memory"), ("drives", "fans", "supply"))
WALL = reading("system", ("processor", "memory", "drives", "supply"))


def every_format(made: Report) -> dict[str, str]:
    return {
        "text": "\n".join(text.render_table(table) for table in tables(made)),
        "markdown": render_markdown(document(made)),
        "html": visible_text(page.render(made)),
        "csv": render_csv(document(made)),
        "json": json.dumps(to_json(made)),
    }


def test_the_rule_that_chose_the_sensors_is_in_every_format_with_text() -> None:
    rule = "the inputs of all supplies: psu/power1, psu@hwmon1/power1; not counted: psu/power2"
    formats = every_format(report(replace(WALL, rule=rule)))
    for name in ("text", "markdown", "html"):
        assert rule in " ".join(formats[name].split()), name
    assert f'"rule": "{rule}"' in formats["json"]


def test_the_drives_own_energy_has_columns_next_to_the_systems() -> None:
    drive = replace(energy(5.0, domain="device"), meter="quarch", includes=("drives",), power_w=5.0)
    made = replace(report(WALL, drive), columns=("drive w", "drive j/gb", "drive j/operation"))
    (table,) = [one for one in tables(made) if "Drive W" in one.header and one.rows][:1]
    rows = [dict(zip(table.header, cells, strict=True)) for cells in table.rows]
    assert {row["Drive W"] for row in rows} == {"5"}
    assert {row["Drive J/GB"] for row in rows} != {"-"}
    alone = replace(report(WALL), columns=made.columns)
    (table,) = [one for one in tables(alone) if "Drive W" in one.header and one.rows][:1]
    assert {dict(zip(table.header, cells, strict=True))["Drive W"] for cells in table.rows} == {"-"}


def test_mb_j_of_a_domain_without_drives_is_reported_next_to_the_figure() -> None:
    shown = every_format(report(MODULE))
    for form in ("text", "markdown", "html"):
        assert "2 (without drives)" in shown[form].replace("\\", ""), form
        assert "excludes drives, fans, supply" in shown[form].replace("\\", ""), form
    (line,) = (
        r for r in csv_module.DictReader(io.StringIO(shown["csv"])) if r["power_domain"] == "module"
    )
    assert line["leaves_drives_out"] == "yes"
    assert line["leaves_out"] == "drives+fans+supply"
    (row,) = (r for r in json.loads(shown["json"])["characterization"] if r["tool"])
    assert row["leaves_drives_out"] is True
    assert row["domains"][0]["includes"] == ["processor", "memory"]


def test_mb_j_of_the_wall_stands_alone() -> None:
    shown = every_format(report(WALL))
    assert all("without drives" not in shown[form] for form in shown)
    assert "includes processor, memory, drives, supply" in shown["text"]
    assert json.loads(shown["json"])["characterization"][0]["leaves_drives_out"] in (False, None)


@pytest.mark.parametrize("domain", ["package", "dram", "module"])
def test_a_record_of_an_older_version_states_it_by_its_domain(domain: str) -> None:
    old = energy(50.0, domain=domain)
    fields = json.loads(json.dumps(run(0, (phase(1e6, (old,)),)).to_json()))
    (stored,) = fields["phases"][0]["energy"]
    for key in ("includes", "leaves_out", "doubtful"):
        del stored[key]
    loaded = Run.from_json(fields)
    assert loaded.phases[0].energy == (old,)
    assert "(without drives)" in every_format(report(*loaded.phases[0].energy))["text"]


def test_the_record_keeps_what_a_domain_contains() -> None:
    complete = run(0, (phase(1e6, (MODULE, reading("system", doubts=(DOUBT,)))),))
    stored = json.loads(json.dumps(complete.to_json()))
    jsonschema.validate(stored, json.loads((SCHEMAS / "run.schema.json").read_text()))
    assert Run.from_json(stored) == complete


def test_the_report_keeps_to_its_schema() -> None:
    schema = json.loads((SCHEMAS / "report.schema.json").read_text())
    made = to_json(report(MODULE, reading("system", doubts=(DOUBT,))))
    jsonschema.validate(json.loads(json.dumps(made)), schema)


def test_a_doubtful_figure_is_marked_with_both_names() -> None:
    shown = every_format(report(reading("system", doubts=(DOUBT,))))
    for form in ("text", "markdown", "html"):
        assert "system (meter), doubtful" in shown[form].replace("\\", ""), form
        assert DOUBT in shown[form].replace("\\", ""), form
    assert DOUBT in shown["csv"]
    (row,) = (r for r in json.loads(shown["json"])["characterization"] if r["tool"])
    assert row["domains"][0]["doubts"] == [DOUBT]


def test_contents_that_are_no_texts_are_rejected() -> None:
    with pytest.raises(LimitError, match="includes"):
        typed.check(replace(WALL, includes=(1,)))  # type: ignore[arg-type]
    with pytest.raises(LimitError, match="domain: 'socket' is not one of"):
        typed.check(replace(WALL, domain="socket"))
