"""`eeio profile new`: a command of one's own as a profile and a suite."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.plugin import Eeio
from tests.processes import ran
from tests.profiles.test_definitions import SCHEMAS, schema_folder
from tests.simulators import FakeRapl

from eeio.machine.filesystem import WITHOUT_STORAGE, mount_of
from eeio.record.store import load

MIB = 1 << 20
DD = ("--operation", "read", "--prepare", "head -c {size} /dev/zero | tr '\\0' 'x' >in",
      "--figure", ", ([0-9.e-]+) s,", "--unit", "s", "--bytes", "^([0-9]+) bytes",
      "--factor", "size=1m,2m")  # fmt: skip
DD_COMMAND = ("--", "dd", "if=in", "of=/dev/null", "bs=64k")
LOOP = "i=0; while [ $i -lt {count} ]; do echo $i >>out; i=$((i+1)); done; echo it\\'s {count} done"


@pytest.fixture
def own(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(home / "own"))
    return home / "own"


def _made(home: Path, eeio: Eeio, *arguments: str) -> Path:
    eeio("profile", "new", *arguments)
    return home / "own" / f"eeio-{arguments[0]}-1.0.0"


def _report(home: Path, eeio: Eeio, *arguments: str, expected: int = 0) -> list[dict[str, Any]]:
    if mount_of(home).filesystem in WITHOUT_STORAGE:
        pytest.skip("needs a directory on a disk")
    eeio.run(
        str(home / "try"), "--preset", "quick", "--name", "c", "--repetitions", "1", *arguments,
        code=expected,
    )  # fmt: skip
    body = eeio.json("report", "c")
    return [row for row in body["characterization"] if row["tool"]]


def test_a_made_suite_runs_at_once(home: Path, own: Path, eeio: Eeio) -> None:
    _made(home, eeio, "mydd", *DD, "--suite", str(home / "try"), *DD_COMMAND)
    rows = _report(home, eeio, "--meter", "none", "--idle", "0")
    assert [row["bytes"]["median"] for row in rows] == [MIB, 2 * MIB]
    for row in rows:
        assert row["level"] == "application" and row["bandwidth_bytes_per_s"]["median"] > 0
        assert row["efficiency_bytes_per_j"] is None and row["reasons"]["efficiency_bytes_per_j"]
    runs = load(home / "data/eeio/results/c").runs
    (phase,) = runs[0].phases
    # On a busy machine both lines around so short a command may arrive at once.
    sources = ("arrived", "the complete run of the profile's script")
    assert phase.metrics["told_s"] > 0 and any(one in phase.window_source for one in sources)
    shown = eeio("report", "c").stdout
    assert "mydd size=1m" in shown and "mydd size=2m" in shown
    assert not list((home / "target").rglob("in")), "its folder is gone"


def test_without_bytes_there_is_power_and_no_mb_per_joule(
    home: Path, own: Path, eeio: Eeio
) -> None:
    _made(home, eeio, "loop", "--operation", "write", "--factor", "count=10", "--figure",
          "it's ([0-9]+) done", "--unit", "operations/s", "--suite", str(home / "try"),
          "--", "sh", "-c", f"{LOOP}; sleep 1")  # fmt: skip
    with FakeRapl(home / "powercap", power_w=lambda time_s: 20.0):
        (row,) = _report(home, eeio, "--meter", f"rapl,root={home / 'powercap'}", "--idle", "0.5")
    assert row["power_w"]["median"] > 0
    # The line that begins the window arrives late on a busy machine.
    (run,) = load(home / "data/eeio/results/c").runs
    assert run.duration_s >= 1 and row["duration_s"]["median"] > 0.9
    assert row["operations_per_s"]["median"] == 10 and row["n"] == 1
    assert row["efficiency_bytes_per_j"] is None and row["bandwidth_bytes_per_s"] is None
    assert "number of bytes" in row["reasons"]["efficiency_bytes_per_j"]
    assert "MB/s, MB/J: the number of bytes is unknown" in eeio("report", "c").stdout


def test_a_plan_reports_what_is_written_or_that_nobody_knows(
    home: Path, own: Path, eeio: Eeio
) -> None:
    for name, arguments in (("one", ()), ("two", ("--footprint", "64m"))):
        _made(home, eeio, name, *arguments, "--operation", "write", "--suite", str(home / name),
              "--", "true")  # fmt: skip
    planned = {
        name: eeio.plan(str(home / name), "--preset", "quick", "--allow-memory-filesystem").stdout
        for name in ("one", "two")
    }  # fmt: skip
    assert "plus the writes of 1 experiments" in planned["one"]
    assert "plus the writes" not in planned["two"]
    assert "at most 0.27 GB written" in planned["two"], "once before, and in each of three runs"


def test_a_command_that_fails_is_an_invalid_run(home: Path, own: Path, eeio: Eeio) -> None:
    _made(home, eeio, "fails", "--suite", str(home / "try"), "--", "sh", "-c", "exit 7")
    (row,) = _report(home, eeio, "--meter", "none", "--idle", "0", expected=3)
    assert row["n"] == 0 and row["invalid_runs"] == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("a-b", "--", "true"), "a-b"),
        (("../x", "--", "true"), "../x"),
        (("x",), "no command"),
        (("x", "--"), "no command"),
        (("fio", "--", "true"), "eeio-fio-1.0.0"),
        (("figures", "--", "true"), "parser"),
        (("x", "--", "./true"), "full path"),
        (("x", "--", "echo", "a\nb"), "line ends"),
        (("x", "--", "echo", "{n}"), "--factor n=A,B"),
        (("x", "--factor", "n=1", "--", "echo"), "{n}"),
        (("x", "--factor", "n=1,1", "--", "echo", "{n}"), "each once"),
        (("x", "--factor", "n=$(id)", "--", "echo", "{n}"), "$(id)"),
        (("x", "--factor", "n=1", "--factor", "n=2", "--", "echo", "{n}"), "is repeated"),
        (("x", "--factor", "level=1", "--", "echo", "{level}"), "level"),
        (("x", "--factor", "n", "--", "echo", "{n}"), "NAME=A,B"),
        (("x", "--figure", "([0-9]+)", "--", "true"), "--unit"),
        (("x", "--figure", "[0-9]+", "--unit", "s", "--", "true"), "0 groups"),
        (("x", "--figure", "([0-9]+", "--unit", "s", "--", "true"), "is not a regular expression"),
        (("x", "--bytes", "many", "--", "true"), "many"),
        (("x", "--bytes", "^wrote ([0-9]+) MiB", "--", "true"), "MiB follows it"),
        (("x", "--bytes", r"([0-9]+)\s+kB", "--", "true"), "kB follows it"),
        (("x", "--bytes", "{n}", "--factor", "n=a", "--", "echo", "{n}"), "is not a size"),
        (("x", "--footprint", "much", "--", "true"), "--footprint"),
        (("x", "--operation", "erase", "--", "true"), "erase"),
        (("x", "--timeout", "0", "--", "true"), "--timeout"),
        (("x", "--suite", "{home}/target", "--", "true"), "{home}/target"),
    ],
)
def test_rejected(
    home: Path, own: Path, eeio: Eeio, arguments: tuple[str, ...], named: str
) -> None:
    done = eeio(
        "profile", "new", *(argument.replace("{home}", str(home)) for argument in arguments), code=2
    )
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("eeio") and named.replace("{home}", str(home)) in last
    assert not own.exists()


def test_nothing_is_written_over(home: Path, own: Path, eeio: Eeio) -> None:
    folder = _made(home, eeio, "x", "--", "true")
    (folder / "install.sh").write_text("mine")
    assert str(folder) in eeio("profile", "new", "x", "--", "true", code=2).stderr
    assert (folder / "install.sh").read_text() == "mine"


def test_a_folder_is_to_be_named(home: Path, eeio: Eeio) -> None:
    without = {"EEIO_TEST_PROFILES": ""}
    done = eeio("profile", "new", "x", "--", "true", environment=without, code=2)
    assert "--folder" in done.stderr
    done = eeio(
        "profile", "new", "x", "--folder", str(home / "f"), "--", "true", environment=without
    )
    assert "export EEIO_TEST_PROFILES=" in done.stdout


@pytest.fixture
def odd(home: Path, own: Path, eeio: Eeio) -> Path:
    """A command with all that means something to a shell or in XML."""
    odd = """a'b "c" $HOME `id` $(id) <&> \\ * ; {n}{m}"""
    return _made(home, eeio, "odd", "--factor", "n=1,2", "--factor", "m=x",
                 "--prepare", "echo '{n}'", "--figure", "([0-9]+) <&>", "--unit", "MB/s",
                 "--suite", str(home / "try"),
                 "--", "printf", r"%s\n", odd, "")  # fmt: skip


