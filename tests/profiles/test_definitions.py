"""What can be said of the profiles without running them: shell, XML, presets."""

import os
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from eeio.measure.profiles import complete
from eeio.measure.profiles import profile as profiles
from tests.processes import ran
from tests.profiles.harness import FOLDERS, PROFILES, copy_of, missing_files

SCHEMAS = {
    "test-definition.xml": "test-profile.xsd",
    "results-definition.xml": "results-parser.xsd",
    "downloads.xml": "test-profile-downloads.xsd",
}


def schema_folder() -> Path:
    """PTS's schemas; PTS_DIR names a checkout or an installation of it."""
    roots = [Path(os.environ["PTS_DIR"])] if os.environ.get("PTS_DIR") else []
    if shutil.which("phoronix-test-suite"):
        roots.append(Path("/usr/share/phoronix-test-suite"))
    for root in roots:
        folder = root / "pts-core" / "openbenchmarking.org" / "schemas"
        if folder.is_dir():
            return folder
    pytest.skip("PTS is not here; set PTS_DIR to a checkout of it")


def parsed(path: Path) -> ElementTree.Element:
    return ElementTree.parse(path).getroot()


@pytest.mark.parametrize("folder", [*FOLDERS, PROFILES / "common"], ids=lambda p: p.name)
def test_shell(folder: Path) -> None:
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed")
    scripts = sorted(folder.glob("*.sh"))
    ran(["shellcheck", *map(str, scripts)])
    for script in scripts:
        assert len(script.read_text().splitlines()) <= 70, f"{script} is longer than a page"


@pytest.mark.parametrize(
    ("folder", "name"),
    # A workload of our own has no downloads.xml.
    [(folder, name) for folder in FOLDERS for name in SCHEMAS if name in complete.files(folder)],
    ids=lambda part: part.name if isinstance(part, Path) else part,
)
def test_xml_against_pts_s_schemas(folder: Path, name: str) -> None:
    if not shutil.which("xmllint"):
        pytest.skip("xmllint is not installed")
    ran(
        ["xmllint", "--noout", "--schema", schema_folder() / SCHEMAS[name],
         complete.file(folder, name)],
    )  # fmt: skip


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_profile_is_complete(folder: Path) -> None:
    name = folder.name.rpartition("-")[0]
    for file in ("install.sh", "pre.sh", "post.sh", "presets.conf", f"{name}.sh"):
        assert file in complete.files(folder), f"{folder.name} has no {file}"
    definition = parsed(folder / "test-definition.xml")
    assert definition.findtext("TestProfile/Version") == folder.name.rpartition("-")[2]
    assert int(definition.findtext("TestInformation/TimesToRun") or 0) == 3
    # PTS disables a test whose description names a graphics interface.
    assert not re.search(
        r"vulkan|opencl|opengl", (folder / "test-definition.xml").read_text(), re.I
    )


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_no_download_keeps_pts_from_installing_offline(folder: Path) -> None:
    if not (folder / "downloads.xml").exists():
        return  # a workload of our own: nothing is fetched
    root = parsed(folder / "downloads.xml")
    for package in root.findall("Downloads/Package"):
        assert package.find("URL") is None
        assert package.findtext("Optional") == "TRUE"
        scripts = "".join(path.read_text() for path in folder.glob("*.sh"))
        assert (package.findtext("SHA256") or "none") in scripts


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_presets(folder: Path) -> None:
    lines = (folder / "presets.conf").read_text().splitlines()
    presets = [line.split() for line in lines if not line.startswith("#")]
    assert [message[0] for message in presets] == ["quick", "standard", "paper"]
    for message in presets:
        assert all(re.fullmatch(r"\w+=[\w.]+", word) for word in message[1:])


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_a_complete_profile_needs_no_other_file(folder: Path, tmp_path: Path) -> None:
    """Every file that a script, a program or a source reads, includes or imports is in it."""
    made = copy_of(folder, tmp_path / folder.name)
    assert not (made / "common").exists()
    assert missing_files(made) == []


def test_every_shared_file_is_used_by_several_profiles() -> None:
    shared = [str(path.relative_to(PROFILES / "common"))
              for path in (PROFILES / "common").rglob("*")
              if path.is_file() and path.suffix != ".pyc"]  # fmt: skip
    lists = {folder: (folder / "common").read_text().split() for folder in FOLDERS}
    # What shared files read is not listed.
    read = {name for names in complete.WITH.values() for name in names}
    for name in shared:
        assert name in read or sum(name in names for names in lists.values()) > 1, name
    for folder, names in lists.items():
        assert set(names) <= set(shared), folder
        own = {path.name for path in folder.iterdir()}
        assert not own & {Path(name).name for name in names}, folder


def test_no_file_of_a_profile_is_copied_into_another() -> None:
    texts = [path.read_bytes() for folder in FOLDERS for path in folder.iterdir()
             if path.is_file() and path.name != "common"]  # fmt: skip
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_every_parsed_line_is_printed(folder: Path) -> None:
    """results-definition.xml waits for lines that the wrapper's awk can print."""
    name = folder.name.rpartition("-")[0]
    wrapper = (folder / f"{name}.sh").read_text()
    if '. "$HOME/rates.sh"' in wrapper:
        wrapper += complete.file(folder, "rates.sh").read_text()
    formats = re.findall(r'printf "(EEIO [^"]*?): %', wrapper)
    printed = [re.escape(text).replace("%s", "[a-z0-9 -]+") for text in formats]
    root = parsed(complete.file(folder, "results-definition.xml"))
    for template in root.findall("ResultsParser/OutputTemplate"):
        line = (template.text or "").partition(":")[0]
        assert any(re.fullmatch(pattern, line) for pattern in printed), line


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_a_run_from_the_menu_has_the_level_of_its_profile(folder: Path) -> None:
    """PTS's menu may not ask for the level: a result without it belongs to the script's default."""
    found = profiles.load(folder)
    assert found.factors is not None
    assert found.default_factors["level"] in found.factors.by_name["level"].words
