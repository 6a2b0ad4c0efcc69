"""Power distribution units by SNMP: tables of four makers in snmpsim, and Debian's snmpd."""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.eeio_power.one_meter import one_meter
from tests.executables import executable
from tests.waiting import free_port

from eeio_power.errors import PowerError
from eeio_power.meters import Meter, open_meters
from eeio_power.meters.snmp import TABLES, SnmpMeter, Table
from eeio_power.reading import WALL

pytest.importorskip("pysnmp", reason="pysnmp is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SYSTEM = "1.3.6.1.2.1.1.2.0"
APC, RARITAN = "1.3.6.1.4.1.318.1.1.26.9", "1.3.6.1.4.1.13742.6"
SENTRY, EATON = "1.3.6.1.4.1.1718.4.1.8.3.1", "1.3.6.1.4.1.534.6.6.7.6"


def raritan(outlet: int, value: int, unit: int = 3, digits: int = 1, status: int = 4) -> list[str]:
    return [
        f"{RARITAN}.3.5.4.1.6.1.{outlet}.5|2|{unit}",
        f"{RARITAN}.3.5.4.1.7.1.{outlet}.5|66|{digits}",
        f"{RARITAN}.3.5.4.1.6.1.{outlet}.8|2|5",
        f"{RARITAN}.3.5.4.1.7.1.{outlet}.8|66|0",
        f"{RARITAN}.4.1.2.1.3.1.{outlet}|2|7",
        f"{RARITAN}.5.4.3.1.3.1.{outlet}.5|2|{status}",
        f"{RARITAN}.5.4.3.1.4.1.{outlet}.5|66|{value}",
        f"{RARITAN}.5.4.3.1.4.1.{outlet}.8|66|4294967295",
    ]


# By community, as snmpsim takes it: OID|type|value, as in published walks of such PDUs.
WALKS = {
    "apc": [
        f"{SYSTEM}|6|1.3.6.1.4.1.318.1.3.4.6",
        *(f"{APC}.2.3.1.5.{n}|2|{state}" for n, state in ((1, 2), (2, 1), (3, 2), (4, 2))),
        *(f"{APC}.4.3.1.7.{n}|2|{watt}" for n, watt in ((1, 123), (2, 0), (3, 0), (4, -1))),
        *(f"{APC}.4.3.1.11.{n}|2|{count}" for n, count in ((1, 57), (2, 9), (3, 0), (4, -1))),
    ],
    "raritan": [
        f"{SYSTEM}|6|1.3.6.1.4.1.13742.6",
        *raritan(1, 1234),
        *raritan(2, 1500, unit=4),
        *raritan(3, 10, status=-1),
    ],
    "sentry": [
        f"{SYSTEM}|6|1.3.6.1.4.1.1718.4",
        f"{SENTRY}.1.1.1.1|2|1",
        f"{SENTRY}.7.1.1.1|2|87",
        f"{SENTRY}.7.2.1.1|2|13",
        f"{SENTRY}.9.1.1.1|2|91",
        f"{SENTRY}.14.1.1.1|2|2000",
    ],
    "eaton": [
        f"{SYSTEM}|6|1.3.6.1.4.1.534.6.6.7",
        f"{EATON}.5.1.3.0.1|2|45",
        f"{EATON}.5.1.4.0.1|66|7",
        f"{EATON}.6.1.2.0.1|2|1",
    ],
    "other": [
        f"{SYSTEM}|6|1.3.6.1.4.1.99999.1",
        "1.3.6.1.4.1.99999.2.7.5|2|1815",
        "1.3.6.1.4.1.99999.2.8.5|4|lots",
    ],
}


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """snmpsim, with user `alice` of v3."""
    program = shutil.which("snmpsim-command-responder", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("snmpsim is not installed")
    folder = tmp_path_factory.mktemp("snmpsim")
    (folder / "data").mkdir()
    for community, lines in WALKS.items():
        key = sorted(lines, key=lambda line: [int(n) for n in line.split("|")[0].split(".")])
        (folder / "data" / f"{community}.snmprec").write_text("\n".join(key) + "\n")
    port = free_port(socket.SOCK_DGRAM)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                program, "--v3-engine-id=auto", "--v3-user=alice", "--v3-auth-key=authentic",
                "--v3-auth-proto=SHA", "--v3-priv-key=privately", "--v3-priv-proto=AES",
                f"--data-dir={folder}/data", f"--cache-dir={folder}/cache",
                f"--agent-udpv4-endpoint=127.0.0.1:{port}",
                "--process-user=root", "--process-group=root",
            ],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        end = time.monotonic() + 60
        while b"Listening at" not in (folder / "log").read_bytes():
            assert process.poll() is None and time.monotonic() < end, (folder / "log").read_text()
            time.sleep(0.2)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def opened(address: str, community: str, options: str, where: Path) -> Meter:
    file = where / "word"
    file.write_text(community)
    return one_meter(f"snmp:{address},{options},password_file={file}")


@pytest.mark.parametrize(
    ("community", "outlets", "values"),
    [
        ("apc", "1", [123.0, 57 * 360e3]),
        ("apc", "1+2", [123.0, 57 * 360e3, 9 * 360e3]),
        ("raritan", "1", [123.4, 4294967295 * 3600.0]),
        ("sentry", "1", [87.0, 2000 * 3600.0]),
        ("sentry", "1+2.1.1", [100.0]),  # one of them has no counter
        ("eaton", "1", [45.0, 7 * 3600.0]),
    ],
)
def test_outlets_of_four_makers(
    simulator: str, tmp_path: Path, community: str, outlets: str, values: list[float | None]
) -> None:
    meter = opened(simulator, community, f"outlets={outlets}", tmp_path)
    assert meter.read() == pytest.approx(values)
    power, *counters = meter.channels
    assert (power.domain, power.contents) == ("system", WALL)
    # An outlet that is off adds 0 W, which is measured; the user should know.
    assert (power.doubt is not None) == (outlets == "1+2")
    assert not any(counter.in_domain_total for counter in counters)


@pytest.mark.parametrize(
    ("community", "options", "why"),
    [
        ("apc", "outlets=3", "is not off and reports 0 W"),
        ("apc", "outlets=4", "has no reading of its power now"),
        ("apc", "outlets=1+9", "outlet 9 has no power"),
        ("raritan", "outlets=2", "reports no watts .unit 4"),
        ("raritan", "outlets=3", "has no reading of its power now"),
        ("raritan", "outlets=8", "reports no watts"),
        ("other", "outlets=5", "sysObjectID 1.3.6.1.4.1.99999.1 is of none of"),
        ("other", "outlets=5,oid=1.3.6.1.4.1.99999.2.8,unit=W", "has no power"),
        ("wrong", "outlets=1,timeout_s=0.2", "does not answer wrong ones"),
    ],
)
def test_what_is_no_power(
    simulator: str, tmp_path: Path, community: str, options: str, why: str
) -> None:
    with pytest.raises(PowerError, match=why) as caught:
        opened(simulator, community, options, tmp_path)
    assert str(caught.value).count("meter '") == 1


def test_an_off_outlet_alone_is_measured_and_doubtful(simulator: str, tmp_path: Path) -> None:
    meter = opened(simulator, "apc", "outlets=2", tmp_path)
    assert meter.read()[0] == 0.0 and "is off" in str(meter.channels[0].doubt)


def test_another_pdu_by_its_object(simulator: str, tmp_path: Path) -> None:
    options = "outlets=5,oid=1.3.6.1.4.1.99999.2.7,unit=0.1W,accuracy=0.01"
    meter = opened(simulator, "other", options, tmp_path)
    assert meter.read() == pytest.approx([181.5])
    assert meter.channels[0].accuracy_relative == 0.01


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("", "name each outlet"),
        ("outlets=1+1", "name each outlet"),
        ("outlets=x", "name each outlet"),
        ("outlets=1,auth=SHA", "give user="),
        ("outlets=1,user=a,auth=ROT13", "auth is one of"),
        ("outlets=1,user=a,password_file=short", "at least 8 characters"),
        ("outlets=1,oid=1.2.3.4,unit=VA", "apparent power"),
        ("outlets=1,oid=power,unit=W", "give oid= as numbers"),
    ],
)
def test_specs_that_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short").write_text("secret\n")
    with pytest.raises(PowerError, match=why) as caught:
        open_meters([f"snmp:127.0.0.1:1{options and ','}{options}"])
    assert "secret" not in str(caught.value)


