"""Limits of control groups, stolen time and throttling, on trees of both versions."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.mounts import attached, sparse
from tests.simulators.tree import write_tree

from eeio.machine import drive as drive_module
from eeio.machine import limits
from eeio.machine.device_limits import Sample, device_limits, reached_by
from eeio.machine.filesystem import BlockDevice, block_device, named_device
from eeio.measure.campaign.machine_limits import MachineLimits
from eeio.record.run import CacheLayers, Durable, Experiment, Phase, Run

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
    probe = MachineLimits([BlockDevice("sda", 8, 0, root=root)], root)
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


# Group, file and text of its counts before and after 4 s.
_COUNTED = {
    "2": ("user.slice", "io.max", "8:0 rbps=max wbps=max riops=100 wiops=200\n",
          "io.stat", "8:0 rbytes=0 wbytes=0 rios={rios} wios={wios} dbytes=0 dios=0\n"),
    "1": ("blkio/job", "blkio.throttle.read_iops_device", "8:0 100\n",
          "blkio.throttle.io_serviced", "8:0 Read {rios}\n8:0 Write {wios}\nTotal 9\n"),
}  # fmt: skip


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize(
    ("operation", "rios", "wios", "limits_of_both"),
    [
        ("read", 400, 0, ("100",)),
        ("read", 200, 800, ("", "200")),
        ("mixed", 400, 800, ("100", "200")),
        ("mixed", 300, 300, ()),
    ],
)
def test_a_limit_of_requests_is_compared_with_the_kernel_s_count(
    tmp_path: Path, version: str, operation: str, rios: int, wios: int,
    limits_of_both: tuple[str, ...],
) -> None:  # fmt: skip
    """The kernel splits large requests: the tool's rate was a tenth, and the limit not named."""
    (version_2 if version == "2" else version_1)(tmp_path)
    group, file, limit, counts, text = _COUNTED[version]
    folder = tmp_path / "sys/fs/cgroup" / group
    write_tree(folder, {file: limit, counts: text.format(rios=0, wios=0)})
    (phase,) = a_run(1e6).phases
    phase = replace(phase, operation=operation, end_s=4.0, metrics={"iops": 10.0})
    found = device_limits([BlockDevice("sda", 8, 0, root=tmp_path)], tmp_path)
    of_requests = [limit for limit in found if limit.kind.endswith("iops")]
    samples = []
    for step in range(5):
        write_tree(folder, {counts: text.format(rios=rios * step // 4, wios=wios * step // 4)})
        samples.append(Sample(float(step), tuple(limit.moved() for limit in of_requests)))
    expected = [
        f"at the cgroup's limit of {value} requests/s ({file} of /{Path(group).name})"
        for kind, value in zip(("riops", "wiops"), limits_of_both, strict=False)
        if value and kind in {limit.kind for limit in of_requests}
    ]
    assert reached_by(of_requests, samples, [phase]) == expected


def test_a_short_phase_is_judged_by_the_tool_s_rate(tmp_path: Path) -> None:
    version_2(tmp_path)
    (phase,) = a_run(20e6).phases
    (limit,) = device_limits([BlockDevice("sda", 8, 0, root=tmp_path)], tmp_path)
    samples = [Sample(0.0, (0.0,)), Sample(0.5, (9e9,))]
    assert reached_by([limit], samples, [replace(phase, end_s=0.4)]) == [limit.text]


@pytest.mark.parametrize(
    ("moved", "is_named"),
    [
        # Queued requests are counted when they are submitted: a jump, and then the limit.
        ([0, 80, 90, 100, 110, 120], True),
        # A part of the phase: its mean rate is that of no limit.
        ([0, 2, 4, 6, 16, 26], True),
        ([0, 2, 4, 6, 8, 10], False),
        # All requests are counted in the first second, and wait for most of the phase.
        ([0, 60, *[60] * 9], True),
        ([0, 15, *[15] * 9], False),
    ],
)
def test_a_limit_that_holds_for_a_part_of_a_phase_is_named(
    tmp_path: Path, moved: list[float], is_named: bool
) -> None:
    version_2(tmp_path)
    (phase,) = a_run(1e6).phases
    (limit,) = device_limits([BlockDevice("sda", 8, 0, root=tmp_path)], tmp_path)
    samples = [Sample(float(time_s), (mb * 2e6,)) for time_s, mb in enumerate(moved)]
    named = reached_by([limit], samples, [replace(phase, start_s=0.1, end_s=len(moved) - 1.0)])
    assert named == ([limit.text] if is_named else [])


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


@pytest.mark.parametrize(
    ("allowed", "nice", "policy", "expected"),
    [
        ("0-3", "0", "0", {}),
        ("1", "0", "0", {"processors of this process": "1 of 0-3"}),
        ("0-3", "19", "0", {"priority of this process": "nice 19"}),
        ("0-3", "0", "5", {"scheduling of this process": "SCHED_IDLE"}),
    ],
)
def test_processors_and_priority_that_the_tools_inherit(
    tmp_path: Path, allowed: str, nice: str, policy: str, expected: dict[str, str]
) -> None:
    """A campaign under taskset, nice or chrt looked like any other."""
    write_tree(tmp_path, {
        "proc/self/mountinfo": "", "proc/self/status": f"Name:\tx\nCpus_allowed_list:\t{allowed}\n",
        "proc/self/stat": f"7 (a) b) R {'1 ' * 14}20 {nice} {'1 ' * 21}{policy} 0\n",
        "sys/devices/system/cpu/online": "0-3\n",
    })  # fmt: skip
    assert limits.known_limits(tmp_path) == expected


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


@pytest.mark.parametrize(
    ("lasted_s", "used_s", "waiting_s", "stolen_s", "expected"),
    [
        (10.0, 5.0, 310.0, 5.0, "50%"),  # one of 32 processors works, for half of its time
        (10.0, 9.7, 310.0, 0.3, "3%"),
        (10.0, 10.0, 0.0, 0.15, None),  # 1.5 %
        (2.0, 0.1, 60.0, 0.05, None),  # a few ticks of a quiet machine
        (60.0, 2.0, 1900.0, 0.3, None),  # 13 % of a little: it delayed the run by 0.5 %
        (60.0, 300.0, 0.0, 3.0, None),  # 1 % of five processors
    ],
)
def test_stolen_time_is_a_share_of_the_processors_in_use(
    tmp_path: Path, lasted_s: float, used_s: float, waiting_s: float, stolen_s: float,
    expected: str | None,
) -> None:  # fmt: skip
    version_2(tmp_path)
    ticks = os.sysconf("SC_CLK_TCK")
    user, idle, steal = (round(s * ticks) for s in (used_s, waiting_s / 2, stolen_s))
    later = f"cpu  {100 + user} 0 100 {1000 + idle} {idle} 0 0 {steal} 0 0\n"
    run = replace(a_run(1e6), duration_s=lasted_s)
    remark = observed(tmp_path, run, {"proc/stat": later}).remarks.get("stolen time")
    assert remark == (expected and f"the host used {expected} of the processors' time")


def test_throttling_is_counted_once_per_package(tmp_path: Path) -> None:
    version_2(tmp_path)
    files = [
        f"sys/devices/system/cpu/cpu{n}/thermal_throttle/package_throttle_count" for n in (0, 1)
    ]
    write_tree(tmp_path, dict.fromkeys(files, "5"))
    assert observed(tmp_path, a_run(1e6)).throttle_events == 0
    run = observed(tmp_path, a_run(1e6), dict.fromkeys(files, "8"))
    assert run.remarks == {"throttled": "processors or drive were throttled 3 times"}


@pytest.mark.parametrize("part", ["core", "package"])
def test_a_limit_of_power_is_throttling_too(tmp_path: Path, part: str) -> None:
    version_2(tmp_path)
    folder = "sys/devices/system/cpu/cpu0/thermal_throttle/"
    counts = {f"{folder}{part}_throttle_count": "5", f"{folder}{part}_power_limit_count": "70"}
    write_tree(tmp_path, counts)
    assert observed(tmp_path, a_run(1e6)).throttle_events == 0
    later = {f"{folder}{part}_power_limit_count": "74", f"{folder}{part}_throttle_count": "6"}
    assert observed(tmp_path, a_run(1e6), later).throttle_events == 5


def test_throttling_of_any_core_counts(tmp_path: Path) -> None:
    version_2(tmp_path)
    folder = "sys/devices/system/cpu/cpu{}/thermal_throttle/core_throttle_count"
    write_tree(tmp_path, {folder.format(0): "90", folder.format(1): "5"})
    assert observed(tmp_path, a_run(1e6), {folder.format(1): "7"}).throttle_events == 2


def test_throttling_that_lasts_all_the_time_is_an_event(tmp_path: Path) -> None:
    """The count rises when it begins, the time while it lasts."""
    version_2(tmp_path)
    folder = "sys/devices/system/cpu/cpu{}/thermal_throttle/package_throttle_"
    times = [f"{folder.format(n)}total_time_ms" for n in (0, 1)]
    write_tree(tmp_path, {f"{folder.format(n)}count": "5" for n in (0, 1)})
    write_tree(tmp_path, dict.fromkeys(times, "1000"))
    assert observed(tmp_path, a_run(1e6)).throttle_events == 0
    assert observed(tmp_path, a_run(1e6), dict.fromkeys(times, "31000")).throttle_events == 1


def health_log(transitions: int, throttled_s: int) -> bytes:
    log = bytearray(512)
    log[216:220] = transitions.to_bytes(4, "little")
    log[228:232] = throttled_s.to_bytes(4, "little")
    return bytes(log)


def a_drive_below(root: Path, name: str) -> BlockDevice:
    """nvme0n1, or dm-0 (LUKS, LVM) or md0 on its partition."""
    drive = root / "sys/devices/pci/nvme/nvme0/nvme0n1"
    write_tree(drive, {"dev": "259:0", "nvme0n1p3/dev": "259:3", "nvme0n1p3/partition": "3"})
    (drive / "device").symlink_to(drive.parent)
    above = root / "sys/devices/virtual/block"
    for layer, number in (("dm-0", "253:0"), ("md0", "9:0")):
        write_tree(above / layer, {"dev": number})
        (above / layer / "slaves").mkdir()
        (above / layer / "slaves/nvme0n1p3").symlink_to(drive / "nvme0n1p3")
    names = root / "sys/class/block"
    for folder in (drive, drive / "nvme0n1p3", above / "dm-0", above / "md0"):
        (names / folder.name).symlink_to(folder)
    device = named_device(name, root)
    assert device is not None
    return device


@pytest.mark.parametrize("name", ["nvme0n1", "nvme0n1p3", "dm-0", "md0"])
@pytest.mark.parametrize(("later", "expected"), [((7, 100), 0), ((9, 100), 2), ((7, 130), 1)])
def test_throttling_of_a_drive_is_counted_below_other_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, later: tuple[int, int],
    expected: int,
) -> None:  # fmt: skip
    version_2(tmp_path)
    (tmp_path / "sys/class/block").mkdir(parents=True, exist_ok=True)
    answers = iter([health_log(7, 100), health_log(*later)])
    monkeypatch.setattr(drive_module, "_health", lambda disk, dev: (
        next(answers) if disk.resolve().name == "nvme0n1" else None))  # fmt: skip
    probe = MachineLimits([a_drive_below(tmp_path, name)], tmp_path)
    probe.start()
    probe.stop(1.0)
    run = probe.add_to(a_run(1e6))
    assert run.throttle_events == expected
    assert ("throttled" in run.remarks) == (expected > 0)


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
            "from eeio.machine.limits import known_limits\nprint(known_limits())"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
        )
        limit.write_text(f"{device.major}:{device.minor} 0\n")
    expected = f"{device.major}:{device.minor} 20000000"
    assert f"'blkio.throttle.read_bps_device of /{group.name}': '{expected}'" in done.stdout


# Reads 4 MiB at a time for 4 s, in the group, and says what it reached.
_READER = """
import mmap, os, sys, time
from pathlib import Path
from eeio.measure.campaign.machine_limits import MachineLimits
from eeio.machine.filesystem import block_device
from tests.eeio.system.test_limits import a_run
from dataclasses import replace
group, node = sys.argv[1:]
open(f"{group}/cgroup.procs", "w").write("0")
device = block_device(Path(node))
probe = MachineLimits([device])
probe.start()
buffer = mmap.mmap(-1, 4 << 20)
file = os.open(node, os.O_RDONLY | os.O_DIRECT)
began_s, count = time.monotonic(), 0
while time.monotonic() < began_s + 4:
    os.preadv(file, [buffer], count % 8 * (4 << 20))
    count += 1
probe.stop(None)
lasted_s = time.monotonic() - began_s
run = a_run(1e6)
phase = replace(run.phases[0], operation="read", end_s=lasted_s, metrics={"iops": count / lasted_s})
print(probe.add_to(replace(run, phases=(phase,))).remarks.get("limit"))
"""


@pytest.mark.root
def test_a_real_limit_of_requests_is_named_for_large_ones(tmp_path: Path, group: Path) -> None:
    with attached(sparse(tmp_path / "image", 32 << 20)) as node:
        device = block_device(node)
        assert device is not None
        limit = group / "blkio.throttle.read_iops_device"
        limit.write_text(f"{device.major}:{device.minor} 40\n")
        done = subprocess.run(
            [sys.executable, "-c", _READER, str(group), str(node)],
            capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
        limit.write_text(f"{device.major}:{device.minor} 0\n")
    expected = f"limit of 40 requests/s (blkio.throttle.read_iops_device of /{group.name})"
    assert expected in done.stdout