def test_arguments_reach_the_program_as_they_were_typed(home: Path, odd: Path) -> None:
    environment = {"HOME": str(home / "in"), "EEIO_DIRECTORY": str(home / "target"),
                   "PATH": "/usr/bin:/bin"}  # fmt: skip
    (home / "in").mkdir()

    def run(*command: str) -> str:
        done = ran(command, env=environment)
        return done.stdout

    run("bash", str(odd / "install.sh"))
    run("sh", str(odd / "pre.sh"), "n=2")
    message = run(str(home / "in/eeio-odd"), "n=2")
    assert message == """a'b "c" $HOME `id` $(id) <&> \\ * ; 2x\n\n"""
    done = ran([str(home / "in/eeio-odd"), "n=3"], env=environment, code=2)
    assert "n=3: give one of: 1 2" in done.stderr


def test_its_scripts_are_clean_and_short(odd: Path) -> None:
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed")
    scripts = sorted(odd.glob("*.sh"))
    ran(["shellcheck", "-x", *(path.name for path in scripts)], cwd=odd)
    assert all(len(path.read_text().splitlines()) <= 70 for path in scripts)


@pytest.mark.parametrize("name", [name for name in SCHEMAS if name != "downloads.xml"])
def test_its_xml_against_pts_s_schemas(odd: Path, name: str) -> None:
    if not shutil.which("xmllint"):
        pytest.skip("xmllint is not installed")
    ran(["xmllint", "--noout", "--schema", schema_folder() / SCHEMAS[name], odd / name])
