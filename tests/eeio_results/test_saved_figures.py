"""Figures that a report saves for the next one: the same document, and only of the same records."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from eeio import paths
from eeio.analysis import saved_figures
from eeio.analysis.characterization import characterize
from eeio.cli import main
from eeio.errors import EeioError
from eeio.record import store

OutputOf = Callable[..., str]
ROOT = Path(__file__).parents[1] / "data/campaigns"
NAMES = sorted(path.parent.name for path in ROOT.glob("*/campaign.json"))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(saved_figures, "LEAST_BYTES", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def files() -> list[Path]:
    return sorted(paths.saved_figures_root().glob("*"))


@pytest.fixture
def output_of(capsys: pytest.CaptureFixture[str]) -> OutputOf:
    def run(*arguments: object) -> str:
        capsys.readouterr()
        assert main([str(argument) for argument in arguments]) in (0, 1)
        return capsys.readouterr().out

    return run


def not_read(patch: pytest.MonkeyPatch) -> None:
    """Reading a record is an error from now on."""

    def fail(*_: object) -> None:
        raise AssertionError("the records were read")

    patch.setattr(store, "_read_runs", fail)


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
@pytest.mark.parametrize("name", NAMES)
def test_the_second_report_is_the_first(output_of: OutputOf, name: str, form: str) -> None:
    arguments = ("report", ROOT / name, "--format", form)
    first = output_of(*arguments)
    assert len(files()) == 1
    assert output_of(*arguments) == first
    shutil.rmtree(paths.saved_figures_root())
    assert output_of(*arguments) == first


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown", "latex"])
@pytest.mark.parametrize("name", ["quick-before", "estimates", "invalid", "drive", "bench"])
def test_the_records_are_not_read_again(
    output_of: OutputOf, monkeypatch: pytest.MonkeyPatch, name: str, form: str
) -> None:
    arguments = ("report", ROOT / name, "--format", form)
    first = output_of(*arguments)
    not_read(monkeypatch)
    assert output_of(*arguments) == first
    assert output_of(*arguments, "--sort", "mb/s") != ""


def test_a_comparison_uses_what_reports_saved(
    output_of: OutputOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("compare", ROOT / "quick-before", ROOT / "quick-after", "--format", "json")
    alone = output_of(*arguments)
    reports = [output_of("report", ROOT / name) for name in ("quick-before", "quick-after")]
    not_read(monkeypatch)
    assert output_of(*arguments) == alone
    # And the reverse: rows were added to the figures that the comparison had saved_figures.
    assert [output_of("report", ROOT / name) for name in ("quick-before", "quick-after")] == reports


@pytest.mark.parametrize("arguments", [("--duty-cycle", "10%"), ("--most-uncertain", "0.1%")])
def test_other_rules_are_computed_from_the_records(
    output_of: OutputOf, arguments: tuple[str, str]
) -> None:
    plain = output_of("report", ROOT / "server", "--format", "json", *arguments)
    shutil.rmtree(paths.saved_figures_root())
    usual = output_of("report", ROOT / "server", "--format", "json")
    assert output_of("report", ROOT / "server", "--format", "json", *arguments) == plain != usual


def test_the_page_reads_the_records(output_of: OutputOf, tmp_path: Path) -> None:
    pages = [tmp_path / "1.html", tmp_path / "2.html"]
    for page in pages:
        output_of("report", ROOT / "quick-before", "-o", page)
    first, second = (page.read_text() for page in pages)
    assert len(files()) == 1 and first == second


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "quick-before", tmp_path / "quick-before"))


def test_other_records_have_other_figures(output_of: OutputOf, campaign: Path) -> None:
    arguments = ("report", campaign, "--format", "json")
    output_of(*arguments)
    lines = (campaign / "runs.jsonl").read_text().splitlines()
    bodies = [json.loads(line) for line in lines]
    for body in bodies:
        body["validity"] = ["made invalid"]
    (campaign / "runs.jsonl").write_text("".join(f"{json.dumps(body)}\n" for body in bodies))
    rows = json.loads(output_of(*arguments))["characterization"]
    assert not any(row["n"] for row in rows)
    assert len(files()) == 2
    (campaign / "idle.json").unlink()
    assert json.loads(output_of(*arguments))["campaigns"][0]["idle"]["readings"] == []


def test_another_eeio_computes_again(
    output_of: OutputOf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    output_of("report", ROOT / "quick-before")
    code = tmp_path / "code.py"
    code.write_text("")
    monkeypatch.setattr(saved_figures, "_code", lambda: [code])
    output_of("report", ROOT / "quick-before")
    assert len(files()) == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-50],
        lambda text: "",
        lambda text: "[]",
        lambda text: "[" * 200_000,
        lambda text: text.replace('"key": "', '"key": "0'),
        lambda text: text.replace('"energy_kind"', '"kind_of_energy"'),
        lambda text: text.replace('"n": 3', '"n": "3"'),
    ],
)
def test_damaged_figures_are_computed_again(
    output_of: OutputOf, damage: Callable[[str], str]
) -> None:
    arguments = ("report", ROOT / "quick-before", "--format", "json")
    first = output_of(*arguments)
    (file,) = files()
    complete = file.read_text()
    assert damage(complete) != complete
    file.write_text(damage(complete))
    assert output_of(*arguments) == first
    assert file.read_text() == complete


def test_an_incomplete_campaign_has_no_saved_figures_root(
    output_of: OutputOf, campaign: Path
) -> None:
    lines = (campaign / "runs.jsonl").read_text().splitlines(keepends=True)
    (campaign / "runs.jsonl").write_text("".join(lines[:-1]))
    output_of("report", campaign)
    assert files() == []


def test_a_cache_that_cannot_be_written_changes_nothing(
    output_of: OutputOf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = output_of("report", ROOT / "quick-before")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert output_of("report", ROOT / "quick-before") == first


def test_only_the_newest_figures_stay(output_of: OutputOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_figures, "MOST_FILES", 2)
    for name in NAMES[:4]:
        output_of("report", ROOT / name)
    assert len(files()) == 2


def test_records_that_change_while_a_command_runs_are_named(campaign: Path) -> None:
    loaded = saved_figures.load(campaign, paths.saved_figures_root())
    characterize(loaded)
    saved_figures.save(loaded, paths.saved_figures_root())
    found = saved_figures.load(campaign, paths.saved_figures_root())
    assert len(found.runs) == len(loaded.runs)
    lines = (campaign / "runs.jsonl").read_text().splitlines(keepends=True)
    (campaign / "runs.jsonl").write_text("".join(lines[:-1]))
    with pytest.raises(EeioError, match="has changed meanwhile"):
        list(found.runs)


@pytest.mark.parametrize("name", ["runs.jsonl", "idle.json", "machine.json", "campaign.json"])
def test_figures_of_files_that_changed_while_a_command_ran_are_not_saved(
    campaign: Path, name: str
) -> None:
    loaded = saved_figures.load(campaign, paths.saved_figures_root())
    characterize(loaded)
    with (campaign / name).open("a") as file:
        file.write("\n")
    saved_figures.save(loaded, paths.saved_figures_root())
    assert files() == []
