"""`eeio drive states --gap` on a loop device, with an hdparm that keeps a drive's state in files,
and a simulated meter that draws what that drive would."""

import csv
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.executables import executable
from tests.mounts import unmount
from tests.plugin import Eeio
from tests.processes import ran
from tests.simulators.powercap import FakeRapl
from tests.waiting import until

HDPARM = """\
#!/bin/sh
# Speaks as hdparm 9.65 does of a drive whose state is in files, and which a read wakes.
[ "$1" != -q ] || shift
eval node=\\${$#}
read -r reads _ <"/sys/block/${node##*/}/stat"
if [ "$(cat "$STATE")" = standby ] && [ "$reads" != "$(cat "$STATE.reads")" ]; then
    echo active/idle >"$STATE"
fi
case $1 in
-y)
    echo standby >"$STATE"
    echo "$reads" >"$STATE.reads"
    printf '\\n%s:\\n issuing standby command\\n' "$node"
    ;;
-C) printf '\\n%s:\\n drive state is:  %s\\n' "$node" "$(cat "$STATE")" ;;
-B)
    if [ $# = 3 ]; then
        echo "$2" >>"$STATE.levels"
        echo "$2" >"$STATE.apm"
    fi
    printf '\\n%s:\\n APM_level\\t= %s\\n' "$node" "$(cat "$STATE.apm")"
    ;;
esac
"""


@pytest.fixture
def drive(home: Path) -> dict[str, str]:
    executable(home / "bin" / "hdparm", HDPARM)
    (home / "fake").write_text("active/idle\n")
    (home / "fake.apm").write_text("128\n")
    return {"PATH": f"{home}/bin:{os.environ['PATH']}", "STATE": str(home / "fake")}


def _gaps(
    home: Path, eeio: Eeio, node: str, drive: dict[str, str], *arguments: str
) -> tuple[int, dict]:  # type: ignore[type-arg]
    def power_w(_: float) -> float:
        return 4.0 if (home / "fake").read_text() == "standby\n" else 24.0

    with FakeRapl(home / "rapl", power_w=power_w) as rapl:
        done = eeio(
            "drive", "states", "--device", node, "--meter", f"rapl,root={home / 'rapl'}",
            "--format", "json",
            "--gap", "0.2,0.4,0.8", "--repetitions", "2", "--seed", "3", *arguments,
            environment=drive, code=None,
        )  # fmt: skip
    assert done.stdout, done.stderr
    return done.returncode, {**json.loads(done.stdout), "lag_s": rapl.largest_lag_s}


@pytest.mark.root
def test_a_pause_is_measured_with_power_saving_and_without(
    home: Path, eeio: Eeio, loop: str, drive: dict[str, str]
) -> None:
    _, body = _gaps(home, eeio, loop, drive)
    late = [r["invalid"] for r in body["gaps"] if r["invalid"] is not None]
    # On a busy machine the command that sends the drive to standby may outlast the pause.
    # Its late standby may also fall into the work, or be seen only afterwards.
    known = ("entering standby took", "wake the drive", "woke the drive")
    assert all(any(one in reason for one in known) for reason in late), late
    sides = {(r["gap_s"], r["repetition"], r["saving"]) for r in body["gaps"]}
    assert sides == {(g, n, s) for g in (0.2, 0.4, 0.8) for n in (1, 2) for s in (True, False)}
    on_time = [r for r in body["gaps"] if r["invalid"] is None]
    assert all(r["duration_s"] >= r["gap_s"] + r["work_s"] for r in on_time)
    saved = {one["domain"]: one for one in body["break_even"]}
    # A pause has no energy where a busy machine let the meter miss it.
    energies = Counter(
        (found["domain"], r["gap_s"], r["repetition"])
        for r in body["gaps"]
        if r["invalid"] is None
        for found in r["energy"]
        if found["energy_j"] is not None and found["valid"] and not found["doubtful"]
    )
    both = Counter(domain for (domain, *_), sides in energies.items() if sides == 2)
    assert saved and {domain: one["n"] for domain, one in saved.items()} == both
    # psys holds a quarter more than the 20 W by which the drive's two states differ.
    # A counter that is behind adds the power of before, for as long, to a pause of 0.2 s or more.
    late_w = 20 * body["lag_s"] / 0.2
    assert any(one["saved_w"] == pytest.approx(20, abs=max(8.0, late_w)) for one in saved.values())


@pytest.mark.root
def test_pauses_are_written_as_csv(
    home: Path, eeio: Eeio, loop: str, drive: dict[str, str]
) -> None:
    with FakeRapl(home / "rapl", power_w=lambda time_s: 20.0):
        eeio(
            "drive", "states", "--device", loop, "--meter", f"rapl,root={home / 'rapl'}",
            "--gap", "0.2,0.4,0.8", "--repetitions", "1", "-o", str(home / "pauses.csv"),
            environment=drive, code=(0, 3),
        )  # fmt: skip
    rows = list(csv.DictReader((home / "pauses.csv").open()))
    sides = {(row["gap_s"], row["saving"]) for row in rows}
    assert sides == {(gap_s, side) for gap_s in ("0.2", "0.4", "0.8") for side in ("yes", "no")}
    assert all(row["domain"] and row["energy_j"] for row in rows if row["valid"] == "yes")
    assert all(row["reasons"] for row in rows if row["valid"] == "no")


