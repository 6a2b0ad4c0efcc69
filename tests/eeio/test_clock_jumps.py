"""A wall clock that is set while a campaign runs: no figure may follow it."""

import os
import random
import shutil
import sys
import threading
from pathlib import Path

import pytest
from tests.campaigns import records
from tests.clock import Clock
from tests.processes import ran
from tests.simulators import FakeRapl

POWER_W = 100.0
RUNS = 6

SUITE = """<?xml version="1.0"?>
<PhoronixTestSuite>
  <SuiteInformation><Title>Jumps</Title></SuiteInformation>
  <Execute>
    <Test>local/eeio-fio-1.0.0</Test>
    <Arguments>level=filesystem operation=read spatiality=sequential request_size=4k buffer=off
      file_size=128m runtime_s=1</Arguments>
    <Description>fio</Description>
  </Execute>
</PhoronixTestSuite>
"""
PROTOCOL = "presets:\n  quick: {repetitions: 6, settle_s: 0, idle_s: 0, is_measurement: false}\n"


def test_no_figure_follows_a_clock_that_is_set(home: Path) -> None:
    if shutil.which("fio") is None or shutil.which("cc") is None:
        pytest.skip("fio or a C compiler is not installed")
    clock = Clock(home)
    suite = home / "jumps"
    suite.mkdir()
    (suite / "suite-definition.xml").write_text(SUITE)
    (suite / "protocol.yaml").write_text(PROTOCOL)
    jumps, over = random.Random(3), threading.Event()

    def set_clock() -> None:
        while not over.wait(jumps.uniform(0.05, 0.3)):
            clock.set(jumps.choice([0, 2, -2, 3600, -86400, 946_080_000]))

    setter = threading.Thread(target=set_clock)
    setter.start()
    try:
        with FakeRapl(home / "powercap", power_w=lambda _: POWER_W) as rapl:
            done = ran(
                [sys.executable, "-m", "eeio", "run", str(suite), "--preset", "quick", "--name",
                 "jumps", "--directory", str(home / "target"), "--allow-memory-filesystem",
                 "--meter", f"rapl,root={rapl.root}"],
                env={**os.environ, **clock.environment}, code=None,
            )  # fmt: skip
    finally:
        over.set()
        setter.join()
    assert done.returncode in (0, 3), done.stderr
    runs = records(home, "jumps")
    assert [run["order_index"] for run in runs] == list(range(RUNS))
    begun_s = [run["started_monotonic_s"] for run in runs]
    assert begun_s == sorted(begun_s)
    for run in runs:
        assert run["exit_code"] == 0, run["validity"]
        assert 0.0 < run["duration_s"] < 60.0
        (phase,) = run["phases"]
        assert 0.0 <= phase["start_s"] < phase["end_s"] <= run["duration_s"]
        watts = [reading["power_w"] for reading in phase["energy"]]
        assert None not in watts, phase["energy"]
        # A window that lay elsewhere would find no sample, or those of another run. The simulated
        # counters and their reader each wait for a processor.
        late_s = rapl.largest_lag_s + 2 * max(
            reading["largest_gap_s"] for reading in phase["energy"]
        )
        share = max(0.1, 0.03 + late_s / (phase["end_s"] - phase["start_s"]))
        assert sum(watts) == pytest.approx(POWER_W, rel=share), phase["window_source"]