def test_version_3(simulator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = f"snmp:{simulator},outlets=1,user=alice,timeout_s=1"
    monkeypatch.setenv("EEIO_METER_PASSWORD", "wrong-key")
    monkeypatch.setenv("EEIO_METER_PRIVACY", "privately")
    with pytest.raises(PowerError, match=r"digest|auth") as caught:
        open_meters([spec])
    assert "wrong-key" not in str(caught.value)
    monkeypatch.setenv("EEIO_METER_PASSWORD", "authentic")
    with pytest.raises(PowerError, match=r"[Uu]ser"):
        open_meters([spec.replace("alice", "bob")])
    monkeypatch.setenv("EEIO_METER_PRIVACY", "wrong-key")
    with pytest.raises(PowerError, match=r"wrong ones|[Dd]ecrypt|privacy="):
        open_meters([spec])


class Scripted:
    """An agent whose answers change."""

    host = "pdu"

    def __init__(self, *answers: dict[str, int]) -> None:
        self.answers = list(answers)

    def get(self, oids: list[str]) -> list[Any]:
        answer = self.answers.pop(0)
        return [answer.get(oid) for oid in oids]


def test_a_counter_that_is_reset_is_stored_and_power_stays() -> None:
    table: Table = TABLES[3]
    power, energy = table.power.format("0.1"), str(table.energy).format("0.1")
    agent: Any = Scripted({power: 50, energy: 9}, {power: 50, energy: 0}, {power: 50})
    meter = SnmpMeter("snmp:x", "snmp", agent, table, ["0.1"], [(1.0, 3600.0)], 3.0)
    assert [meter.read() for _ in range(3)] == [[50.0, 32400.0], [50.0, 0.0], [50.0, None]]


def test_with_snmpd(tmp_path: Path) -> None:
    """Debian's snmpd, which serves a file of ours with `pass`."""
    program = shutil.which("snmpd", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip("snmpd is not installed")
    script = executable(
        tmp_path / "pdu",
        "#!/bin/sh\n"
        'case "$1 $2" in "-g .1.3.6.1.4.1.99999.2.7.5") printf "%s\\ninteger\\n2130\\n" "$2" ;;\n'
        "esac\n",
    )
    port = free_port(socket.SOCK_DGRAM)
    (tmp_path / "snmpd.conf").write_text(
        f"agentaddress udp:127.0.0.1:{port}\nrocommunity rack 127.0.0.1\n"
        f"createUser carol SHA authentic AES privately\nrouser carol priv\n"
        f"pass .1.3.6.1.4.1.99999.2 /bin/sh {script}\n"
    )
    process = subprocess.Popen(
        [program, "-f", "-C", "-c", str(tmp_path / "snmpd.conf"), "-Lf", str(tmp_path / "log"),
         "-p", str(tmp_path / "pid")],
        env={"SNMP_PERSISTENT_DIR": str(tmp_path / "state")},
    )  # fmt: skip
    options = "outlets=5,oid=1.3.6.1.4.1.99999.2.7,unit=0.1W"
    address = f"127.0.0.1:{port}"
    try:
        end = time.monotonic() + 60
        while True:
            try:
                meter = opened(address, "rack", options, tmp_path)
                break
            except PowerError as error:
                assert time.monotonic() < end, error
        assert meter.read() == pytest.approx([213.0])
        meter.close()
        meter = opened(address, "authentic\nprivately", f"{options},user=carol", tmp_path)
        assert meter.read() == pytest.approx([213.0])
        meter.close()
        with pytest.raises(PowerError, match=r"digest|auth="):
            opened(address, "wrong-key\nprivately", f"{options},user=carol", tmp_path)
        with pytest.raises(PowerError, match="wrong ones"):
            opened(address, "other", f"{options},timeout_s=0.2", tmp_path)
        process.terminate()
        process.wait(30)
        with pytest.raises(PowerError):
            opened(address, "rack", f"{options},timeout_s=0.2", tmp_path)
    finally:
        process.kill()
        process.wait(30)
