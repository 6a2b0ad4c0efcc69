"""Context switches, instructions and cycles of `eeio bench`.

Virtual machines often have no counters of the processor. The kernel's own events are opened and
read in the same way: page faults stand for instructions and cycles here.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.plugin import Eeio

from eeio.comparison.commands import benches
from eeio.record.store import load

LOOP = Path(__file__).parents[2] / "src/eeio/measure/bench/eeio-command-1.0.0/loop.py"
SOFTWARE_PAGE_FAULTS = {
    "HARDWARE = 0\n": "HARDWARE = 1\n",
    'COUNTERS = (("instructions", 1), ("cycles", 0))\n': (
        'COUNTERS = (("instructions", 2), ("cycles", 2))\n'
    ),
}


def looped(folder: Path, command: list[str], count: int, changes: dict[str, str]) -> dict[str, Any]:
    """command.json of a loop with these changes in its text."""
    text = LOOP.read_text(encoding="utf-8")
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    script = folder / "loop.py"
    script.write_text(text, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-I", "-S", str(script), f"output={folder}", f"directory={folder}",
         f"command={json.dumps(command)}", f"count={count}"],
        check=True, timeout=300,
    )  # fmt: skip
    body: dict[str, Any] = json.loads((folder / "command.json").read_text())
    return body


def test_counts_are_of_the_command_and_of_all_its_processes(tmp_path: Path) -> None:
    child = "import os; os.fork() or os._exit(len(bytearray(64 << 20)) & 0); os.wait()"
    body = looped(tmp_path, [sys.executable, "-I", "-S", "-c", child], 3, SOFTWARE_PAGE_FAULTS)
    if "reason" in body["counters"]:
        pytest.skip(body["counters"]["reason"])
    (key, other) = body["counters"]
    assert {key.removeprefix("user_"), other.removeprefix("user_")} == {"instructions", "cycles"}
    alone = [sys.executable, "-I", "-S", "-c", "pass"]
    without_child = looped(tmp_path, alone, 3, SOFTWARE_PAGE_FAULTS)["counters"][key]
    # The child has at least the pages that it shares with its parent, until it writes them.
    assert 0 < without_child < body["counters"][key]


def test_the_loop_itself_is_not_counted(tmp_path: Path) -> None:
    """What one execution counts does not depend on the work of who starts it."""
    one = looped(tmp_path, ["true"], 1, SOFTWARE_PAGE_FAULTS)["counters"]
    many = looped(tmp_path, ["true"], 50, SOFTWARE_PAGE_FAULTS)["counters"]
    if "reason" in one:
        pytest.skip(one["reason"])
    for name, count in one.items():
        assert many[name] / 50 == pytest.approx(count, rel=0.2, abs=5)


def test_without_counters_the_reason_is_the_kernels(tmp_path: Path) -> None:
    no_such_event = {'("instructions", 1)': '("instructions", 0x7FFFFFFF)'}
    counters = looped(tmp_path, ["true"], 1, no_such_event)["counters"]
    assert counters["reason"].startswith("perf_event_open: ")


def test_an_architecture_without_a_number_is_named(tmp_path: Path) -> None:
    none = {f'    "{os.uname().machine}": ': '    "another": '}
    assert looped(tmp_path, ["true"], 1, none)["counters"] == {
        "reason": f"not known on {os.uname().machine}"
    }


def test_a_command_inherits_no_counter(tmp_path: Path) -> None:
    listing = f"readlink /proc/self/fd/* >{tmp_path}/fds; true"
    looped(tmp_path, ["sh", "-c", listing], 1, SOFTWARE_PAGE_FAULTS)
    assert "perf" not in (tmp_path / "fds").read_text()


def test_context_switches_are_in_the_answer(home: Path, eeio: Eeio) -> None:
    command = "sleep 0.01; sleep 0.01; sleep 0.01"
    said = eeio("bench", "-r", "3", "--meter", "none", "--format", "json", "--name", "c", command)
    (bench,) = json.loads(said.stdout)["commands"]
    assert bench["context_switches"]["median"] >= 3
    for name in ("instructions", "cycles"):
        assert (bench[name] is None) is (name in bench["reasons"])
    (stored,) = benches(load(home / "data/eeio/results/c"))
    assert stored.quartiles("context_switches") is not None
