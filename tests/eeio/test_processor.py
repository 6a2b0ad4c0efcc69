"""CPU use and frequency during a run, on a made-up tree and on this machine."""

import time
from pathlib import Path

from eeio.measure.campaign.probes import ProcessorSampler


def _tree(root: Path, *, clocks: bool = True) -> Path:
    (root / "proc").mkdir()
    _stat(root, 100, 100)
    for cpu, khz in enumerate((1_000_000, 3_000_000)):
        folder = root / f"sys/devices/system/cpu/cpu{cpu}/cpufreq"
        folder.mkdir(parents=True)
        if clocks:
            (folder / "scaling_cur_freq").write_text(f"{khz}\n")
    return root


def _stat(root: Path, busy: int, idle: int) -> None:
    # user nice system idle iowait irq softirq steal guest guest_nice
    (root / "proc/stat").write_text(f"cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 2 3\n")


def test_use_is_the_busy_share_between_samples(tmp_path: Path) -> None:
    _tree(tmp_path)
    with ProcessorSampler(tmp_path, period_s=60) as sampler:
        _stat(tmp_path, 130, 170)
    series = sampler.series()
    assert series.use == (0.3,)
    assert series.frequency_hz == (2e9,)
    assert len(series.times_s) == 1
    assert series.missing == {}


def test_waiting_for_a_drive_is_no_use(tmp_path: Path) -> None:
    _tree(tmp_path)
    with ProcessorSampler(tmp_path, period_s=60) as sampler:
        (tmp_path / "proc/stat").write_text("cpu  110 0 0 100 90 0 0 0 0 0\n")
    assert sampler.series().use == (0.1,)


def test_what_a_machine_does_not_show_is_missing_with_its_reason(tmp_path: Path) -> None:
    _tree(tmp_path, clocks=False)
    (tmp_path / "proc/stat").unlink()
    with ProcessorSampler(tmp_path, period_s=60) as sampler:
        pass
    series = sampler.series()
    assert (series.use, series.frequency_hz) == ((None,), (None,))
    assert "no cpufreq" in series.missing["frequency_hz"]
    assert "contains no times" in series.missing["use"]


def test_a_damaged_tree_is_no_failure(tmp_path: Path) -> None:
    _tree(tmp_path)
    (tmp_path / "proc/stat").write_text("cpu nonsense\n")
    (tmp_path / "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq").write_text("<unknown>\n")
    with ProcessorSampler(tmp_path, period_s=60) as sampler:
        pass
    assert sampler.series().frequency_hz == (1e9,)
    assert sampler.series().use == (None,)


def test_this_machine() -> None:
    end_s = time.monotonic() + 0.2
    with ProcessorSampler(period_s=0.05) as sampler:
        while time.monotonic() < end_s:
            sum(range(1000))
    series = sampler.series()
    assert len(series.times_s) >= 3
    assert list(series.times_s) == sorted(series.times_s)
    assert all(use is None or 0 <= use <= 1 for use in series.use)
    assert any(use for use in series.use)
