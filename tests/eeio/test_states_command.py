"""`eeio drive states` on a loop device, with an hdparm that keeps a drive's state in a file."""

import csv
import json
import os
import tempfile
from pathlib import Path

import pytest
from tests.executables import executable
from tests.plugin import Eeio
from tests.simulators.powercap import FakeRapl

HDPARM = """\
#!/bin/sh
# Speaks as hdparm 9.65 does of a drive whose state is in a file, and which a read wakes.
read -r reads _ <"/sys/block/${2##*/}/stat"
case $1 in
-y)
    [ -f "$STATE.stuck" ] || echo standby >"$STATE"
    echo "$reads" >"$STATE.reads"
    printf '\\n%s:\\n issuing standby command\\n' "$2"
    ;;
-C)
    [ ! -f "$STATE.reads" ] || [ -f "$STATE.cached" ] || [ "$reads" = "$(cat "$STATE.reads")" ] ||
        echo active/idle >"$STATE"
    printf '\\n%s:\\n drive state is:  %s\\n' "$2" "$(cat "$STATE")"
    ;;
esac
"""


@pytest.fixture
def drive(home: Path) -> dict[str, str]:
    executable(home / "bin" / "hdparm", HDPARM)
    (home / "state").write_text("active/idle\n")
    return {"PATH": f"{home}/bin:{os.environ['PATH']}", "STATE": str(home / "state")}


def _states(home: Path, eeio: Eeio, node: str, drive: dict[str, str]) -> tuple[int, dict]:  # type: ignore[type-arg]
    """Other programs of the machine (udev, blkid, mount) read each new loop device now and then,
    and so wake this drive too: then it is measured again."""
    state = home / "state"
    before = state.read_text()
    for _ in range(10):
        state.write_text(before)
        Path(f"{state}.reads").unlink(missing_ok=True)
        Path(f"{state}.asked").unlink(missing_ok=True)
        code, body = _measured(home, eeio, node, drive)
        by_name = {entry["state"]: entry["invalid"] or "" for entry in body["states"]}
        if "at the end of standby" not in by_name["standby"]:
            break
    return code, body


def _measured(home: Path, eeio: Eeio, node: str, drive: dict[str, str]) -> tuple[int, dict]:  # type: ignore[type-arg]
    rapl = Path(tempfile.mkdtemp(dir=home)) / "rapl"
    with FakeRapl(rapl, power_w=lambda time_s: 20.0):
        done = eeio(
            "drive", "states", "--device", node, "--meter", f"rapl,root={rapl}",
            "--format", "json",
            "--seconds", "0.5", "--settle", "0", environment=drive, code=None,
        )  # fmt: skip
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.root
def test_every_state_has_its_power(
    home: Path, eeio: Eeio, loop: str, drive: dict[str, str]
) -> None:
    code, body = _states(home, eeio, loop, drive)
    found = {state["state"]: state for state in body["states"]}
    assert list(found) == ["active", "idle", "standby", "spin-up"]
    for name in ("active", "idle", "standby"):
        assert found[name]["invalid"] is None
        assert found[name]["duration_s"] == pytest.approx(0.5, abs=0.3)
        assert {e["domain"] for e in found[name]["energy"]} == {"package", "dram"}
        # On a busy machine the simulated counters are late, both by the same time.
        assert all(e["power_w"] is not None or e["reasons"] for e in found[name]["energy"])
        power_w = {e["domain"]: e["power_w"] for e in found[name]["energy"] if e["power_w"]}
        if len(power_w) == 2:
            assert power_w["package"] == pytest.approx(4 * power_w["dram"], rel=0.3)
    assert code in (0, 3)  # a spin-up of microseconds may be too short for a reading


@pytest.mark.root
def test_states_are_written_for_papers_and_scripts(
    home: Path, eeio: Eeio, loop: str, drive: dict[str, str]
) -> None:
    for name in ("states.csv", "states.tex"):
        rapl = home / f"rapl-{name}"
        with FakeRapl(rapl, power_w=lambda time_s: 20.0):
            eeio(
                "drive", "states", "--device", loop, "--meter", f"rapl,root={rapl}",
                "--seconds", "0.3", "--settle", "0", "-o", str(home / name),
                environment=drive, code=(0, 3),
            )  # fmt: skip
    rows = list(csv.DictReader((home / "states.csv").open()))
    assert {row["state"] for row in rows} == {"active", "idle", "standby", "spin-up"}
    assert {row["device"] for row in rows} == {loop}
    assert all(row["domain"] and row["power_w"] for row in rows if row["valid"] == "yes")
    assert all(row["reasons"] for row in rows if row["valid"] == "no")
    assert r"\begin{tabular}" in (home / "states.tex").read_text()


