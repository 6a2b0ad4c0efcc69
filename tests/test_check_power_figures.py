"""The commands of docs/how-to/check-power-figures.md, with simulators in place of the meters."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.eeio.importing.importer import Importer
from tests.plugin import InProcess
from tests.simulators.http import FakeHttp

PAGE = Path(__file__).parents[1] / "docs/how-to/check-power-figures.md"
SERIES = "kepler_node_platform_joules_total%7Binstance%3D%22n1%22%7D%5B2500ms%5D"


def commands(title: str) -> list[list[str]]:
    """Those in the section, as lists of words."""
    section = PAGE.read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```\n((?:eeio|fio) [^`]+)```$", section, re.MULTILINE)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def changed(words: list[str], changes: dict[str, str]) -> list[str]:
    made = []
    for word in words:
        for old, new in changes.items():
            word = word.replace(old, new)
        made.append(word)
    return made


def test_a_series_is_compared_with_a_pdu(tmp_path: Path, in_process: InProcess) -> None:
    (words,) = commands("A Prometheus series with a PDU")
    body = {
        "status": "success",
        "data": {
            "resultType": "matrix",
            "result": [
                {"metric": {"instance": "n1"}, "values": [[10.0, "100"], [12.0, "160"]]},
            ],
        },
    }
    # A plug in place of the PDU: its own tests need a simulator of SNMP.
    plug = {"/cm?cmnd=Status%208": {"StatusSNS": {"ENERGY": {"Power": 123}}}}
    with (
        FakeHttp({f"/api/v1/query?query={SERIES}": body}) as series,
        FakeHttp(plug) as pdu,
    ):
        arguments = changed(
            words[1:],
            {
                "prometheus.example:9090": series.address, "period_s=15": "period_s=1",
                "snmp:pdu.example,outlets=1": f"tasmota:{pdu.address}", "4h": "4",
                "hours.csv.gz": str(tmp_path / "hours.csv.gz"),
            },
        )  # fmt: skip
        shown = in_process(*arguments).out
    assert re.search(r"^prometheus +system .* J ± .* 30\.00 W ", shown, re.MULTILINE), shown
    assert re.search(r"^tasmota +system .* J ± .* 123\.00 W ", shown, re.MULTILINE), shown
    assert (tmp_path / "hours.csv.gz").is_file()


def test_a_part_with_more_power_than_the_machine_is_doubtful(in_process: InProcess) -> None:
    plug = {"/cm?cmnd=Status%208": {"StatusSNS": {"ENERGY": {"Power": 100}}}}
    selector = "/api/v1/query?query=package_watts%5B2500ms%5D"
    values = [[10.0, "300"], [11.0, "300"]]
    body = {
        "status": "success",
        "data": {"resultType": "matrix", "result": [{"metric": {}, "values": values}]},
    }
    with FakeHttp({selector: body}) as series, FakeHttp(plug) as machine:
        shown = in_process(
            "record", "power", "--meter",
            f"prometheus:{series.address},metric=package_watts,domain=package,period_s=1",
            "--meter", f"tasmota:{machine.address}", "--", "sleep", "4",
        ).out  # fmt: skip
    assert shown.count("doubtful") >= 2, shown


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_the_share_of_a_drive(tmp_path: Path, in_process: InProcess) -> None:
    changes = {
        "/mnt/disk": str(tmp_path / "drive"), "/dev/shm": str(tmp_path / "memory"),
        "shelly:192.0.2.7": "demo", "=8g": "=8m", "=1g": "=4m", "--runtime=120": "--runtime=2",
    }  # fmt: skip
    for name in ("drive", "memory"):
        (tmp_path / name).mkdir()
    section = commands("A drive's share on a board without a drive meter")
    made = [changed(words, changes) for words in section]
    assert [words[0] for words in made] == ["fio", "fio", "eeio", "eeio", "rm"]
    for words in made:
        if words[0] != "eeio":
            subprocess.run(words, check=True, capture_output=True, timeout=60)
            continue
        words[words.index("--idle") + 1] = "1"
        shown = in_process(*words[1:]).out
        assert re.search(r"^W +idle +busy +above idle$", shown, re.MULTILINE), shown
        assert re.search(r"^system +[\d.]+ ± [\d.]+ +[\d.]+ ± ", shown, re.MULTILINE), shown
    assert not list(tmp_path.glob("*/*"))


def scaphandre(share: float) -> str:
    """A log of two sockets whose two processes have that share of the host's power."""
    return json.dumps([
        {"host": {"consumption": 40e6, "timestamp": 1_700_000_000.0 + k, "components": {}},
         "consumers": [{"exe": "a", "pid": n, "consumption": share * 20e6} for n in (1, 2)],
         "sockets": [{"id": n, "consumption": 20e6, "domains": []} for n in (0, 1)]}
        for k in range(60)
    ])  # fmt: skip


def powerapi(share: float) -> str:
    return "timestamp,sensor,target,power,scope,socket\n" + "".join(
        f"{1_700_000_000_000 + k * 1000},s,{target},{power},cpu,0\n"
        for k in range(60) for target, power in (("rapl", 40.0), ("global", 40.0),
                                                 ("bash", share * 40.0))
    )  # fmt: skip


FIO = {
    "fio version": "fio-3.36", "timestamp": 1_700_000_040,
    "jobs": [
        {"jobname": "a", "groupid": 0, "error": 0, "job_start": 1_700_000_010_000,
         "job options": {"rw": "read", "bs": "4k"},
         "read": {"io_bytes": 409600, "bw_bytes": 20480, "iops": 5.0, "runtime": 20000,
                  "total_ios": 100},
         "write": {"io_bytes": 0, "bw_bytes": 0, "iops": 0.0, "runtime": 0, "total_ios": 0}},
    ],
}  # fmt: skip


@pytest.mark.parametrize("made", [scaphandre, powerapi])
@pytest.mark.parametrize(("share", "doubtful"), [(3.12, True), (0.25, False)])
def test_processes_beyond_the_total_make_a_log_doubtful(
    tmp_path: Path, imported: Importer, made: object, share: float, doubtful: bool
) -> None:
    (words, _) = commands("Logs of single processes")
    (tmp_path / "results").mkdir()
    (tmp_path / "results/fio.json").write_text(json.dumps(FIO))
    log = tmp_path / "scaphandre.json"
    log.write_text(made(share))  # type: ignore[operator]
    changes = {"scaphandre.json": str(log), "results": str(tmp_path / "results")}
    body = imported(*changed(words[2:], changes))
    (phase,) = body["files"][0]["reports"][0]["phases"]
    (reading,) = phase["energy"]
    assert reading["power_w"] == pytest.approx(40.0)
    assert reading["doubtful"] == doubtful
    text = f"the processes in it add up to {100 * share:.3g} % of its total; only the total is used"
    assert text in body["power"][0]["notes"]
