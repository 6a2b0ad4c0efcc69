"""`eeio export bundle`: what a paper's artifact holds, and that all of it can be made again."""

import hashlib
import os
import re
import shlex
import shutil
import sys
import tarfile
from dataclasses import fields, replace
from pathlib import Path

import pytest
import yaml
from tests.eeio_results.made import MACHINE, design, energy, phase, run
from tests.eeio_results.made import stored as stored_in
from tests.executables import executable
from tests.once import once
from tests.plugin import PARSERS, Eeio, InProcess
from tests.processes import ran

from eeio.cli import main
from eeio.commands import parsers
from eeio.commands.export.pages import pages
from eeio.commands.run import COMMAND as RUN
from eeio.exchange import bundle
from eeio.measure.profiles import suite as suites
from eeio.record.design import Options
from eeio.record.store import load
from eeio.report.campaign import data_source

pytest.importorskip("matplotlib")
CAMPAIGNS = Path(__file__).parents[1] / "data/campaigns"
HOSTILE = "b$oard_{\\input{x}}"


@pytest.fixture
def stored(home: Path) -> Path:
    """A campaign after a paper, with samples and raw output."""
    folder = home / "data/eeio/results/c"
    plan = replace(design("c", 6, measurement=False), suite="eeio-pavan2018")
    runs = [run(n, (phase(1e6 * (n + 1), (energy(5.0 + n),)),)) for n in range(5)]
    runs.append(run(5, validity=("the tool failed",)))
    machine = replace(MACHINE, hostname=HOSTILE)
    stored_in(folder, runs, plan, machine=machine, idle=(energy(3.0),))
    (folder / "samples").mkdir(exist_ok=True)
    (folder / "samples/power-0001.csv.gz").write_bytes(b"samples")
    (folder / "raw/r").mkdir(parents=True)
    (folder / "raw/r/stdout.txt").write_text("said")
    return folder


@pytest.fixture
def bundled(
    stored: Path,
    home: Path,
    in_process: InProcess,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The bundle of `stored`, a copy of one that is made once."""
    monkeypatch.delenv("EEIO_SUITES")

    def make(empty: Path) -> None:
        folder = empty / "artifact"
        done = in_process("export", "bundle", "c", "-o", str(folder))
        assert done.out.split() == [str(folder), f"{folder}.tar.gz"]

    made = once(tmp_path_factory, "bundle", make)
    shutil.copytree(made, home, dirs_exist_ok=True)
    return home / "artifact"


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures take seconds to draw."""
    monkeypatch.setattr("eeio.commands.export.bundle.plot_files", lambda *_: {})


def test_it_contains_what_a_paper_needs(bundled: Path) -> None:
    names = {str(path.relative_to(bundled)) for path in bundled.rglob("*") if path.is_file()}
    assert {
        "README.md", "methods.md", "methods.tex", "papers.bib", "CITATION.cff", "remake.sh",
        "SHA256SUMS", "tables/report.csv", "tables/report.tex", "figures/bandwidth-read.pdf",
        "figures/bandwidth.svg", "data/c/runs.jsonl", "data/c/samples/power-0001.csv.gz",
    } <= names  # fmt: skip
    assert "data/c/raw/r/stdout.txt" not in names


@pytest.mark.usefixtures("without_figures")
def test_imported_results_are_said_to_be_imported(
    home: Path, tmp_path: Path, in_process: InProcess
) -> None:
    """Neither the order, the settings nor a command of eeio is known of them."""
    in_process("import", str(PARSERS / "sysbench/outputs/sysbench.txt"), "--name", "i")
    in_process("export", "bundle", "i", "-o", str(home / "artifact"))
    methods = (home / "artifact/methods.md").read_text()
    assert "i: results of sysbench, imported by eeio" in methods
    assert "The order of the runs is unknown. The files contain no power." in methods
    script = (home / "artifact/remake.sh").read_text()
    assert "i: imported, results of sysbench" in script and " in again/." in script
    in_process("report", "i", "--format", "html", "-o", str(tmp_path / "i.html"))
    page = (tmp_path / "i.html").read_text()
    assert "machine unknown · results of sysbench</p>" in page and "Imported results." in page
    for text in (methods, script, page):
        assert "one random order" not in text and "eeio run imported" not in text


def test_the_checksums_are_of_all_else(bundled: Path) -> None:
    lines = (bundled / "SHA256SUMS").read_text().splitlines()
    listed = dict(reversed(line.split("  ", 1)) for line in lines)
    files = {str(path.relative_to(bundled)) for path in bundled.rglob("*") if path.is_file()}
    assert set(listed) == files - {"SHA256SUMS"}
    for name, digest in listed.items():
        assert hashlib.sha256((bundled / name).read_bytes()).hexdigest() == digest


def test_the_tables_are_made_again_the_same(bundled: Path, home: Path) -> None:
    """As a reader of the paper does it: with the bundle alone, in a home of their own."""
    tools = home / "tools"
    executable(tools / "eeio", f'#!/bin/sh\nexec "{sys.executable}" -m eeio "$@"\n')
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "XDG_DATA_HOME": str(home / "empty"),
    }
    ran(["sh", str(bundled / "remake.sh")], env=environment)
    for sub in ("tables", "figures"):
        before = {p.relative_to(bundled): p for p in (bundled / sub).rglob("*") if p.is_file()}
        assert before
        for name, path in before.items():
            assert (bundled / "again" / name).read_bytes() == path.read_bytes(), name


