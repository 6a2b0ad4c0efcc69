"""Limits of control groups, stolen time and throttling, on trees of both versions."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.mounts import attached, sparse
from tests.simulators.tree import write_tree

from eeio.campaign.probes import MachineLimits
from eeio.system import limits
from eeio.system.filesystem import BlockDevice, block_device
from eeio_results.record import CacheLayers, Durable, Experiment, Phase, Run

V2 = "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
V1 = (
    "31 24 0:27 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n"
    "32 24 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "33 24 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)
STAT = "cpu  100 0 100 1000 0 0 0 {steal} 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n"


def version_2(root: Path) -> None:
    top = "sys/fs/cgroup"
    write_tree(root, {
        "proc/self/mountinfo": V2, "proc/self/cgroup": "0::/user.slice/x.scope\n",
        "proc/stat": STAT.format(steal=0),
        f"{top}/cgroup.procs": "",
        f"{top}/user.slice/io.max": "8:0 rbps=max wbps=20000000 riops=max wiops=max\n",
        f"{top}/user.slice/x.scope/io.max": "8:16 rbps=1000 wbps=max riops=max wiops=max\n",
        f"{top}/user.slice/x.scope/io.weight": "default 100\n",
        f"{top}/user.slice/x.scope/cpu.max": "150000 100000\n",
        f"{top}/user.slice/x.scope/cpu.stat": "usage_usec 5\nthrottled_usec 1000000\n",
        f"{top}/user.slice/x.scope/memory.max": "max\n",
        f"{top}/user.slice/x.scope/memory.high": "1073741824\n",
        f"{top}/user.slice/x.scope/memory.events": "low 0\nhigh 7\nmax 0\n",
        "sys/class/block/sda/dev": "8:0",
    })  # fmt: skip


def version_1(root: Path) -> None:
    top = "sys/fs/cgroup"
    write_tree(root, {
        "proc/self/mountinfo": V1,
        "proc/self/cgroup": "4:memory:/\n3:cpu,cpuacct:/job\n2:blkio:/job\n0::/\n",
        "proc/stat": STAT.format(steal=0),
        f"{top}/blkio/job/blkio.throttle.write_bps_device": "8:0 20000000\n",
        f"{top}/blkio/job/blkio.throttle.read_iops_device": "",
        f"{top}/blkio/blkio.throttle.write_bps_device": "8:0 21000000\n",  # not inherited
        f"{top}/cpu,cpuacct/job/cpu.cfs_quota_us": "150000\n",
        f"{top}/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
        f"{top}/cpu,cpuacct/job/cpu.stat": "nr_periods 9\nthrottled_time 1000000000\n",
        f"{top}/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
        f"{top}/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/class/block/sda/dev": "8:0",
    })  # fmt: skip


def a_run(rate_bytes_per_s: float, durable_bytes_per_s: float | None = None) -> Run:
    durable = durable_bytes_per_s and Durable(2.0, durable_bytes_per_s, "test")
    phase = Phase(
        "write", "write", "sequential", 4096, 1, rate_bytes_per_s, 0.0, 1.0, "test",
        until_durable=durable or None,
    )  # fmt: skip
    experiment = Experiment("device", "fio", "write", "sequential", 4096, CacheLayers("off"))
    return Run(experiment, 1, 0, "quick", "", 0.0, 2.0, 0, (phase,), "raw")


def observed(root: Path, run: Run, meanwhile: dict[str, str] | None = None) -> Run:
    probe = MachineLimits(BlockDevice("sda", 8, 0, root=root), root)
    probe.start()
    write_tree(root, meanwhile or {})
    probe.stop(1.0)
    return probe.add_to(run)


@pytest.mark.parametrize("rate", [18.5e6, 20e6, 21.5e6])
def test_a_rate_at_the_limit_of_a_parent_names_it(tmp_path: Path, rate: float) -> None:
    """A limit of 20 MB/s was reported as the drive's speed."""
    version_2(tmp_path)
    run = observed(tmp_path, a_run(rate))
    assert run.remarks == {"limit": "at the cgroup's limit of 20 MB/s (io.max of /user.slice)"}
    # A write goes into the page cache faster than the group may write it to the device.
    assert "limit" in observed(tmp_path, a_run(900e6, rate)).remarks


def test_other_rates_and_other_drives_reach_no_limit(tmp_path: Path) -> None:
    version_2(tmp_path)
    for rate in (1000.0, 10e6, 22.5e6):
        assert observed(tmp_path, a_run(rate)).remarks == {}


