"""Our profiles, suites and module under the Phoronix Test Suite itself."""

import base64
import bz2
import hashlib
import json
import os
import re
import shutil
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from eeio.cli import main
from eeio.pts import composite, entry
from eeio.pts.composite import Result, ResultFile
from tests.profiles.harness import FOLDERS, copy_of
from tests.pts.harness import ROOT, TRIVIAL, Done, PtsHome, make_trivial_profile, running
from tests.waiting import until

pytestmark = pytest.mark.pts

READ = "level=filesystem operation=read spatiality=sequential"
TWO = [(TRIVIAL, f"{READ} sleep_s=0.6 value=100", "First"),
       (TRIVIAL, f"{READ} sleep_s=0.3 value=500", "Second")]  # fmt: skip
QUICK = {"EEIO_PRESET": "quick", "EEIO_IDLE_S": "0.5", "TEST_RESULTS_NAME": "t",
         "TEST_RESULTS_IDENTIFIER": "here"}  # fmt: skip


@dataclass
class Ran:
    home: PtsHome
    done: Done

    @property
    def file(self) -> ResultFile:
        return composite.read(self.home.result("t"))

    def of(self, scale: str) -> list[Result]:
        return [result for result in self.file.results if result.scale == scale]


def home_with(folder: Path, tests: list[tuple[str, str, str]], **options: int) -> PtsHome:
    home = PtsHome(folder / "home", **options)
    home.add_profile(make_trivial_profile(folder))
    home.add_suite("eeio-two", tests)
    return home


@pytest.fixture(scope="module")
def random_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """Two experiments twice, in random order, on a RAPL meter."""
    folder = tmp_path_factory.mktemp("random")
    home = home_with(folder, TWO)
    with running(sys.executable, "-m", "tests.pts.meter", str(folder / "rapl")):
        until((folder / "rapl" / "intel-rapl:0/energy_uj").exists)
        done = home.run(
            "benchmark", "eeio-two", timeout_s=90,
            environment=QUICK | {
                "EEIO_METER": f"rapl,root={folder}/rapl", "FORCE_TIMES_TO_RUN": "2",
                "EEIO_PROTOCOL": "random", "EEIO_SEED": "3",
            },
        )  # fmt: skip
    yield Ran(home, done)


def test_a_random_order_ends_in_one_entry_an_experiment(random_run: Ran) -> None:
    assert random_run.done.returncode == 0, random_run.done.output[-2000:]
    bandwidths = random_run.of("MB/s")
    assert [len(result.entries) for result in bandwidths] == [1, 1]
    values = sorted(value for result in bandwidths for value in result.entries[0].values)
    assert len(values) == 4
    assert random_run.file.environment["EEIO_SEED"] == "3"


def test_every_bandwidth_has_power_energy_and_efficiency_of_each_trial(random_run: Ran) -> None:
    for bandwidth in random_run.of("MB/s"):
        by_unit = {
            result.scale: result.entries[0]
            for result in random_run.file.results
            if result.parent == bandwidth.comparison_hash
        }
        sleep_s = 0.6 if "First" in bandwidth.description else 0.3
        assert set(by_unit) == {"W", "J", "MB/J"}
        for power_w, energy_j, efficiency, rate in zip(
            by_unit["W"].values, by_unit["J"].values, by_unit["MB/J"].values,
            bandwidth.entries[0].values, strict=True,
        ):  # fmt: skip
            assert power_w == pytest.approx(80, rel=0.1)
            assert energy_j > 80 * sleep_s * 0.9
            assert efficiency == pytest.approx(rate / power_w, rel=1e-4)


@pytest.mark.skipif(not shutil.which("fio"), reason="no fio")
def test_an_offered_load_is_a_share_of_what_pre_sh_measured(tmp_path: Path) -> None:
    home = PtsHome(tmp_path / "home")
    home.add_profile(ROOT / "test-profiles/eeio-fio-1.0.0")
    factors = "level=filesystem operation=read spatiality=random request_size=64k buffer=off"
    home.add_suite(
        "eeio-two",
        [("eeio-fio-1.0.0", f"{factors} file_size=64m runtime_s=1 load=20", "Load: 20 %")],
    )
    (tmp_path / "files").mkdir()
    done = home.run(
        "benchmark", "eeio-two", timeout_s=120,
        environment=QUICK | {
            "EEIO_METER": "none", "FORCE_TIMES_TO_RUN": "1",
            "EEIO_DIRECTORY": str(tmp_path / "files"),
        },
    )  # fmt: skip
    assert done.returncode == 0, done.output[-2000:]
    (bandwidth,) = Ran(home, done).of("MB/s")
    (folder,) = home.folder.glob("installed-tests/local/eeio-fio-1.0.0")
    reported = json.loads((folder / "calibration/fio.json").read_text())
    complete = reported["jobs"][0]["read"]["bw_bytes"] / 1e6
    assert bandwidth.entries[0].values[0] == pytest.approx(0.2 * complete, rel=0.05)


