"""`eeio trace` on real programs, and on what cannot be traced."""

import json
import shutil
from pathlib import Path

import pytest
from tests.conftest import Eeio

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


@needs_strace
def test_two_phases_of_dd(home: Path, eeio: Eeio) -> None:
    script = (
        f"dd if=/dev/zero of={home}/f bs=64k count=20 2>/dev/null; "
        f"dd if={home}/f of=/dev/null bs=128k 2>/dev/null"
    )
    done = eeio(
        "trace", "--meter", "none", "-o", str(home / "out"), "--json", "--replay",
        str(home / "replay.csv"), "--", "sh", "-c", script,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    body = json.loads(done.stdout)
    write, read = body["phases"]
    assert (write["operation"], write["requests"], write["bytes_written"]) == (
        "write",
        20,
        20 << 16,
    )
    assert (read["operation"], read["requests"], read["request_size_bytes"]) == (
        "read",
        10,
        1 << 17,
    )
    assert write["spatiality"] == read["spatiality"] == "sequential"
    assert write["end_s"] <= read["start_s"]
    assert json.loads((home / "out" / "phases.json").read_text()) == body
    assert (home / "out" / "timeline.svg").read_text().startswith("<svg")
    lines = (home / "replay.csv").read_text().splitlines()
    assert len(lines) == 31
    again = eeio("trace", "--json", "--read", str(home / "replay.csv"))
    phases = json.loads(again.stdout)["phases"]
    assert [p["bytes_moved"] for p in phases] == [20 << 16, 20 << 16]


@needs_strace
def test_the_programs_failure_is_handed_on(home: Path, eeio: Eeio) -> None:
    done = eeio("trace", "--meter", "none", "-o", str(home / "o"), "--", "false")
    assert done.returncode == 1
    assert "no read and no write of a file was seen" in done.stdout


@needs_strace
def test_strace_files_are_read_again(home: Path, eeio: Eeio) -> None:
    eeio(
        "trace", "--meter", "none", "-o", str(home / "o"), "--",
        "dd", "if=/dev/zero", f"of={home}/f", "bs=4k", "count=9",
    )  # fmt: skip
    files = [str(path) for path in (home / "o").glob("strace.*")]
    done = eeio("trace", "--json", "--read", *files)
    assert [p["requests"] for p in json.loads(done.stdout)["phases"]] == [9]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "which program"),
        (("--read", "/nowhere"), "No such file"),
        (("--read", "x", "--", "true"), "which program"),
        (("--", "no-such-program-here"), "no such program"),
        (("--meter", "nonsense", "--", "true"), "nonsense"),
    ],
)
def test_refused(home: Path, eeio: Eeio, words: tuple[str, ...], said: str) -> None:
    done = eeio("trace", *words)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_without_strace_it_says_what_to_install(home: Path, eeio: Eeio) -> None:
    (home / "bin").mkdir()
    for name in ("true", "env"):
        (home / "bin" / name).symlink_to(shutil.which(name) or "")
    done = eeio("trace", "--", "true", environment={"PATH": str(home / "bin")})
    assert done.returncode == 2
    assert "install the package strace" in done.stderr
