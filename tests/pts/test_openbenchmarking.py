"""ci/openbenchmarking: archives that PTS accepts, and profiles that run under an account's name."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from eeio.pts import composite, read
from tests.processes import ran
from tests.pts.harness import ROOT, PtsHome, why_not

ACCOUNT = "tester"


def _made(folder: Path) -> Path:
    subprocess.run(
        [sys.executable, ROOT / "ci/openbenchmarking", ACCOUNT, folder],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _made(tmp_path_factory.mktemp("upload") / "out")


def test_the_same_archives_are_made_again_and_are_complete(made: Path, tmp_path: Path) -> None:
    again = _made(tmp_path / "again")
    archives = sorted(made.glob("*.zip"))
    profiles = sorted(path.name for path in (ROOT / "test-profiles").glob("eeio-*/"))
    assert [path.name for path in archives if path.stem in profiles] == [
        f"{p}.zip" for p in profiles
    ]
    for path in archives:
        assert path.read_bytes() == (again / path.name).read_bytes()
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        assert not any("/" in name for name in names)
        assert "install.sh" in names or names == ["suite-definition.xml"]
    suite = (made / f"test-suites/{ACCOUNT}/eeio-suite-1.0.0/suite-definition.xml").read_text()
    assert f"<Test>{ACCOUNT}/eeio-fio-1.0.0</Test>" in suite and "<Test>local/" not in suite
    # PTS takes a profile before a suite of the same name.
    suites = {path.name for path in (made / f"test-suites/{ACCOUNT}").iterdir()}
    assert "eeio-s3-suite-1.0.0" in suites and not suites & set(profiles)
    commands = (made / "COMMANDS").read_text()
    assert f"upload-test-profile {ACCOUNT}/eeio-fio-1.0.0" in commands


def test_an_existing_folder_and_a_wrong_name_are_rejected(tmp_path: Path) -> None:
    for arguments in ((ACCOUNT, tmp_path), ("no/account", tmp_path / "new")):
        done = ran([sys.executable, ROOT / "ci/openbenchmarking", *arguments], code=None)
        assert done.returncode != 0
    assert not (tmp_path / "new").exists()


@pytest.fixture
def home(made: Path, tmp_path: Path) -> PtsHome:
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    home = PtsHome(tmp_path)
    for kind in ("test-profiles", "test-suites"):
        shutil.copytree(made / kind / ACCOUNT, home.folder / kind / ACCOUNT)
    return home


@pytest.mark.pts
def test_pts_validates_every_profile_and_suite(made: Path, home: PtsHome) -> None:
    for line in (made / "COMMANDS").read_text().splitlines():
        if "validate" in line:
            fields = line.split()[1:]
            output = home.run(*fields).output
            kind = "Suite" if "suite" in fields[0] else "Profile"
            assert f"Test {kind} XML Is Valid." in output, f"{fields}: {output}"
            assert not re.search("errors|not allowed", output, re.IGNORECASE), f"{fields}: {output}"


@pytest.mark.pts
def test_a_profile_of_an_account_has_power_and_is_imported(home: PtsHome, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    suite = home.folder / f"test-suites/{ACCOUNT}/eeio-one-1.0.0"
    suite.mkdir()
    (suite / "suite-definition.xml").write_text(
        '<?xml version="1.0"?><PhoronixTestSuite><SuiteInformation><Title>eeio test</Title>'
        "<Version>1.0.0</Version><TestType>Disk</TestType><Description>Of a test.</Description>"
        f"<Maintainer>eeio</Maintainer></SuiteInformation><Execute><Test>{ACCOUNT}/eeio-metadata-1.0.0"
        "</Test><Arguments>level=filesystem operation=metadata buffer=on processes=2 files=16 "
        "rounds=300</Arguments>"
        "<Description>one</Description></Execute></PhoronixTestSuite>"
    )
    done = home.run(
        "benchmark", f"{ACCOUNT}/eeio-one-1.0.0",
        environment={
            "EEIO_DIRECTORY": str(tmp_path / "disk"), "EEIO_PRESET": "quick", "EEIO_METER": "demo",
            "EEIO_IDLE_S": "0", "EEIO_SETTLE_S": "0", "FORCE_TIMES_TO_RUN": "1",
            "TEST_RESULTS_NAME": "account", "TEST_RESULTS_IDENTIFIER": "here",
        },
        timeout_s=240,
    )  # fmt: skip
    file = composite.read(home.result("account"))
    (test,) = read.experiments_of(file, "here", None)
    assert test.experiment.tool == "metadata", done.output
    assert test.phases and test.energies, done.output
