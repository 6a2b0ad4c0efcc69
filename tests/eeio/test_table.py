"""`eeio table`: a page of bundles; and signatures of bundles."""

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.eeio.test_validate import problems
from tests.eeio_results.made import MACHINE, energy, phase, run, stored
from tests.plugin import DATA, InProcess

from eeio.cli import main
from eeio.exchange import bundle as bundles
from eeio.record.run import EnergyReading
from eeio.record.store import load

HOSTILE = '"><script>alert(1)</script>\u202e'


def bundle(
    folder: Path,
    name: str,
    readings: Sequence[EnergyReading] = (energy(5.0),),
    *,
    drive: str = "SSD",
    repetitions: int = 6,
) -> Path:
    """A bundle of one experiment at 100 MB/s."""
    # No two campaigns have the same runs.
    runs = [
        replace(run(place, (phase(1e8, tuple(readings)),)), raw=f"raw/{name}")
        for place in range(repetitions)
    ]
    campaign = stored(folder / "results" / name, runs, machine=replace(MACHINE, drive_label=drive))
    made = folder / name
    bundles.write(made, bundles.data_files(load(campaign), False), {})
    return made


def of_tests(folder: Path, name: str) -> Path:
    made = folder / name
    bundles.write(made, bundles.data_files(load(DATA / "campaigns" / name), False), {})
    return made


