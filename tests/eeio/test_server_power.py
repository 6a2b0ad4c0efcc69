"""The power of servers behind the files, and the hook that empties their caches."""

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.campaigns import records
from tests.dummy import suite as _suite
from tests.plugin import Eeio
from tests.processes import Code
from tests.simulators.powercap import FakeRapl

EXPERIMENT = "level=filesystem operation=read spatiality=sequential sleep_s=0.6"
SAME_HOST = "more than one recording; give one a node"


@contextmanager
def _machines(home: Path) -> Iterator[list[str]]:
    """This machine takes 100 W, a server 60 W; the words that name this machine's meter."""
    with (
        FakeRapl(home / "here", power_w=lambda _: 100.0),
        FakeRapl(home / "there", power_w=lambda _: 60.0),
    ):
        yield ["--meter", f"rapl,root={home / 'here'}", "--idle", "0"]


def _on_server(home: Path, name: str = "nas") -> str:
    """What ssh is to a real one: a host name of its own, and the meter that is there."""
    arguments = [sys.executable, "-m", "eeio", "meter", "node", "--meter",
             f"rapl,root={home / 'there'}", "-"]  # fmt: skip
    line = f"hostname {name}; exec {shlex.join(arguments)}"
    return shlex.join(["unshare", "--uts", "sh", "-c", line])


def _run(home: Path, eeio: Eeio, *arguments: str, code: Code = (0, 3)) -> str:
    done = eeio.run(
        _suite(home, EXPERIMENT), "--name", "c", "--repetitions", "1", *arguments, code=code,
    )  # fmt: skip
    return done.stderr


@pytest.mark.root
@pytest.mark.parametrize("servers", [1, 2])
def test_the_power_of_servers_counts_with_this_machines(
    home: Path, eeio: Eeio, servers: int
) -> None:
    with _machines(home) as arguments:
        for number in range(servers):
            arguments += ["--server-power", _on_server(home, f"nas{number}")]
        message = _run(home, eeio, *arguments)
    (record,) = records(home)
    assert record["validity"] == [], message
    (phase,) = record["phases"]
    readings = {reading["domain"]: reading for reading in phase["energy"]}
    for domain, share in (("package", 0.8), ("dram", 0.2)):
        reading = readings[domain]
        assert (reading["meter"], reading["kind"]) == (f"{1 + servers} nodes: rapl", "measured")
        if not reading["valid"]:  # of a machine that was too busy to read its meters
            assert any("gap" in reason or "late" in reason for reason in reading["reasons"])
            continue
        watts = share * (100.0 + servers * 60.0)
        assert reading["power_w"] == pytest.approx(watts, rel=0.2)
        assert any("clocks of the nodes" in reason for reason in reading["reasons"])
    idle = json.loads((home / "data/eeio/results/c/idle.json").read_text())
    assert "power of the servers" in json.dumps(idle)
    # Kept beside the run, so that it can be summed again.
    kept = home / "data/eeio/results/c" / record["raw"] / "servers"
    assert sorted(path.name for path in kept.glob("*.json")) == [
        f"server-{number}.json" for number in range(1, servers + 1)
    ]
    eeio("report", "c")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("exit 3", "it did not record and printed no message"),
        ("echo no route to host >&2; exit 255", "no route to host"),
        (
            "echo recording; while read -r line; do :; done; echo nonsense",
            "not output of `eeio meter",
        ),
        ("echo recording; exit 0", "it did not record"),
        # More messages than a pipe takes: it waited until somebody would read them.
        (
            "head -c 200000 /dev/zero >&2; echo recording; while read -r line; do :; done; "
            "head -c 200000 /dev/zero >&2; echo nonsense",
            "not output of `eeio meter",
        ),
    ],
)
def test_a_server_that_does_not_record_fails_the_run(
    home: Path, eeio: Eeio, command: str, message: str
) -> None:
    with _machines(home) as meters:
        _run(home, eeio, *meters, "--server-power", command, code=3)
    (record,) = records(home)
    (reason,) = record["validity"]
    assert message in reason and command in reason


def test_a_machine_is_not_counted_twice(home: Path, eeio: Eeio) -> None:
    """The command that was to reach a server ran here."""
    command = f"{shlex.quote(sys.executable)} -m eeio meter node --meter rapl,root={home}/there -"
    with _machines(home) as meters:
        _run(home, eeio, *meters, "--server-power", command)
    (record,) = records(home)
    for reading in record["phases"][0]["energy"]:
        assert not reading["valid"] and reading["energy_j"] is None
        assert any(SAME_HOST in reason for reason in reading["reasons"])


def test_a_hook_empties_the_caches_of_servers(home: Path, eeio: Eeio) -> None:
    hook = f"echo dropped >>{home}/hook"
    _run(home, eeio, "--meter", "none", "--drop-caches-by", hook)
    (record,) = records(home)
    assert (home / "hook").read_text() == "dropped\n"
    assert f"and by `{hook}`" in record["cache_dropped"]


def test_a_hook_that_fails_fails_the_run(home: Path, eeio: Eeio) -> None:
    hook = "echo nas: unreachable >&2; exit 1"
    _run(home, eeio, "--meter", "none", "--drop-caches-by", hook, code=3)
    (record,) = records(home)
    (reason,) = record["validity"]
    assert "nas: unreachable" in reason
