"""`eeio validate`: a bundle that was changed, is unreadable, or may not be published."""

import hashlib
import json
import shutil
import tarfile
from pathlib import Path

import pytest
from tests.eeio_results.made import energy, phase, run, stored
from tests.plugin import DATA, InProcess

from eeio.cli import main
from eeio.exchange import bundle as bundles
from eeio.exchange import validation
from eeio.record.store import load


def made(folder: Path, repetitions: int) -> Path:
    """A bundle of one campaign with measured energy."""
    runs = [run(place, (phase(1e6, (energy(5.0),)),)) for place in range(repetitions)]
    campaign = load(stored(folder / "results/good", runs))
    bundle = folder / "bundle"
    bundles.write(bundle, bundles.data_files(campaign, False), {"README.md": b"about\n"})
    return bundle


def problems(capsys: pytest.CaptureFixture[str], bundle: Path) -> list[dict[str, str]]:
    status = main(["validate", str(bundle), "--format", "json"])
    body = json.loads(capsys.readouterr().out)
    assert (status == 0) == body["valid"] == (body["problems"] == [])
    found: list[dict[str, str]] = body["problems"]
    return found


def test_a_complete_bundle_and_its_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], in_process: InProcess
) -> None:
    bundle = made(tmp_path, 6)
    assert problems(capsys, bundle) == []
    bundles.archive(bundle, tmp_path / "bundle.tar.gz")
    assert problems(capsys, tmp_path / "bundle.tar.gz") == []
    assert "fit for publication" in in_process("validate", str(bundle)).out


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("README.md", "the file was changed"),
        ("data/good/runs.jsonl", "the file was changed"),
        ("gone", "the file is missing"),
        ("new", "the file is not in SHA256SUMS"),
        ("../up", "not a SHA-256 and a path in the bundle"),
    ],
)
def test_a_changed_bundle(
    tmp_path: Path, name: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = made(tmp_path, 6)
    if name == "gone":
        (bundle / "README.md").unlink()
    elif name == "../up":
        (tmp_path / "up").write_text("x")
        with (bundle / "SHA256SUMS").open("a") as sums:
            sums.write(f"{hashlib.sha256(b'x').hexdigest()}  ../up\n")
    else:
        with (bundle / name).open("a") as file:
            file.write("\n")
    assert [one["what"] for one in problems(capsys, bundle) if one["kind"] == "checksum"] == [what]


def test_tables_that_the_script_of_a_bundle_made_again_are_no_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = made(tmp_path, 6)
    (bundle / "again/tables").mkdir(parents=True)
    (bundle / "again/tables/report.csv").write_text("")
    assert problems(capsys, bundle) == []


def test_records_of_a_newer_version_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = made(tmp_path, 6)
    path = bundle / "data/good/campaign.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": 99}))
    kinds = {one["kind"]: one["what"] for one in problems(capsys, bundle)}
    assert set(kinds) == {"checksum", "record"} and "99" in kinds["record"]


def test_rules_of_publication(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = problems(capsys, made(tmp_path, 5))
    assert one["kind"] == "rule" and "5 valid repetitions, fewer than 6" in one["what"]
    quick = tmp_path / "quick"
    campaign = load(DATA / "campaigns/quick-before")
    bundles.write(quick, bundles.data_files(campaign, False), {})
    whats = [one["what"] for one in problems(capsys, quick)]
    assert "preset quick is no measurement" in whats
    assert "the power is fictitious (meter demo)" in whats


def test_an_archive_of_too_many_files(
    tmp_path: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "MOST_MEMBERS", 10)
    many = tmp_path / "many.tar.gz"
    with tarfile.open(many, "w:gz") as archive:
        for number in range(11):
            archive.addfile(tarfile.TarInfo(f"bundle/{number}"))
    assert "more than 10 files" in in_process("validate", str(many), code=2).err


def test_what_is_no_bundle(tmp_path: Path, in_process: InProcess) -> None:
    (tmp_path / "text").write_text("no archive\n")
    escaping = tmp_path / "escaping.tar.gz"
    with tarfile.open(escaping, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("../outside"))
    for path in (tmp_path / "text", tmp_path / "nowhere", tmp_path, escaping):
        error = in_process("validate", str(path), code=2).err
        assert ("outside" if path == escaping else str(path)) in error
        assert len(error.splitlines()) == 1 and not (tmp_path.parent / "outside").exists()
    shutil.rmtree(tmp_path, ignore_errors=True)