@pytest.mark.skipif(not shutil.which("iozone") or not shutil.which("cc"), reason="no iozone or cc")
def test_only_the_bandwidth_of_the_disk_has_an_efficiency(tmp_path: Path) -> None:
    """IOzone's children tell the page cache's, and files that are created have none."""
    home = PtsHome(tmp_path / "home")
    for name in ("eeio-iozone-1.0.0", "eeio-metadata-1.0.0"):
        home.add_profile(ROOT / "test-profiles" / name)
    level = "level=filesystem buffer=on processes=2"
    home.add_suite(
        "eeio-two",
        [
            ("eeio-iozone-1.0.0", f"{level} operation=write file_size=64m", "Write"),
            (
                "eeio-metadata-1.0.0",
                f"{level} operation=metadata mode=fork rounds=400",
                "Files",
            ),
        ],
    )
    (tmp_path / "files").mkdir()
    with running(sys.executable, "-m", "tests.pts.meter", str(tmp_path / "rapl")):
        until((tmp_path / "rapl" / "intel-rapl:0/energy_uj").exists)
        done = home.run(
            "benchmark", "eeio-two", timeout_s=120,
            environment=QUICK | {
                "EEIO_METER": f"rapl,root={tmp_path}/rapl", "FORCE_TIMES_TO_RUN": "1",
                "EEIO_DIRECTORY": str(tmp_path / "files"),
            },
        )  # fmt: skip
    assert done.returncode == 0, done.output[-2000:]
    ran = Ran(home, done)
    by_label = {
        result.description: {
            other.scale for other in ran.file.results if other.parent == result.comparison_hash
        }
        for scale in ("MB/s", "Files/s")
        for result in ran.of(scale)
    }
    write, children = (
        by_label[next(k for k in by_label if k.endswith(w))] for w in ("Write", "Children")
    )
    assert "MB/J" in write and "MB/J" not in children
    create = by_label[next(k for k in by_label if k.endswith("Create"))]
    assert create == {"W", "J"}
    assert sum(k.endswith(("Create", "Stat", "Utime", "Delete")) for k in by_label) == 4


def test_what_the_module_wrote_has_the_published_form(random_run: Ran) -> None:
    entries = [e for result in random_run.file.results for e in result.entries if e.own]
    assert entries
    for found in entries:
        entry.check(found.own)


def test_windows_match_the_times_that_pts_measured(random_run: Ran) -> None:
    for result in random_run.of("J"):
        trials = result.entries[0].own["trials"]
        sleep_s = 0.6 if "First" in result.description else 0.3
        assert all(sleep_s <= trial["duration_s"] < sleep_s + 2.0 for trial in trials)
    orders = [t["order"] for r in random_run.of("J") for t in r.entries[0].own["trials"]]
    assert sorted(orders) == [0, 1, 2, 3]


def test_the_idle_baseline_is_a_result(random_run: Ran) -> None:
    idle = next(r for r in random_run.file.results if r.title == "eeio: idle baseline")
    assert float(idle.entries[0].value) == pytest.approx(80, rel=0.1)


def test_pts_finds_the_result_file_valid_and_shows_it(random_run: Ran) -> None:
    assert "is Valid" in random_run.home.run("validate-result-file", "t").output
    shown = random_run.home.run("show-result", "t").output
    for unit in ("MB/s", "W <", "J <", "MB/J"):
        assert unit in shown


def test_pts_takes_and_merges_what_we_export(
    random_run: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(random_run.home.home.parent))
    assert main(["import", str(random_run.home.result("t")), "--name", "ours"]) == 0
    target = random_run.home.folder / "test-results" / "ours"
    assert main(["export", "ours", "--pts", "-o", str(target)]) == 0
    assert "is Valid" in random_run.home.run("validate-result-file", "ours").output
    random_run.home.run("merge-results", "t", "ours")
    merged = next(random_run.home.folder.glob("test-results/merge*/composite.xml"))
    file = composite.read(merged)
    assert {s.identifier for s in file.systems} == {"here", "ours"}
    bandwidths = [result for result in file.results if result.scale == "MB/s"]
    assert [len(result.entries) for result in bandwidths] == [2, 2]


