"""eeio-s3 with an object store on another host, and the power of both hosts."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.campaigns import records
from tests.plugin import Eeio
from tests.processes import ran
from tests.profiles.hosts import Hosts, several_hosts

ROOT = Path(__file__).parents[2]
SERVE = """
from tests.profiles.test_s3 import Objects
store = Objects("{address}", 9000)
print("ready", flush=True)
store.serve_forever()
"""
SUITE = """<PhoronixTestSuite>
  <SuiteInformation><Title>made</Title></SuiteInformation>
  <Execute>
    <Test>local/eeio-s3-1.0.0</Test>
    <Arguments>level=application operation=mixed buffer=on request_size=64k processes=2
      objects=600 flush=none</Arguments>
    <Description>one</Description>
  </Execute>
</PhoronixTestSuite>
"""


@contextmanager
def _store(hosts: Hosts, name: str, address: str) -> Iterator[str]:
    program = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-c", SERVE.format(address=address)]
    with subprocess.Popen(
        hosts.on(name, program), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            yield f"http://{address}:9000"
        finally:
            process.kill()


def _suite(folder: Path) -> str:
    folder.mkdir(parents=True)
    (folder / "suite-definition.xml").write_text(SUITE)
    (folder / "protocol.yaml").write_text(
        "presets:\n  quick: {repetitions: 1, settle_s: 0, idle_s: 0, is_measurement: false}\n"
    )
    return str(folder)


@pytest.mark.root
@pytest.mark.tools
def test_the_power_of_client_and_store_is_added(
    home: Path, eeio: Eeio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(ROOT / "test-profiles"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with several_hosts(tmp_path, 2) as hosts:
        server = hosts.names[1]
        meter = [sys.executable, "-m", "eeio", "meter", "node", "--meter", "demo", "-"]
        with _store(hosts, server, hosts.addresses[1]) as endpoint:
            monkeypatch.setenv("EEIO_S3_ENDPOINT", endpoint)
            arguments = [
                sys.executable, "-m", "eeio", "run", _suite(home / "suites/s3"), "--preset",
                "quick", "--directory", str(home / "target"), "--name", "c", "--meter", "demo",
                "--server-power", shlex.join(hosts.on(server, meter)),
            ]  # fmt: skip
            done = ran(hosts.on_first(arguments), code=None)
    campaign = home / "data/eeio/results/c"
    (record,) = records(home)
    assert record["validity"] == [], done.stderr
    assert [phase["name"] for phase in record["phases"]] == ["put", "get", "list", "delete"]
    kept = json.loads((campaign / record["raw"] / "servers/server-1.json").read_text())
    assert kept["node"] == server
    for phase in record["phases"][:2]:
        for reading in phase["energy"]:
            assert (reading["meter"], reading["kind"]) == ("2 nodes: demo", "demo"), reading
            assert any("clocks of the nodes" in reason for reason in reading["reasons"])
    eeio("report", "c")
