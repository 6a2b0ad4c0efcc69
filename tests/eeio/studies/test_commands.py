"""Import, compare, figures, guideline and replicate as a user types them."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from tests.eeio.importing import made
from tests.plugin import Eeio
from tests.published import PUBLISHED, needs_published


def _fast_and_slow(folder: Path) -> Path:
    """Two machines, reads and writes, eight repetitions each, made by rule."""
    body = json.loads(json.dumps(made.MAP))
    first = body["campaigns"][0]
    second = json.loads(json.dumps(first))
    for campaign, host, scale, watts in ((first, "big", 8.0, 40), (second, "small", 1.0, 4)):
        campaign["name"] = host
        campaign["machine"]["hostname"] = host
        campaign["machine"]["device"] = f"disk-of-{host}"
        campaign["runs"]["table"] = f"{host}.csv"
        campaign["power"] = [
            {
                "domain": "system", "meter": "scope", "table": f"{host}-power.csv",
                "watts": [{"column": "w"}], "idle": {"operation": "idle"},
            }
        ]  # fmt: skip
        rows, samples = [], ["idle;0;0;1;" + str(watts / 2)]
        for operation, factor in (("read", 2.0), ("randread", 1.0)):
            for repetition in range(1, 9):
                key = f"{operation};32;0;{repetition}"
                rate = scale * factor * (1e6 + 1e3 * repetition)
                rows.append(f"{key};{rate};{rate};1.0")
                samples.append(f"{key};{watts + 0.1 * repetition}")
        (folder / f"{host}.csv").write_text(
            "\n".join([f"{made.FACTORS};rate;bytes;s", *rows]) + "\n"
        )
        (folder / f"{host}-power.csv").write_text("\n".join([f"{made.FACTORS};w", *samples]) + "\n")
    body["campaigns"] = [first, second]
    path = folder / "two.yaml"
    path.write_text(yaml.safe_dump(body))
    return path


MIX = """\
workload:
- {operation: read, spatiality: sequential, request_size_bytes: 32k, cache: {buffer: off}, share: 1}
"""


@pytest.fixture
def imported(home: Path, eeio: Eeio) -> Path:
    done = eeio("import", "runs", "--map", str(_fast_and_slow(home)), str(home))
    assert "campaign two-big: 16 runs" in done.stdout
    return home


def test_compare(imported: Path, eeio: Eeio) -> None:
    done = eeio("compare", "two-big", "two-small")
    assert "big instead of small: bandwidth up to 700 % higher" in done.stdout
    assert "small instead of big: energy efficiency up to" in done.stdout
    assert "Sequential instead of random access: bandwidth up to 100 % higher" in done.stdout
    assert re.search(r"big disk-of-big +system +20 +20 +40\.45 +20\.45", done.stdout)


def test_compare_reports_what_changed_and_whether_it_helped(imported: Path, eeio: Eeio) -> None:
    done = eeio("compare", "two-small", "two-big")
    assert "two-big against two-small: " in done.stdout
    assert "Changes: J/GB, two-small to two-big" in done.stdout
    body = eeio.json("compare", "two-small", "two-big")
    (found,) = body["changes"]
    assert (found["before"], found["after"], len(found["experiments"])) == (
        "two-small", "two-big", 2,
    )  # fmt: skip
    metric = found["experiments"][0]["metrics"]["bandwidth_bytes_per_s"]
    assert (metric["verdict"], metric["n"]) == ("better", [8, 8])
    assert metric["change_percent"] == pytest.approx(700)
    assert metric["interval_percent"][0] < 700 < metric["interval_percent"][1]


def test_compare_as_a_page(imported: Path, eeio: Eeio) -> None:
    written = imported / "compared.html"
    eeio("compare", "two-small", "two-big", "--format", "html", "-o", str(written))
    page = written.read_text()
    assert "two-big against two-small: " in page and page.count('class="forest"') >= 4
    assert "better" in page and "Welch" in page
    assert 'class="forest"' not in eeio("compare", "two-small", "--format", "html").stdout


@pytest.mark.parametrize(
    ("order", "gate", "code"),
    [
        (("two-big", "two-small"), "worse:5%:MB/s", 4),
        (("two-big", "two-small"), "worse:0.05:MB/s", 4),
        (("two-big", "two-small"), "worse:5%:mb/S", 4),
        (("two-small", "two-big"), "worse:5%:MB/s", 0),
        (("two-big", "two-small"), "worse:800%:MB/s", 2),  # nothing can be
        (("two-big", "two-small"), "worse:5%:p99", 1),  # nothing to judge by is no pass
        (("two-big", "two-small"), "worse", 2),
        (("two-big", "two-small"), "worse:-5%", 2),
        (("two-big", "two-small"), "worse:5%:watts", 2),
        (("two-big",), "worse:5%", 2),
    ],
)
def test_a_gate_for_ci(
    imported: Path, eeio: Eeio, order: tuple[str, ...], gate: str, code: int
) -> None:
    done = eeio("compare", *order, "--fail-if", gate, code=code)
    assert ("worse in two-small: " in done.stderr) == (code == 4)


@pytest.mark.parametrize("rule", [("--floor", "0.2"), ("--indifference", "0")])
def test_a_rule_that_makes_no_sense_is_rejected(
    imported: Path, eeio: Eeio, rule: tuple[str, str]
) -> None:
    done = eeio("compare", "two-big", "two-small", *rule, code=2)
    assert "0 <= floor < indifference < 1" in done.stderr


def test_compare_as_json(imported: Path, eeio: Eeio) -> None:
    done = eeio("compare", "two-big", "two-small", "--format", "json", "--by", "spatiality",
                "--normality")  # fmt: skip
    body = json.loads(done.stdout)
    assert [group["levels"] for group in body["groups"]] == [
        {"spatiality": "sequential"}, {"spatiality": "random"},
    ]  # fmt: skip
    finding = next(
        f for f in body["groups"][0]["findings"]
        if (f["metric"], f["higher"]) == ("bandwidth_bytes_per_s", "big")
    )  # fmt: skip
    assert finding["largest"]["percent"] == pytest.approx(700)
    low, high = finding["largest"]["interval_percent"]
    assert low < 700 < high
    assert finding["largest"]["lower"]["n"] == 8
    assert body["normality"][0]["experiments"] == 4
    assert body["idle_busy"][0]["idle_w"] == 20


def test_guideline(imported: Path, eeio: Eeio) -> None:
    (imported / "mix.yaml").write_text(MIX)
    done = eeio(
        "cost", "--traditional", "two-big", "--low-power", "two-small",
        "--workload", str(imported / "mix.yaml"), "--price-per-kwh", "0.3", "--years", "4",
        "--traditional-price", "900", "--low-power-price", "80",
        "--traditional-device-price", "0", "--low-power-device-price", "0",
        "--format", "json", "--map", str(imported / "map.svg"),
    )  # fmt: skip
    body = json.loads(done.stdout)["guideline"]
    assert body["ratio"]["value"] == pytest.approx(8.0)
    # 8 x 4.45 W for 40.45 W; the tables round the times that bytes and joules are of
    change = body["deployments"][0]["power_change"]["value"]
    assert change == pytest.approx(8 * 4.45 / 40.45 - 1, rel=1e-4)
    assert body["traditional"]["idle_power_w"] == 20
    assert body["deployments"][0]["money"] is not None
    assert (imported / "map.svg").read_text().startswith("<")
    page = imported / "guideline.html"
    eeio(
        "cost", "--traditional", "two-big", "--low-power", "two-small",
        "--workload", str(imported / "mix.yaml"), "--format", "html", "-o", str(page),
    )  # fmt: skip
    assert '<figure id="map">' in page.read_text()


def test_figures(imported: Path, eeio: Eeio) -> None:
    eeio("figures", "two-big", "two-small", "-o", str(imported / "out"))
    names = {path.name for path in (imported / "out").iterdir()}
    assert names == {
        "bandwidth.svg", "efficiency.svg", "bandwidth-read.svg", "efficiency-read.svg",
        "power-system-read.svg", "idle-busy.svg",
    }  # fmt: skip
    assert "disk-of-small" in (imported / "out" / "bandwidth-read.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("compare", "two-big", "two-big"), 2, "is repeated"),
        (("compare", "nothing"), 2, "no campaign 'nothing'"),
        (("compare", "two-big", "--where", "colour=red"), 2, "FACTOR=LEVEL"),
        (("compare", "two-big", "--where", "size=9 MiB"), 2, "there is 32 KiB"),
        (("compare", "two-big", "--alpha", "2"), 2, "between 0 and 1"),
        (("import", "runs", "--map", "x.yaml"), 2, "DIR"),
        (("import", "runs", "."), 2, "--map"),
        (("import", "ccpe2017", "/nowhere"), 2, "no such folder"),
        (("import", "nothing.xml", "."), 2, "nothing.xml: no such file or folder"),
        (("import", "pts", "nothing.xml", "."), 2, "unrecognized arguments: ."),
        (("study", "replicate", "pavan2018", "/nowhere"), 2, "no such folder"),
        (("study", "replicate", "pavan2018"), 2, "give the folder of a copy"),
        (("study", "replicate", "pavan2017", "."), 2, "is this the folder of a campaign?"),
        (("study", "replicate", "--data", "pavan2017=."), 2, "has no published data"),
        (("study", "replicate", "--data", "pavan2018"), 2, "is not STUDY=DIR"),
        (
            ("study", "replicate", "pavan2017", "--data", "pavan2018=."),
            2,
            "for the list of all papers",
        ),
        (("study", "replicate", "--figures", "x"), 2, "name it, and its data"),
    ],
)
def test_rejected(
    imported: Path, eeio: Eeio, arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = eeio(*arguments, code=code)
    assert message in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--years", "3"), "needs both"),
        (("--domain", "dram"), "no experiment of fio"),
        (("--tool", "iozone"), "no experiment of iozone"),
    ],
)
def test_a_guideline_that_cannot_be_had(
    imported: Path, eeio: Eeio, options: tuple[str, ...], message: str
) -> None:
    (imported / "mix.yaml").write_text(MIX)
    done = eeio(
        "cost", "--traditional", "two-big", "--low-power", "two-small",
        "--workload", str(imported / "mix.yaml"), *options, code=2,
    )  # fmt: skip
    assert message in done.stderr


def test_a_name_that_is_taken_is_rejected_before_anything_is_written(
    imported: Path, eeio: Eeio
) -> None:
    results = imported / "data" / "eeio" / "results"
    shutil.rmtree(results / "two-big")
    eeio("import", "runs", "--map", str(imported / "two.yaml"), str(imported), code=2)
    assert not (results / "two-big").exists()
    again = eeio(
        "import", "runs", "--map", str(imported / "two.yaml"), str(imported), "--name", "x"
    )
    assert "campaign x-small" in again.stdout


@needs_published
def test_replicate(home: Path, eeio: Eeio) -> None:
    done = eeio("study", "replicate", "pavan2018", str(PUBLISHED), "--format", "json")
    body = json.loads(done.stdout)
    verdicts = [claim["verdict"] for claim in body["claims"]]
    assert len(verdicts) >= 160
    assert verdicts.count("match") + verdicts.count("truncated") >= 140
    assert "left out" in done.stderr


def test_replicate_lists_all_papers(home: Path, eeio: Eeio) -> None:
    done = eeio("study", "replicate", "--format", "json")
    papers = {paper["study"]: paper for paper in json.loads(done.stdout)["papers"]}
    assert set(papers) == {
        "chang2014", "machado2017", "panadero2012", "pavan2017", "pavan2018", "powersensor3",
    }  # fmt: skip
    assert papers["pavan2018"]["claims"] >= 160 and papers["pavan2018"]["match"] is None
    paper = papers["machado2017"]
    assert paper["claims"] == sum(paper[v] for v in ("match", "truncated", "partial", "no"))


def test_replicate_a_paper_without_data(home: Path, eeio: Eeio) -> None:
    for form in ("table", "markdown"):
        done = eeio("study", "replicate", "machado2017", "--format", form)
        assert "slides, Energy Efficiency" in done.stdout
        assert "cannot follow, whatever the rounding" in done.stdout


@needs_published
def test_replicate_lists_a_paper_with_its_data(home: Path, eeio: Eeio) -> None:
    done = eeio("study", "replicate", "--data", f"pavan2018={PUBLISHED}", "--format", "json")
    (paper,) = [p for p in json.loads(done.stdout)["papers"] if p["study"] == "pavan2018"]
    assert paper["match"] + paper["truncated"] >= 140


@needs_published
def test_a_machine_of_the_paper_against_another(home: Path, eeio: Eeio) -> None:
    eeio("import", "ccpe2017", str(PUBLISHED))
    (home / "mix.yaml").write_text(MIX)
    done = eeio(
        "cost", "--traditional", "ccpe2017-pc-hdd1", "ccpe2017-pc-hdd2",
        "--low-power", "ccpe2017-mpsoc-ssd1", "ccpe2017-mpsoc-ssd2",
        "--workload", str(home / "mix.yaml"), "--choice", "best-worst", "--format", "json",
    )  # fmt: skip
    # The 1.4 servers of section 7.
    assert json.loads(done.stdout)["guideline"]["ratio"]["value"] == pytest.approx(1.4298, abs=1e-4)
    assert "Agilent DSO6014A" in eeio("report", "ccpe2017-pc-ssd1").stdout