def test_an_upload_reaches_the_endpoint_complete(random_run: Ran, tmp_path: Path) -> None:
    """On loopback, in a network namespace that has nothing else."""
    if os.geteuid() != 0:
        pytest.skip("a network namespace needs root")
    home = PtsHome(tmp_path / "home", proxy_port=8099)
    home.add_profile(make_trivial_profile(tmp_path))
    folder = home.folder / "test-results" / "t"
    folder.mkdir()
    shutil.copy(random_run.home.result("t"), folder)
    mock = (
        f'"{sys.executable}" -m tests.pts.openbenchmarking 8099 "{tmp_path}" & mock=$!; '
        'sleep 1; "$@"; status=$?; kill $mock; exit $status'
    )
    done = home.run(
        "upload-result", "t", before=("sh", "-c", f'cd "{ROOT}"; {mock}', "sh"), timeout_s=60
    )
    assert "127.0.0.1/result/" in done.output, done.output[-2000:]
    sent = json.loads((tmp_path / "upload.json").read_text())
    content = next(
        unpack(base64.b64decode(sent[key]))
        for key, unpack in (
            ("composite_xml", bytes),
            ("composite_xml_gz", lambda data: zlib.decompress(data, -15)),
            ("composite_xml_bz", bz2.decompress),
        )
        if key in sent
    )
    assert hashlib.sha1(content).hexdigest() == sent["composite_xml_hash"]
    assert composite.parse(content).results == random_run.file.results
    assert not sent.get("system_logs_zip")


def test_an_upload_of_demo_power_is_rejected(random_run: Ran, tmp_path: Path) -> None:
    home = PtsHome(tmp_path / "home", proxy_port=8098)
    home.add_profile(make_trivial_profile(tmp_path))
    folder = home.folder / "test-results" / "t"
    folder.mkdir()
    text = random_run.home.result("t").read_text()
    assert '"kind":"measured"' in text
    (folder / "composite.xml").write_text(text.replace('"kind":"measured"', '"kind":"demo"'))
    done = home.run("upload-result", "t", timeout_s=60)
    assert done.returncode == 2, done.output[-2000:]
    assert "t: the power is fictitious (meter demo), so that the results are not" in done.output
    assert "Results Failed To Upload" not in done.output, "nothing was tried"


def test_a_trial_that_fails_and_a_meter_that_dies_are_reported(tmp_path: Path) -> None:
    """Of four trials the second fails; from the third on the meter cannot be read."""
    home = home_with(tmp_path, [(TRIVIAL, f"{READ} sleep_s=0.3 fail_at=2 value=0", "Only")])
    fail = tmp_path / "fail"
    profile = tmp_path / TRIVIAL / "eeio-trivial.sh"
    text = profile.read_text().replace("start_s=", f'[ $count -lt 3 ] || : >"{fail}"\nstart_s=', 1)
    profile.write_text(text)
    with running(sys.executable, "-m", "tests.pts.meter", str(tmp_path / "rapl"), str(fail)):
        until((tmp_path / "rapl" / "intel-rapl:0/energy_uj").exists)
        done = home.run(
            "benchmark", "eeio-two", timeout_s=90,
            environment=QUICK | {
                "EEIO_METER": f"rapl,root={tmp_path}/rapl", "FORCE_TIMES_TO_RUN": "4",
            },
        )  # fmt: skip
    assert done.returncode == 3, done.output[-2000:]
    assert "trial 2 failed" in done.output
    ran = Ran(home, done)
    bandwidth = ran.of("MB/s")[0]
    assert bandwidth.entries[0].values == (1.5, 3.5, 4.5)
    assert bandwidth.entries[0].own["trial-of-value"] == [0, 2, 3]
    assert "1 of 4 trials failed" in bandwidth.annotation
    # The trial in which it dies may have had a reading before, which is then held over it.
    assert re.search("[12] of 3 trials have no energy", bandwidth.annotation)
    powers = ran.of("W")[-1].entries[0].values
    efficiencies = ran.of("MB/J")[0].entries[0].values
    assert len(powers) in (1, 2)
    expected = [value / power for value, power in zip((1.5, 3.5), powers, strict=False)]
    # That reading may be too uncertain for a MB/J.
    assert efficiencies == pytest.approx(expected[: len(efficiencies)], rel=1e-4)
    assert len(efficiencies) == len(powers) or "no MB/J of rapl" in bandwidth.annotation
    assert "is Valid" in home.run("validate-result-file", "t").output