def test_the_same_campaign_gives_the_same_archive(bundled: Path, home: Path) -> None:
    again = home / "again/artifact"
    again.parent.mkdir()
    assert main(["export", "bundle", "c", "-o", str(again)]) == 0
    first = bundled.with_name("artifact.tar.gz")
    assert first.read_bytes() == again.with_name("artifact.tar.gz").read_bytes()
    with tarfile.open(first) as tar:
        members = tar.getmembers()
    assert [m.name for m in members] == sorted(m.name for m in members)
    assert {(m.mtime, m.uid, m.uname) for m in members} == {(0, 0, "")}


def test_the_methods_tell_what_was_run(bundled: Path) -> None:
    output = (bundled / "methods.md").read_text()
    assert "QUICK: not a measurement" in output
    assert "5 of 6 windows" not in output and "1 x the tool failed" in output
    assert "6 of 6 runs were done, 1 of them invalid" in output
    assert "uncertainty of the energy" in output and "Idle baseline" in output
    tex = (bundled / "methods.tex").read_text()
    assert "\\input" not in tex and r"b\$oard\_\{" in tex


@pytest.mark.usefixtures("without_figures")
def test_without_power_the_methods_say_so(home: Path) -> None:
    runs = [run(0, (phase(1e6),))]
    stored_in(home / "data/eeio/results/p", runs, idle_reason="no meter was found")
    assert main(["export", "bundle", "p", "-o", str(home / "out")]) == 0
    assert "Power was not measured (no meter was found)." in (home / "out/methods.md").read_text()


@pytest.mark.usefixtures("without_figures")
def test_raw_output_on_wish(stored: Path, home: Path) -> None:
    assert main(["export", "bundle", "c", "--raw", "-o", str(home / "raw-too")]) == 0
    assert (home / "raw-too/data/c/raw/r/stdout.txt").read_text() == "said"


@pytest.mark.parametrize("there", ["artifact", "artifact.tar.gz"])
def test_nothing_is_written_over(stored: Path, home: Path, eeio: Eeio, there: str) -> None:
    (home / there).write_text("mine")
    done = eeio("export", "bundle", "c", "-o", str(home / "artifact"), code=2)
    assert "exists: choose" in done.stderr
    assert (home / there).read_text() == "mine"
    assert not {"artifact", "artifact.tar.gz"} - {there} & {p.name for p in home.iterdir()}


def test_two_campaigns_of_one_name_are_rejected(stored: Path, home: Path, eeio: Eeio) -> None:
    other = home / "other/c"
    other.parent.mkdir()
    stored_in(other, (), design("c", 1))
    done = eeio("export", "bundle", "c", str(other), "-o", str(home / "artifact"), code=2)
    assert "rename one" in done.stderr
    assert not (home / "artifact").exists()


@pytest.mark.root
def test_root_bundles_no_campaign_that_another_user_could_change(
    stored: Path, home: Path, in_process: InProcess
) -> None:
    """A folder of it could become a link while the files are copied."""
    os.chown(stored, 65534, 65534)
    assert "not bundled as root" in in_process("export", "bundle", "c", code=2).err


def test_the_command_that_measured() -> None:
    options = Options(
        preset="quick", device=None, seed=7, suite="eeio-suite", directory="/mnt/a disk",
        meters=("rapl",), settle_s=2.5, disk_cache="both", see_order=True,
    )  # fmt: skip
    assert data_source.measured_by(options) == (
        "eeio run eeio-suite --directory '/mnt/a disk' --disk-cache both --preset quick "
        "--settle 2.5 --seed 7 --meter rapl --see-order --rate 10"
    )


@pytest.mark.usefixtures("without_figures")
@pytest.mark.parametrize("link", ["samples", "samples/secret", "runs.jsonl"])
def test_a_link_is_not_followed(stored: Path, home: Path, link: str, in_process: InProcess) -> None:
    """A folder of keys landed in the archive that is made to be published."""
    private = home / "private"
    private.mkdir()
    (private / "key").write_text("secret")
    place = stored / link
    if place.is_dir():
        shutil.move(place, home / "moved")
    elif place.exists():
        place.rename(home / "moved")
    place.symlink_to((home / "moved") if link == "runs.jsonl" else private)
    done = in_process("export", "bundle", "c", "-o", str(home / "artifact"), code=2)
    assert f"{place}: a symbolic link" in done.err
    assert not (home / "artifact").exists()