@pytest.mark.slow
@pytest.mark.root
def test_power_management_is_off_without_saving_and_put_back(
    home: Path, eeio: Eeio, loop: str, drive: dict[str, str]
) -> None:
    _gaps(home, eeio, loop, drive)
    assert (home / "fake.apm").read_text() == "128\n"
    assert (home / "fake.levels").read_text().split() == ["254", "128"] * 6


@pytest.mark.slow
@pytest.mark.root
def test_a_drive_without_power_management_is_left_as_it_is(
    home: Path, eeio: Eeio, loop: str, drive: dict[str, str]
) -> None:
    (home / "fake.apm").write_text("not supported\n")
    _, body = _gaps(home, eeio, loop, drive)
    assert {reading["invalid"] for reading in body["gaps"]} == {None}
    assert not (home / "fake.levels").exists()


@pytest.mark.root
def test_a_command_is_the_work(home: Path, eeio: Eeio, loop: str, drive: dict[str, str]) -> None:
    executable(
        home / "bin" / "work",
        '#!/bin/sh\necho work >>"$STATE.works"\n'
        f"exec dd if={loop} of=/dev/null bs=4096 count=1 iflag=direct status=none\n",
    )
    _, body = _gaps(home, eeio, loop, drive, "--", "work")
    # On a busy machine the command that sends the drive to standby may outlast the pause.
    late = {reading["invalid"] for reading in body["gaps"]} - {None}
    # Its late standby may also fall into the work, or be seen only afterwards.
    known = ("entering standby took", "wake the drive", "woke the drive")
    assert all(any(one in reason for one in known) for reason in late), late
    assert len((home / "fake.works").read_text().split()) == 2 * len(body["gaps"])


@pytest.mark.slow
@pytest.mark.root
def test_a_command_may_write_to_a_file_system_of_the_drive(
    home: Path, eeio: Eeio, loop: str, drive: dict[str, str]
) -> None:
    """It is mounted then, and what was written is flushed before the pause."""
    subprocess.run(["mkfs.ext4", "-q", loop], check=True)
    (home / "mounted").mkdir()
    subprocess.run(["mount", loop, str(home / "mounted")], check=True)
    executable(
        home / "bin" / "work",
        f"#!/bin/sh\necho $$ >{home}/mounted/file\n"
        f"exec dd if={loop} of=/dev/null bs=4096 count=1 iflag=direct status=none\n",
    )
    try:
        _, body = _gaps(home, eeio, loop, drive, "--", "work")
    finally:
        unmount(home / "mounted")
    assert {reading["invalid"] for reading in body["gaps"]} == {None}


@pytest.mark.slow
@pytest.mark.root
def test_work_that_wakes_nothing_is_not_counted(
    home: Path, eeio: Eeio, loop: str, drive: dict[str, str]
) -> None:
    code, body = _gaps(home, eeio, loop, drive, "--", "true")
    assert code == 3
    reported = {(r["saving"], r["invalid"]) for r in body["gaps"]}
    assert reported == {
        (False, None),
        (True, "the work did not wake the drive: a cache answered it"),
    }
    assert all("3 valid pairs" in one["reason"] for one in body["break_even"])


@pytest.mark.root
def test_work_that_fails_ends_it_and_the_drive_is_as_it_was(
    home: Path, eeio: Eeio, loop: str, drive: dict[str, str]
) -> None:
    with FakeRapl(home / "rapl"):
        done = eeio(
            "drive", "states", "--device", loop, "--meter", f"rapl,root={home / 'rapl'}", "--gap",
            "0.1",
            "--", "false", environment=drive, code=1,
        )  # fmt: skip
    assert "failed work is not measured" in done.stderr
    assert (home / "fake.apm").read_text() == "128\n"


@pytest.mark.root
@pytest.mark.parametrize("saving", [True, False])
def test_after_sigkill_restore_puts_the_drive_back(
    home: Path, eeio: Eeio, loop: str, drive: dict[str, str], saving: bool
) -> None:
    with FakeRapl(home / "rapl"):
        process = subprocess.Popen(
            [
                sys.executable, "-m", "eeio", "drive", "states", "--device", loop, "--meter",
                f"rapl,root={home / 'rapl'}", "--gap", "60", "--seed", "2" if saving else "1",
            ],
            # A killed process leaves its temporary folder.
            env={**os.environ, **drive, "TMPDIR": str(home)}, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        changed, wanted = home / "fake", "standby\n"
        if not saving:
            changed, wanted = home / "fake.apm", "254\n"
        until(lambda: changed.read_text() == wanted, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert changed.read_text() == wanted
    eeio("doctor", "restore", environment=drive)
    requested = ran(["hdparm", "-C", loop], env={**os.environ, **drive})
    assert "active/idle" in requested.stdout
    assert (home / "fake.apm").read_text() == "128\n"


@pytest.mark.root
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--gap", "0"), "seconds above 0"),
        (("--gap", "5,5"), "a pause is repeated"),
        (("--gap", "nan"), "seconds above 0"),
        (("--gap", "5", "--", "no-such-program"), "no such program"),
        (("--", "true"), "go with --gap"),
        (("--repetitions", "3"), "go with --gap"),
    ],
)
def test_what_cannot_be_measured_is_rejected(
    home: Path,
    eeio: Eeio,
    loop: str,
    drive: dict[str, str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    done = eeio(
        "drive", "states", "--device", loop, "--meter", "none", *arguments, environment=drive,
        code=2,
    )  # fmt: skip
    assert message in done.stderr, done.stderr