class Page(HTMLParser):
    """The rows of the results by group: the title, whether it is ranked, and the cells' texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.groups: list[tuple[str, bool, list[list[str]]]] = []
        self.tags: set[str] = set()
        self.sources: list[str] = []
        self._cell: list[str] | None = None
        self._is_results = self._is_ranked = self._is_title = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.add(tag)
        self.sources += [value or "" for key, value in attrs if key in ("src", "href")]
        if tag == "table":
            self._is_results = found.get("id") == "results"
        elif tag == "tbody":
            self._is_ranked = "data-unranked" not in found
        elif tag == "tr" and self._is_results and self.groups:
            self.groups[-1][2].append([])
        elif tag in ("td", "th") and self._is_results:
            self._is_title = found.get("scope") == "rowgroup"
            self._cell = []
        elif tag == "small" and self._cell is not None:
            self._cell.append(" / ")

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("td", "th") or self._cell is None:
            return
        text = "".join(self._cell)
        self._cell = None
        if self._is_title:
            if self.groups and not self.groups[-1][2][-1]:
                self.groups[-1][2].pop()
            self.groups.append((text, self._is_ranked, []))
        elif self.groups:
            self.groups[-1][2][-1].append(text)


def page_of(folder: Path) -> Page:
    return Page((folder / "index.html").read_text(encoding="utf-8"))


def column(rows: list[list[str]], place: int) -> list[str]:
    return [row[place] for row in rows]


def test_publishable_rows_are_ranked_within_their_domain(tmp_path: Path) -> None:
    slow = bundle(tmp_path, "slow", (energy(20.0), energy(4.0, domain="device")), drive="Disk")
    fast = bundle(tmp_path, "fast", (energy(10.0), energy(8.0, domain="device")))
    few = bundle(tmp_path, "few", (energy(1.0),), repetitions=5)
    site = tmp_path / "site"
    assert main(["table", *map(str, (slow, few, fast)), "-o", str(site)]) == 0
    (system, device, others) = page_of(site).groups
    assert system[:2] == ("Power of system, measured: best MB/J first", True)
    name = "fio sequential read / 4 KiB, direct I/O"
    assert system[2] == [
        [name, "SSD", "6", "100", "10.0", "10.0", "100 / ±0.500 %", "filesystem",
          "system / meter", "board, Cortex-A7", "fast", "–"],
        [name, "Disk", "6", "100", "20.0", "5.00", "200 / ±0.250 %", "filesystem",
          "system / meter", "board, Cortex-A7", "slow", "–"],
    ]  # fmt: skip
    assert device[:2] == ("Power of device, measured: best MB/J first", True)
    assert column(device[2], 10) == ["slow", "fast"]
    # The best MB/J of all is in no rank: its bundle has too few repetitions.
    assert others[:2] == ("Measured, not ranked", False)
    assert column(others[2], 10) == ["few"] and column(others[2], 5) == ["100"]
    assert column(others[2], 11) == ["the bundle is not publishable"]
    text = (site / "index.html").read_text()
    assert "no: 5 valid repetitions, fewer than 6<" in text


def test_demo_and_estimated_power_are_marked_and_not_ranked(tmp_path: Path) -> None:
    made = [
        bundle(tmp_path, "good"),
        bundle(tmp_path, "guess", (energy(0.1, kind="modelled"),)),
        bundle(tmp_path, "none", (energy(None, reasons=("cable",)),)),
        of_tests(tmp_path, "quick-before"),
    ]
    assert main(["table", *map(str, made), "-o", str(tmp_path / "site")]) == 0
    groups = page_of(tmp_path / "site").groups
    assert [(title, ranked) for title, ranked, _ in groups] == [
        ("Power of system, measured: best MB/J first", True),
        ("DEMO: not measured, not ranked", False),
        ("ESTIMATE: not measured, not ranked", False),
        ("Without power", False),
    ]
    assert column(groups[0][2], 10) == ["good"]
    assert set(column(groups[1][2], 10)) == {"quick-before"}
    assert all("DEMO" in row[4] for row in groups[1][2])
    (estimate,) = groups[2][2]
    assert "ESTIMATE" in estimate[4] and estimate[10] == "guess"
    assert "cable" in groups[3][2][0][11]


def test_the_same_bundles_give_the_same_bytes(tmp_path: Path) -> None:
    one, two = bundle(tmp_path, "one"), bundle(tmp_path, "two")
    bundles.archive(two, tmp_path / "two.tar.gz")
    for site, given in (("a", (one, two)), ("b", (tmp_path / "two.tar.gz", one))):
        assert main(["table", *map(str, given), "-o", str(tmp_path / site)]) == 0
    assert (tmp_path / "a/index.html").read_bytes() == (tmp_path / "b/index.html").read_bytes()
    # Again into the same folder.
    assert main(["table", str(one), "-o", str(tmp_path / "a")]) == 0
    assert len(page_of(tmp_path / "a").groups[0][2]) == 1


def test_text_of_others_is_escaped_and_nothing_is_loaded(tmp_path: Path) -> None:
    made = bundle(tmp_path, "plain", drive=HOSTILE)
    assert main(["table", str(made), "-o", str(tmp_path / "site")]) == 0
    text = (tmp_path / "site/index.html").read_text()
    found = page_of(tmp_path / "site")
    assert "<script>alert" not in text and "\u202e" not in text
    assert all(source.startswith("#") for source in found.sources)
    assert not found.tags & {"link", "img", "iframe", "object"}
    assert "<script>alert(1)</script>" in found.groups[0][2][0][1]
    assert "default-src &#39;none&#39;" in text


def test_prices_of_drives(tmp_path: Path, in_process: InProcess) -> None:
    made = [bundle(tmp_path, "one", drive="A=B"), bundle(tmp_path, "two")]
    arguments = ["table", *map(str, made), "-o", str(tmp_path / "site")]
    assert main([*arguments, "--price", "A=B=99.5"]) == 0
    assert dict(zip(*(column(page_of(tmp_path / "site").groups[0][2], k) for k in (1, 7)),
                    strict=True)) == {"A=B": "99.5", "SSD": "–"}  # fmt: skip
    assert "no drive is called 'SDD'" in in_process(*arguments, "--price", "SDD=5", code=2).err
    for wrong in ("SSD", "=5", "SSD=much", "SSD=nan", "SSD=-1"):
        assert "is not DRIVE=N" in in_process(*arguments, "--price", wrong, code=2).err


def test_broken_bundles_are_named_and_the_others_remain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, changed = bundle(tmp_path, "good"), bundle(tmp_path, "changed")
    with (changed / "data/changed/runs.jsonl").open("a") as file:
        file.write("\n")
    campaign = load(tmp_path / "results/good")
    data = bundles.data_files(campaign, False)
    design_file = tmp_path / "campaign.json"
    design_file.write_text(
        json.dumps(json.loads(data["data/good/campaign.json"].read_text()) | {"schema_version": 99})
    )
    newer = tmp_path / "newer"
    bundles.write(newer, data | {"data/good/campaign.json": design_file}, {})
    (tmp_path / "text").write_text("no bundle\n")
    twice = tmp_path / "elsewhere/good"
    shutil.copytree(good, twice)
    renamed = tmp_path / "renamed"
    shutil.copytree(good, renamed)
    given = [good, changed, newer, tmp_path / "text", tmp_path / "nowhere", twice, renamed]
    status = main(["table", *map(str, given), "-o", str(tmp_path / "site")])
    output = capsys.readouterr()
    assert status == 3 and output.out == f"{tmp_path / 'site/index.html'}\n"
    lines = output.err.splitlines()
    assert len(lines) == 6 and all(line.startswith("eeio: rejected: ") for line in lines)
    for line, path, why in zip(
        lines, given[1:],
        ("was changed", "99", "neither a folder", "No such file", "rename one", "are in the other"),
        strict=True,
    ):  # fmt: skip
        assert str(path) in line and why in line
    assert column(page_of(tmp_path / "site").groups[0][2], 10) == ["good"]


def test_without_a_usable_bundle_no_page_is_written(tmp_path: Path, in_process: InProcess) -> None:
    done = in_process("table", str(tmp_path / "nowhere"), "-o", str(tmp_path / "site"), code=2)
    assert "no bundle is usable" in done.err
    assert not (tmp_path / "site").exists()


def test_a_page_of_others_is_not_overwritten(tmp_path: Path, in_process: InProcess) -> None:
    made = bundle(tmp_path, "one")
    page = tmp_path / "site/index.html"
    page.parent.mkdir()
    page.write_text("<h1>mine</h1>")
    done = in_process("table", str(made), "-o", str(page.parent), code=2)
    assert "is no page of `eeio table`" in done.err
    assert page.read_text() == "<h1>mine</h1>"


# --- signatures --------------------------------------------------------------------------------


@pytest.fixture
def key(tmp_path: Path) -> Path:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh-keygen (Debian: openssh-client)")
    return new_key(tmp_path / "key")


def new_key(path: Path) -> Path:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], check=True
    )
    return path


def allowed(path: Path, name: str, key: Path, options: str = "") -> Path:
    path.write_text(f"{name} {options}{key.with_suffix('.pub').read_text()}")
    return path


def signed(bundle: Path, key: Path, namespace: str = "eeio") -> None:
    subprocess.run(
        ["ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", namespace,
         str(bundle / "SHA256SUMS")], check=True, capture_output=True,
    )  # fmt: skip


def signer(capsys: pytest.CaptureFixture[str], bundle: Path, signers: Path | None = None) -> object:
    arguments = [] if signers is None else ["--signers", str(signers)]
    main(["validate", str(bundle), "--format", "json", *arguments])
    body = json.loads(capsys.readouterr().out)
    found = [one["what"] for one in body["problems"] if one["kind"] == "signature"]
    assert body["valid"] is (body["problems"] == [])
    return found[0] if found else body["signer"]


def test_export_signs_and_validate_names_the_signer(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["export", "bundle", str(DATA / "campaigns/bench"), "-o", str(tmp_path / "b")]
    assert main([*arguments, "--sign", str(key)]) == 0
    signature = (tmp_path / "b/SHA256SUMS.sig").read_bytes()
    (tmp_path / "b/SHA256SUMS.sig").unlink()
    signed(tmp_path / "b", key)
    assert (tmp_path / "b/SHA256SUMS.sig").read_bytes() == signature, "Ed25519 contains no time"
    people = allowed(tmp_path / "people", "ada@example.org", key)
    capsys.readouterr()
    for path in (tmp_path / "b", tmp_path / "b.tar.gz"):
        assert signer(capsys, path, people) == "ada@example.org"
        assert re.fullmatch(r"ED25519 key SHA256:\S{43}", str(signer(capsys, path)))


def test_a_key_that_is_missing_changes_nothing(
    tmp_path: Path, key: Path, in_process: InProcess
) -> None:
    arguments = ["export", "bundle", str(DATA / "campaigns/bench"), "-o", str(tmp_path / "b")]
    assert "no such file" in in_process(*arguments, "--sign", str(tmp_path / "nowhere"), code=2).err
    (tmp_path / "text").write_text("no key\n")
    assert main([*arguments, "--sign", str(tmp_path / "text")]) == 1
    assert not (tmp_path / "b").exists() and not (tmp_path / "b.tar.gz").exists()


def test_signatures_that_are_not_valid(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str], in_process: InProcess
) -> None:
    made = bundle(tmp_path, "made")
    people = allowed(tmp_path / "people", "ada@example.org", key)
    assert problems(capsys, made) == []
    assert signer(capsys, made) is None
    assert signer(capsys, made, people) == "the bundle is not signed"
    signed(made, key)
    assert signer(capsys, made, people) == "ada@example.org"
    done = in_process("validate", str(made), "--signers", str(people))
    assert "publication; signed by ada@example.org" in done.out
    other = allowed(tmp_path / "others", "eve@example.org", new_key(tmp_path / "other"))
    assert "is not in others" in str(signer(capsys, made, other))
    # For another purpose only, or expired.
    for options in ('namespaces="git" ', 'valid-before="20000101" '):
        people = allowed(tmp_path / "people", "ada@example.org", key, options)
        assert "not " in str(signer(capsys, made, people))
    people = allowed(tmp_path / "people", "ada@example.org", key)
    (made / "SHA256SUMS.sig").unlink()
    signed(made, key, "git")
    assert "the signature is not valid" in str(signer(capsys, made))
    assert "the signature is not valid" in str(signer(capsys, made, people))
    (made / "SHA256SUMS.sig").write_text("no signature\n")
    assert "the signature is not valid" in str(signer(capsys, made))
    (made / "SHA256SUMS.sig").unlink()
    (made / "SHA256SUMS.sig").symlink_to(tmp_path / "key")
    assert signer(capsys, made) == "the signature is not a file"
    (made / "SHA256SUMS.sig").unlink()
    signed(made, key)
    sums = made / "SHA256SUMS"
    sums.write_text(sums.read_text().replace("a", "b", 1))
    assert "the signature is not valid" in str(signer(capsys, made, people))
    assert main(["validate", str(made), "--signers", str(tmp_path / "nowhere")]) == 2


def test_the_page_names_the_signer_and_rejects_a_bad_signature(
    tmp_path: Path, key: Path, in_process: InProcess
) -> None:
    good, bad = bundle(tmp_path, "good"), bundle(tmp_path, "bad")
    signed(good, key)
    signed(bad, key, "git")
    done = in_process("table", str(good), str(bad), "-o", str(tmp_path / "site"), code=3)
    assert "SHA256SUMS.sig: the signature is not valid" in done.err
    assert "ED25519 key SHA256:" in (tmp_path / "site/index.html").read_text()
