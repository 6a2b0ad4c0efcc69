"""Studies are found by name; what the report, the runner and the commands ask them."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.eeio.importing import made as published
from tests.eeio_results.made import MACHINE, design, phase, run
from tests.plugin import InProcess

from eeio import studies
from eeio.cli import main
from eeio.commands.study import reference
from eeio.errors import EeioError, RejectedError
from eeio.measure.campaign.variants import study_settings
from eeio.measure.profiles.suite import StudyProtocol
from eeio.record.store import Campaign
from eeio.report.campaign.characterized import build, to_json
from eeio.report.campaign.contents import document
from eeio.report.document import render_terminal

OWN = """
from eeio.report.table_and_plot import Table
from eeio.studies import Chapter, Study

def chapter(campaigns):
    mine = [c for c in campaigns if c.name == "mine"]
    table = Table("Of my own", ("Runs",), tuple((str(len(c.runs)),) for c in mine))
    return Chapter((table,), (), {"own": [c.name for c in mine]}) if mine else None

STUDY = Study(chapter=chapter, figure_of_merit=lambda run: run.duration_s)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("EEIO_STUDIES", str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("eeio.studies."):
            del sys.modules[name]


def _campaign(name: str) -> Campaign:
    return Campaign(Path(name), design(name, 1), MACHINE, (), None, (run(0, (phase(1e6),)),))


def test_every_study_of_ours_offers_something() -> None:
    found = studies.every()
    assert found and all(study != studies.Study() for study in found.values())
    assert studies.offering("published") and studies.offering("references")
    with pytest.raises(EeioError, match="no study 'nobody'; there are "):
        studies.find("nobody")


def test_a_study_of_ones_own_is_in_the_report_of_its_campaigns(folder: Path) -> None:
    (folder / "mine.py").write_text(OWN)
    report = build([_campaign("mine"), _campaign("other")])
    assert render_terminal(document(report)).startswith("Of my own\n")
    assert to_json(report)["own"] == ["mine"]
    others = build([_campaign("other")])
    assert others.chapters == () and "own" not in to_json(others)


def test_the_study_that_a_suite_names_states_what_is_repeated_for(folder: Path) -> None:
    (folder / "mine.py").write_text(OWN)
    runs = (run(0, (phase(1e6),)),)
    named, every = studies.of_campaign("mine"), studies.of_campaign(None)
    assert studies.figure_of_merit(named, runs[0]) == runs[0].duration_s
    assert len(every) > len(named) == 1


def test_a_study_that_a_suite_names_wrongly_is_rejected_before_the_first_run(folder: Path) -> None:
    (folder / "silent.py").write_text("from eeio.studies import Study\nSTUDY = Study()\n")
    for name, message in (("nobody", "no study 'nobody'"), ("silent", "no figure to repeat for")):
        protocol = StudyProtocol(("ext4",), ("all",), {}, 64, True, 0.05, 3, name)
        with pytest.raises(RejectedError, match=message):
            study_settings(protocol, (), (), folder)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("STUDY = 1\n", "has no STUDY"),
        ("", "has no STUDY"),
        ("import nothing_like_it\n", "cannot be imported"),
        (OWN.replace("mine = [", "mine = 1 / 0, ["), "failed on these campaigns"),
        (OWN.replace('"own"', '"context"'), "'context' to a report's JSON"),
    ],
)
def test_a_broken_study_is_reported_with_its_name(folder: Path, source: str, message: str) -> None:
    (folder / "mine.py").write_text(source)
    with pytest.raises(EeioError, match=message):
        to_json(build([_campaign("mine")]))


def test_two_studies_do_not_write_one_member(folder: Path) -> None:
    for name in ("mine", "yours"):
        (folder / f"{name}.py").write_text(OWN)
    with pytest.raises(EeioError, match="'mine' and 'yours' both add 'own'"):
        build([_campaign("mine")])


def test_the_help_does_not_fail_for_a_broken_study(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    in_process: InProcess,
) -> None:
    (folder / "broken.py").write_text("1 / 0\n")
    for path in (str(folder), "/nowhere"):
        monkeypatch.setenv("EEIO_STUDIES", path)
        with pytest.raises(SystemExit) as end:
            main(["study", "replicate", "--help"])
        assert end.value.code == 0
    done = in_process("study", "replicate", "broken", "/nowhere", code=2)
    assert "EEIO_STUDIES: /nowhere: No such file or directory" in done.err
    monkeypatch.setenv("EEIO_STUDIES", str(folder))
    assert "broken.py" in in_process("study", "replicate", "broken", "/nowhere", code=2).err


PUBLISHED = """
from pathlib import Path
from eeio.studies import PublishedData, Study

def answer(sources, form):
    return f"{form}: {[source.campaign.name for source in sources]}\\n"

STUDY = Study(published=PublishedData(
    Path(__file__).with_name("map.yaml"), answer, lambda sources: {"one.svg": "<svg/>"}
))
"""


def test_published_data_of_ones_own_are_recomputed(folder: Path, in_process: InProcess) -> None:
    (folder / "mine.py").write_text(PUBLISHED)
    published.write(folder)
    arguments = ["study", "replicate", "mine", str(folder), "--format", "markdown"]
    assert in_process(*arguments, "--figures", str(folder / "drawn")).out == "markdown: ['board']\n"
    assert (folder / "drawn/one.svg").read_text() == "<svg/>"


REFERENCES = """
from eeio.studies import References, Study
STUDY = Study(references=References(lambda campaigns, form: "mine\\n", suite="my-suite"))
"""


def test_a_rule_of_ones_own_finds_references(
    folder: Path, monkeypatch: pytest.MonkeyPatch, in_process: InProcess
) -> None:
    (folder / "mine.py").write_text(REFERENCES)
    monkeypatch.setattr(reference, "load_campaigns", lambda names: [_campaign(n) for n in names])
    assert in_process("study", "reference", "c", "--study", "mine").out == "mine\n"
    assert main(["study", "reference", "c", "--study", "nobody"]) == 2