@pytest.mark.root
def test_a_drive_that_does_not_stand_by_is_reported(
    home: Path, eeio: Eeio, loop: str, drive: dict[str, str]
) -> None:
    (home / "state.stuck").touch()
    code, body = _states(home, eeio, loop, drive)
    assert code == 3
    assert "a program uses it" in body["states"][2]["invalid"]
    assert body["states"][0]["invalid"] is None


@pytest.mark.root
def test_a_read_that_wakes_nothing_is_no_spin_up(
    home: Path, eeio: Eeio, loop: str, drive: dict[str, str]
) -> None:
    """A drive may answer from its own cache and stand by all the same."""
    (home / "state.cached").touch()
    code, body = _states(home, eeio, loop, drive)
    assert code == 3
    by_name = {state["state"]: state for state in body["states"]}
    assert by_name["spin-up"]["invalid"] == "the drive was standby at the end of spin-up"
    assert by_name["standby"]["invalid"] is None


@pytest.mark.root
@pytest.mark.parametrize(
    "arguments", [("--seconds", "nan"), ("--seconds", "inf"), ("--settle", "nan")]
)
def test_times_that_are_none_are_rejected(
    home: Path, eeio: Eeio, loop: str, drive: dict[str, str], arguments: tuple[str, str]
) -> None:
    done = eeio(
        "drive", "states", "--device", loop, "--meter", "none", *arguments, environment=drive,
        code=2,
    )  # fmt: skip
    assert "--seconds is above 0" in done.stderr, done.stderr


@pytest.mark.root
def test_a_drive_without_states_is_rejected(
    home: Path, eeio: Eeio, loop: str, drive: dict[str, str]
) -> None:
    (home / "state").write_text("unknown\n")
    done = eeio("drive", "states", "--device", loop, environment=drive, code=2)
    assert "reports no power state" in done.stderr


@pytest.mark.root
def test_a_drive_behind_a_bridge_without_answers_is_rejected(
    home: Path, eeio: Eeio, loop: str, drive: dict[str, str]
) -> None:
    """What hdparm prints of a Western Digital behind its USB bridge (patch 53 of hdparm's tracker);
    the state it prints then is 0, standby, whatever the drive does. It ends with 0."""
    (home / "state").write_text("standby\n")
    (home / "bin/hdparm").write_text(
        "#!/bin/sh\n"
        "echo 'SG_IO: bad/missing sense data, sb[]:  f0 00 01 00 50 40 ff 0a 80' >&2\n"
        "printf '\\n%s:\\n drive state is:  standby\\n' \"$2\"\n"
    )
    done = eeio("drive", "states", "--device", loop, environment=drive, code=2)
    assert "drive's answer is blocked" in done.stderr


@pytest.mark.root
@pytest.mark.parametrize("state", ["idle", "idle_a", "idle_b", "idle_c"])
def test_an_idle_state_has_its_own_row(
    home: Path, eeio: Eeio, loop: str, drive: dict[str, str], state: str
) -> None:
    """Of drives with extended power conditions (ATA ACS-3: 0x80 to 0x83)."""
    (home / "state").write_text(f"{state}\n")
    _, body = _states(home, eeio, loop, drive)
    found = {entry["state"]: entry["invalid"] for entry in body["states"]}
    assert list(found) == ["active", state, "standby", "spin-up"]
    assert (found[state], found["spin-up"]) == (None, None)


@pytest.mark.root
def test_an_idle_state_that_changed_meanwhile_is_none(
    home: Path, eeio: Eeio, loop: str, drive: dict[str, str]
) -> None:
    (home / "state").write_text("idle_a\n")
    script = (home / "bin/hdparm").read_text()
    # The first question is whether it tells a state, the second begins the row, the third ends it.
    script = script.replace(
        "-C)",
        '-C)\n    echo >>"$STATE.asked"\n'
        '    [ "$(wc -l <"$STATE.asked")" -ne 3 ] || echo idle_b >"$STATE"',
    )
    (home / "bin/hdparm").write_text(script)
    code, body = _states(home, eeio, loop, drive)
    assert code == 3
    idle = body["states"][1]
    assert idle["state"] == "idle"
    assert "from idle_a to idle_b" in idle["invalid"]


def test_what_is_no_device_is_rejected(home: Path, eeio: Eeio) -> None:
    eeio("drive", "states", "--device", str(home / "state"), code=2)