def test_a_limit_of_version_1(tmp_path: Path) -> None:
    version_1(tmp_path)
    cpu = "sys/fs/cgroup/cpu,cpuacct/job/cpu.stat"
    run = observed(tmp_path, a_run(20e6), {cpu: "nr_periods 9\nthrottled_time 1500000000\n"})
    assert run.remarks == {
        "limit": "at the cgroup's limit of 20 MB/s (blkio.throttle.write_bps_device of /job); "
        "waited 0.5 s at the cgroup's limit of 1.5 processors (cpu.cfs_quota_us of /job)"
    }
    assert set(limits.known_limits(tmp_path)) == {
        "blkio.throttle.write_bps_device of /job", "cpu.cfs_quota_us of /job",
    }  # fmt: skip


def test_limits_of_processors_and_memory_are_named_if_they_were_reached(tmp_path: Path) -> None:
    version_2(tmp_path)
    group = "sys/fs/cgroup/user.slice/x.scope"
    run = observed(tmp_path, a_run(1e6), {
        f"{group}/cpu.stat": "throttled_usec 1300000\n", f"{group}/memory.events": "high 9\n",
    })  # fmt: skip
    assert run.remarks == {
        "limit": "waited 0.3 s at the cgroup's limit of 1.5 processors "
        "(cpu.max of /user.slice/x.scope); at the cgroup's limit of 1074 MB of memory "
        "(memory.high of /user.slice/x.scope)"
    }
    assert limits.known_limits(tmp_path) == {
        "io.max of /user.slice": "8:0 rbps=max wbps=20000000 riops=max wiops=max",
        "io.max of /user.slice/x.scope": "8:16 rbps=1000 wbps=max riops=max wiops=max",
        "cpu.max of /user.slice/x.scope": "150000 100000",
        "memory.high of /user.slice/x.scope": "1073741824",
    }


def test_a_container_sees_its_group_at_the_top(tmp_path: Path) -> None:
    version_2(tmp_path)
    write_tree(tmp_path, {
        "proc/self/cgroup": "0::/docker/abc\n", "sys/fs/cgroup/cpu.max": "100000 100000\n",
    })  # fmt: skip
    assert limits.known_limits(tmp_path) == {"cpu.max of /": "100000 100000"}


def test_stolen_time_is_recorded_and_named(tmp_path: Path) -> None:
    version_2(tmp_path)
    run = observed(tmp_path, a_run(1e6), {"proc/stat": "cpu  150 0 100 1000 0 0 0 50 0 0\n"})
    assert run.remarks == {"stolen time": "the host used 50% of the processors' time"}
    assert run.stolen_s == 50 / os.sysconf("SC_CLK_TCK")
    assert run.throttle_events is None


def test_throttling_is_counted_once_per_package(tmp_path: Path) -> None:
    version_2(tmp_path)
    files = [
        f"sys/devices/system/cpu/cpu{n}/thermal_throttle/package_throttle_count" for n in (0, 1)
    ]
    write_tree(tmp_path, dict.fromkeys(files, "5"))
    assert observed(tmp_path, a_run(1e6)).throttle_events == 0
    run = observed(tmp_path, a_run(1e6), dict.fromkeys(files, "8"))
    assert run.remarks == {"throttled": "processors or drive were throttled 3 times"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({limits._PI: "0x50000"}, None),  # only in the past
        ({limits._PI: "0x50005"}, "the firmware throttles the processor"),
        ({"sys/class/thermal/cooling_device0/type": "Processor",
          "sys/class/thermal/cooling_device0/cur_state": "2"}, "Processor is throttled"),
        ({"sys/class/thermal/cooling_device0/type": "Fan",
          "sys/class/thermal/cooling_device0/cur_state": "2"}, None),
    ],
)  # fmt: skip
def test_states_of_throttling(tmp_path: Path, files: dict[str, str], expected: str | None) -> None:
    write_tree(tmp_path, files)
    found = limits.throttled_now(tmp_path)
    assert found is None if expected is None else found is not None and expected in found


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of version 1 with the controller blkio. Skips where there can be none."""
    folder = Path("/sys/fs/cgroup/blkio") / f"eeio-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no control group of version 1: {error.strerror}")
    try:
        yield folder
    finally:
        folder.rmdir()


@pytest.mark.root
def test_a_real_group_s_limit_is_known(tmp_path: Path, group: Path) -> None:
    with attached(sparse(tmp_path / "image", 1 << 20)) as node:
        device = block_device(node)
        assert device is not None
        limit = group / "blkio.throttle.read_bps_device"
        limit.write_text(f"{device.major}:{device.minor} 20000000\n")
        script = (
            f"open('{group}/cgroup.procs', 'w').write('0')\n"
            "from eeio.system.limits import known_limits\nprint(known_limits())"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
        )
        limit.write_text(f"{device.major}:{device.minor} 0\n")
    expected = f"{device.major}:{device.minor} 20000000"
    assert f"'blkio.throttle.read_bps_device of /{group.name}': '{expected}'" in done.stdout