@pytest.mark.parametrize("rate", [(), ("--rate", "20"), ("--rate", "1000")])
def test_the_command_has_every_option_of_a_campaign(rate: tuple[str, ...]) -> None:
    """Typed again, it asks for the same: an option that it forgot would be another campaign."""
    arguments = [
        "run", "eeio-suite", "--preset", "quick", "--directory", "/d", "--device", "/dev/x",
        "--erase", "/dev/x", "--lose", "gpt", "--drive-label", "a b", "--hash-serial",
        "--filesystem", "ext4,xfs", "--variant", "nojc", "--frequency", "lowest", "--smt", "on",
        "--turbo", "on,off", "--sysfs-root",
        "/s", "--disk-cache", "on", "--meter", "rapl", "--min-phase", "1.5", "--see-order",
        "--allow-estimates", "--work", "1g", "--adaptive", "--precision", "0.02",
        "--indifference", "0.1", "--floor", "0.005", "--pilot", "each", "--repetitions", "5",
        "--seed", "7", "--settle", "2.5", "--idle", "3", "--allow-memory-filesystem", "--sweep",
        "threads=1..4", "--sweep", "fio:request_size=4k", "--windows-of", "paper",
        "--max-written", "10G", "--precondition", "300", "--trace-journal", "--share-machine",
        "--drop-caches-by",
        "ssh nas 'sync'", "--power-state", "0,1", "--server-power", "ssh nas eeio meter node -",
        *rate,
    ]  # fmt: skip
    options = parsers.parsed(RUN, arguments[1:]).options()
    usual = Options(seed=0)
    same = [
        f.name
        for f in fields(Options)
        if f.name != "preset" and getattr(options, f.name) == getattr(usual, f.name)
    ]
    assert set(same) <= ({"rate_hz"} if not rate else set()), "an option that is not tried"
    again = shlex.split(data_source.measured_by(options))[1:]
    assert parsers.parsed(RUN, again[1:]).options() == options


def test_papers_of_the_suites_are_those_of_the_citation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside each suite lies what it is after; CITATION.cff names the same papers."""
    monkeypatch.delenv("EEIO_SUITES", raising=False)
    cited = yaml.safe_load((Path(__file__).parents[2] / "CITATION.cff").read_text())["references"]
    years = {str(paper["year"]) for paper in cited}
    found: dict[str, str] = {}
    for folder in suites.available().values():
        entries = bundle._papers_of(folder.name)
        assert entries, f"{folder} has no {bundle.PAPERS}"
        for entry in entries:
            assert entry.count("{") == entry.count("}")
            key = entry.partition("{")[2].partition(",")[0]
            assert found.setdefault(key, entry) == entry
            assert (re.search(r"year\s*= \{(\d+)\}", entry) or [""])[1] in years
    assert len(found) == len(cited)


@pytest.mark.usefixtures("without_figures")
def test_a_bundle_of_two_campaigns_has_their_pages(home: Path, in_process: InProcess) -> None:
    """remake.sh makes the same pages again, byte by byte. The figures have tests of their own."""
    folder = home / "artifact"
    in_process("export", "bundle", str(CAMPAIGNS / "server"), str(CAMPAIGNS / "board"),
               "-o", str(folder))  # fmt: skip
    index = (folder / "README.md").read_text()
    script = (folder / "remake.sh").read_text()
    for name in ("compare", "cost"):
        assert f"[{name}.html]({name}.html)" in index
        assert f"eeio {name} data/server data/board -o again/{name}.html\n" in script
        page = (folder / f"{name}.html").read_text()
        assert page.startswith("<!DOCTYPE html>") and "<svg" in page
        again = in_process(name, str(folder / "data/server"), str(folder / "data/board"),
                           "-o", str(home / f"{name}.html"))  # fmt: skip
        assert str(home) in again.out and (home / f"{name}.html").read_text() == page


def test_a_bundle_says_why_it_has_no_cost() -> None:
    """Its pages and its index; the 53 figures of these campaigns are drawn elsewhere."""
    campaigns = [load(CAMPAIGNS / name) for name in ("quick-before", "quick-after")]
    made = pages(campaigns)
    assert set(made.made) == {"compare"}
    index = bundle.readme(campaigns, (), tuple(made.made), made.missing)
    assert "[compare.html](compare.html)" in index and "(cost.html)" not in index
    assert "There is no cost.html: quick-before, quick-after: the power is fictitious" in index
