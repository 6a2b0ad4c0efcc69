"""The share of a command in the machine's work and energy."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from tests.eeio_results.made import phase, run
from tests.plugin import Eeio

from eeio.analysis.observation import Missing
from eeio.comparison.attribution import attributed_j, drive_share, processor_share
from eeio.record.run import DeviceCounters, Phase, ProcessorSeries, Run

SECONDS = 10


def ran(processor_s: float, use: float = 0.5) -> tuple[Run, Phase]:
    """Ten seconds on four processors."""
    of_run = replace(
        phase(1e6), start_s=0.0, end_s=float(SECONDS),
        metrics={"processor_s": processor_s, "bytes_read": 30.0, "bytes_written": 20.0},
    )  # fmt: skip
    times_s = tuple(float(n) for n in range(1, SECONDS + 1))
    series = ProcessorSeries("test", times_s, (use,) * SECONDS, (None,) * SECONDS)
    return replace(run(0, (of_run,)), processor=series), of_run


def test_the_share_is_processor_time_over_the_busy_time_of_all() -> None:
    of_run, of_phase = ran(15.0)
    # 0.5 x 4 processors x 10 s = 20 s were busy.
    share = processor_share(of_run, of_phase, 4)
    assert share == pytest.approx(0.75)
    assert attributed_j(200.0, share) == pytest.approx(150.0)


def test_what_is_not_known_has_its_reason() -> None:
    of_run, of_phase = ran(15.0)
    without = processor_share(replace(of_run, processor=None), of_phase, 4)
    assert without == Missing("the processors' use was not sampled: short commands share a process")
    assert isinstance(processor_share(of_run, of_phase, None), Missing)
    assert isinstance(processor_share(of_run, replace(of_phase, end_s=1.0), 4), Missing)
    assert isinstance(processor_share(*ran(25.0), 4), Missing), "more than was busy"
    no_energy = Missing("no meter was read")
    assert attributed_j(no_energy, 0.5) is no_energy
    assert attributed_j(100.0, without) is without


def test_the_share_of_the_drives_bytes() -> None:
    of_run, of_phase = ran(1.0)
    before, after = DeviceCounters(100, 200), DeviceCounters(160, 240)
    assert drive_share(
        replace(of_run, device_before=before, device_after=after), of_phase
    ) == pytest.approx(0.5)
    assert isinstance(
        drive_share(replace(of_run, device_before=None, device_reason="no device"), of_phase),
        Missing,
    )


@pytest.mark.slow
def test_another_program_leaves_a_smaller_share(home: object, eeio: Eeio) -> None:
    busy = "i = 0\nwhile True: i += 1"
    other = subprocess.Popen([sys.executable, "-c", busy])
    try:
        command = (
            f"{sys.executable} -c 'import time; t = time.time()\nwhile time.time() < t + 3: 1'"
        )
        said = eeio("bench", "-r", "2", "--meter", "demo", "--format", "json", command)
    finally:
        other.kill()
        other.wait()
    (bench,) = json.loads(said.stdout)["commands"]
    assert bench["processor_share"]["median"] < 0.95
    assert bench["attributed_j"]["median"] < bench["energy_j"]["median"]
