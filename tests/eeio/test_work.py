"""Fixed work: what each run moves, by the protocol or `--work`, to the last byte of real tools."""

import json
import shutil
from pathlib import Path

import pytest
from tests.executables import executable
from tests.plugin import DATA, Eeio

from eeio.errors import RejectedError
from eeio.measure.profiles import suite as suites

SUITE = """<?xml version="1.0"?>
<PhoronixTestSuite><SuiteInformation><Title>work</Title></SuiteInformation>
<Execute><Test>local/eeio-fio-1.0.0</Test><Arguments>level=filesystem operation=write
 spatiality=sequential request_size=64k buffer=on flush=end</Arguments></Execute>
<Execute><Test>local/eeio-iozone-1.0.0</Test><Arguments>level=filesystem operation=write
 spatiality=sequential request_size=64k buffer=on flush=end</Arguments></Execute>
<Execute><Test>local/eeio-dataserver-1.0.0</Test><Arguments>level=library api=posix operation=write
 spatiality=sequential request_size=64k buffer=on clients=1 flush=end</Arguments></Execute>
</PhoronixTestSuite>
"""
PROTOCOL = """presets:
  quick: {repetitions: 1, settle_s: 0, idle_s: 0, is_measurement: false, work: WORK}
"""


def _suite(folder: Path, work: str) -> Path:
    folder.mkdir()
    (folder / "suite-definition.xml").write_text(SUITE)
    (folder / "protocol.yaml").write_text(PROTOCOL.replace("WORK", work))
    return folder


@pytest.mark.fast_variants(1)
@pytest.mark.tools
@pytest.mark.parametrize(("own", "wanted"), [((), 8 << 20), (("--work", "4m"), 4 << 20)])
def test_each_run_moves_the_work_and_campaign_json_reports_it(
    home: Path, eeio: Eeio, own: tuple[str, ...], wanted: int
) -> None:
    """quick would end fio and the data servers by time, and move 256 MiB."""
    suite = _suite(home / "work-suite", "8m")
    arguments = (str(suite), "--preset", "quick", "--directory", str(home / "target"), *own)
    planned = eeio("plan", *arguments)
    assert f"each run moves {wanted >> 20} MiB, however long it takes" in planned.stdout
    eeio("run", *arguments, "--meter", "none", "--name", "c")
    campaign = home / "data/eeio/results/c"
    records = [json.loads(line) for line in (campaign / "runs.jsonl").open()]
    moved = {r["experiment"]["tool"]: r["phases"][0]["bytes_moved"] for r in records}
    assert moved == dict.fromkeys(("fio", "iozone", "dataserver"), wanted)
    assert json.loads((campaign / "campaign.json").read_text())["protocol"]["work_bytes"] == wanted


@pytest.mark.parametrize(
    ("work", "message"),
    [("0", "0 bytes are none"), ("-1", "not a size"), ("many", "not a size"), ("[1]", "not text")],
)
def test_work_that_is_none_is_rejected(tmp_path: Path, eeio: Eeio, work: str, message: str) -> None:
    with pytest.raises(RejectedError, match=message):
        suites.load(_suite(tmp_path / "s", work))


@pytest.mark.parametrize("work", ["0", "-1", "1.5g", ""])
def test_an_option_that_is_no_work_is_rejected(eeio: Eeio, work: str) -> None:
    done = eeio("plan", "dummy-suite", "--directory", ".", f"--work={work}", code=2)
    assert "--work" in done.stderr


def test_a_tool_without_a_file_of_a_chosen_size_keeps_its_own(home: Path, eeio: Eeio) -> None:
    done = eeio.plan("dummy-suite", "--work", "1g")
    assert "file_size" not in done.stdout


OPTIONAL = """
optional:
  - command: no-such-tool
    variable: EEIO_MADE_UP_TOOL
    help: '\\A(?!.*MADE-3\\.).*HDF5'
    otherwise: one with HDF5 is not here
    experiments:
      - profile: eeio-dummy-1.0.0
        factors: {level: library, operation: read, spatiality: sequential, api: hdf5}
        description: with the tool
"""


@pytest.mark.parametrize(
    ("reported", "experiments"), [("usage\n HDF5", 4), ("MADE-3.3\n HDF5", 3), ("usage\n POSIX", 3)]
)
def test_what_a_tool_was_built_with_is_queried(
    home: Path, eeio: Eeio, reported: str, experiments: int
) -> None:
    protocol = Path(shutil.copytree(DATA / "suites/dummy-suite", home / "own")) / "protocol.yaml"
    protocol.write_text(protocol.read_text() + OPTIONAL)
    tool = executable(
        home / "made-up", f'#!/bin/sh\n[ "$1" = -h ] && printf "{reported}" >&2\nexit 1\n'
    )
    done = eeio.plan(str(protocol.parent), environment={"EEIO_MADE_UP_TOOL": str(tool)})
    assert f"{experiments} experiments" in done.stdout
    assert ("one with HDF5 is not here" in done.stdout) == (experiments == 3)