def test_estimates_are_called_so(tmp_path: Path) -> None:
    home = home_with(tmp_path, TWO[1:])
    done = home.run(
        "benchmark", "eeio-two", timeout_s=60,
        environment=QUICK | {"EEIO_METER": "modelled", "FORCE_TIMES_TO_RUN": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.output[-2000:]
    results = [r for r in Ran(home, done).file.results if r.scale in ("W", "J", "MB/J")]
    assert len(results) == 4
    assert all("ESTIMATE" in r.title and "ESTIMATE" in r.description for r in results)


def test_ctrl_c_leaves_a_valid_file_and_reports_what_is_missing(tmp_path: Path) -> None:
    tests = [(TRIVIAL, f"{READ} sleep_s=0.3", "Short"), (TRIVIAL, f"{READ} sleep_s=60", "Long")]
    home = home_with(tmp_path, tests)
    home.run("install", "eeio-two", timeout_s=30)
    done = home.run(
        "run", "eeio-two", timeout_s=60, signal_after_s=18,
        environment=QUICK | {"EEIO_METER": "modelled", "FORCE_TIMES_TO_RUN": "1",
                             "TEST_EXECUTION_SORT": "none"},
    )  # fmt: skip
    assert done.returncode in (130, -2), done.output[-2000:]
    assert "stopped by signal 2" in done.output
    ran = Ran(home, done)
    assert [r.description for r in ran.of("MB/s")] == ["Short - Read"]
    assert ran.of("J")
    assert "is Valid" in home.run("validate-result-file", "t").output


def assert_rejected(home: PtsHome, message: str, code: int = 2, **environment: str) -> None:
    done = home.run("benchmark", "eeio-two", timeout_s=60, environment=QUICK | environment)
    assert done.returncode == code, done.output[-2000:]
    lines = [line for line in done.output.splitlines() if line.startswith("eeio_power:")]
    assert message in lines[-1], done.output[-2000:]
    assert "Started Run" not in done.output


def test_a_meter_that_is_not_there_is_rejected(tmp_path: Path) -> None:
    home = home_with(tmp_path, TWO)
    assert_rejected(home, f"{tmp_path}/none", EEIO_METER=f"rapl,root={tmp_path}/none")
    zone = tmp_path / "rapl" / "intel-rapl:0"
    (zone / "energy_uj").mkdir(parents=True)  # root can read everything but a folder
    (zone / "name").write_text("package-0\n")
    (zone / "max_energy_range_uj").write_text("1000000\n")
    assert_rejected(home, str(tmp_path / "rapl"), EEIO_METER=f"rapl,root={tmp_path}/rapl")


def test_a_suite_that_names_a_missing_profile_is_rejected(tmp_path: Path) -> None:
    home = home_with(tmp_path, [*TWO, ("eeio-nobody-1.0.0", "", "Nobody")])
    assert_rejected(home, "local/eeio-nobody-1.0.0")


def test_a_profile_that_cannot_be_installed_is_rejected(tmp_path: Path) -> None:
    home = PtsHome(tmp_path / "home")
    home.add_profile(make_trivial_profile(tmp_path, install_exit=1))
    home.add_suite("eeio-two", TWO)
    assert_rejected(home, "is not installed")


def test_a_result_that_exists_is_rejected(tmp_path: Path, random_run: Ran) -> None:
    home = home_with(tmp_path, TWO)
    home.result("t").parent.mkdir()
    shutil.copy(random_run.home.result("t"), home.result("t"))
    before = home.result("t").read_bytes()
    assert_rejected(home, 'has results of "here" already')
    assert home.result("t").read_bytes() == before


@pytest.mark.parametrize("profile", FOLDERS, ids=lambda folder: folder.name)
def test_pts_finds_our_profiles_valid(tmp_path: Path, profile: Path) -> None:
    """On a copy: PTS writes the definition again as it likes it."""
    home = PtsHome(tmp_path / "home")
    copy_of(profile, home.folder / "test-profiles/local" / profile.name)
    output = home.run("validate-test-profile", f"local/{profile.name}").output
    assert "invalid" not in output.lower()
    assert "Test Profile XML Is Valid" in output, output[-1500:]


@pytest.mark.parametrize("suite", sorted((ROOT / "suites").glob("eeio-*")), ids=str)
def test_pts_finds_our_suites_valid(tmp_path: Path, suite: Path) -> None:
    home = PtsHome(tmp_path / "home")
    for profile in (ROOT / "test-profiles").glob("eeio-*"):
        home.add_profile(profile)
    shutil.copytree(suite, home.folder / "test-suites/local" / suite.name)
    output = home.run("validate-test-suite", f"local/{suite.name}").output
    assert "Test Suite XML Is Valid" in output, output[-1500:]
