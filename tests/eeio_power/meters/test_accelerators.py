"""GPUs: NVML with a stand-in library, and the hwmon trees of amdgpu, i915 and xe."""

import ctypes
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.simulators import FakeHwmon
from tests.simulators.tree import write_tree

from eeio_power.errors import PowerError
from eeio_power.false_readings import judged
from eeio_power.meters import discover, open_meters
from eeio_power.profile_rules import breakdown
from eeio_power.reading import WALL, EnergyReading, only

SOURCE = Path(__file__).parents[2] / "simulators" / "nvml.c"
HWMON = "sys/class/hwmon"


@pytest.fixture(scope="session")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The stand-in, loaded in the place of the driver's library: dlopen finds it by its soname."""
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    file = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-Wl,-soname,libnvidia-ml.so.1",
         "-o", str(file), str(SOURCE)],
        check=True, timeout=300,
    )  # fmt: skip
    return ctypes.CDLL(str(file))


def put(library: ctypes.CDLL, name: str, value: int) -> None:
    kind = ctypes.c_ulonglong if name == "energy_mj" else ctypes.c_int
    kind.in_dll(library, name).value = value


def test_energy_where_there_is_a_counter_and_power_elsewhere(nvml: ctypes.CDLL) -> None:
    put(nvml, "energy_mj", 5_000_500)
    (meter,) = open_meters(["nvml"])
    assert meter.read() == [5000.5, 75.25]
    assert [(c.name, c.domain, c.quantity) for c in meter.channels] == [
        ("nvml:GPU-a", "accelerator", "energy_j"), ("nvml:GPU-b", "accelerator", "power_w"),
    ]  # fmt: skip
    assert meter.kind == "device-reported" and meter.channels[0].contents == only("gpu")
    assert "Stand-in V100" in str(meter.channels[0].remark)
    meter.close()
    (meter,) = open_meters(["nvml:GPU-b"])
    assert meter.read() == [75.25]
    meter.close()
    assert ctypes.c_int.in_dll(nvml, "opened").value == 0


def test_a_lost_gpu_is_missing(nvml: ctypes.CDLL) -> None:
    (meter,) = open_meters(["nvml:0"])
    try:
        put(nvml, "status", 15)
        with pytest.raises(PowerError, match="GPU is lost; check the GPU with nvidia-smi"):
            meter.read()
    finally:
        put(nvml, "status", 0)
        meter.close()


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("nvml:7", "GPU 7: .*there are 2"),
        ("nvml:GPU-x", "GPU GPU-x"),
        ("nvml:0+0", "name each of them once"),
        ("nvml:GPU-c", "Stand-in part .GPU-c. reports neither energy nor power"),
    ],
)
def test_gpus_that_cannot_be_read(nvml: ctypes.CDLL, spec: str, why: str) -> None:
    with pytest.raises(PowerError, match=why):
        open_meters([spec])
    assert ctypes.c_int.in_dll(nvml, "opened").value == 0


def test_no_gpu_at_all(nvml: ctypes.CDLL) -> None:
    put(nvml, "gpu_count", 0)
    try:
        with pytest.raises(PowerError, match="0 GPUs"):
            open_meters(["nvml"])
    finally:
        put(nvml, "gpu_count", 2)


def test_without_the_driver_or_the_module(tmp_path: Path) -> None:
    code = "from eeio_power.meters import open_meters; open_meters(['nvml'])"
    options = {"capture_output": True, "text": True, "timeout": 60}
    blocked = f"import sys; sys.modules['pynvml'] = None; {code}"
    done = subprocess.run([sys.executable, "-c", blocked], **options)  # type: ignore[call-overload]
    assert "needs the Python module pynvml; install it: pip install 'eeio[nvml]'" in done.stderr
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    done = subprocess.run([sys.executable, "-c", code], **options)  # type: ignore[call-overload]
    assert "load NVIDIA's driver" in done.stderr or done.returncode == 0


def test_nvml_is_found_by_the_drivers_files(tmp_path: Path) -> None:
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    (found,) = [f for f in discover(tmp_path) if f.spec == "nvml"]
    assert not found.available and "no GPU" in str(found.reason)
    write_tree(tmp_path, {"proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: x"})
    (found,) = [f for f in discover(tmp_path) if f.spec == "nvml"]
    assert found.available and found.domains == ("accelerator",)


AMD = {"power1_average": 212_000_000, "power1_cap": 300_000_000, "power1_label": "PPT"}
APU = {"power1_input": 15_000_000, "power1_label": "PPT"}


def test_gpus_of_hwmon_are_added_and_never_the_system(tmp_path: Path) -> None:
    chips = FakeHwmon(tmp_path / HWMON)
    chips.add_chip("amdgpu", AMD)
    chips.add_chip("amdgpu", {"power1_input": 9_000_000, "power1_cap": 1})
    chips.add_chip("i915", {"energy1_input": 7_000_000, "power1_max": 1})
    chips.add_chip("i915_gt0", {"energy1_input": 6_000_000})
    chips.add_chip(
        "xe", {"energy1_input": 5_000_000, "energy1_label": "card", "energy2_input": 4_000_000}
    )
    chips.add_chip("amdgpu", APU)
    (meter,) = open_meters(["gpu"], tmp_path)
    assert dict(zip([c.name for c in meter.channels], meter.read(), strict=True)) == {
        "gpu:amdgpu/power1": 212.0, "gpu:amdgpu@hwmon1/power1": 9.0, "gpu:i915/energy1": 7.0,
        "gpu:xe/energy1": 5.0,
    }  # fmt: skip
    assert {c.domain for c in meter.channels} == {"accelerator"}
    assert open_meters(["auto"], tmp_path) == []
    (one,) = open_meters(["gpu,only=xe/energy1"], tmp_path)
    assert one.read() == [5.0]
    for sensor in ("amdgpu/power1", "i915_gt0/energy1", "xe/energy2"):
        with pytest.raises(PowerError, match="--meter gpu"):
            open_meters([f"hwmon,only={sensor}"], tmp_path)


def test_a_second_die_is_no_gpu_and_an_apu_is_named_as_left_out(tmp_path: Path) -> None:
    hwmon = FakeHwmon(tmp_path / HWMON)
    hwmon.add_chip("amdgpu", AMD)
    hwmon.add_chip("amdgpu", {**AMD, "power1_average": 0, "power1_cap": 0})
    hwmon.add_chip("amdgpu", APU)
    (meter,) = open_meters([f"gpu,root={tmp_path / HWMON}"])
    (channel,) = meter.channels
    assert "without amdgpu@hwmon2/power1" in (channel.remark or "")


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (APU, "may include the processor"),
        ({**AMD, "power1_label": "slowPPT"}, "may include the processor"),
        ({"temp1_input": 40_000}, "amdgpu reports neither its power nor its energy"),
        ({**AMD, "power1_average": "N/A"}, "cannot be read"),
    ],
)
def test_chips_that_are_no_accelerator(
    tmp_path: Path, files: dict[str, int | str], why: str
) -> None:
    FakeHwmon(tmp_path / HWMON).add_chip("amdgpu", files)
    with pytest.raises(PowerError, match=why):
        open_meters(["gpu"], tmp_path)
    (found,) = [f for f in discover(tmp_path) if f.spec == "gpu"]
    assert not found.available and why in str(found.reason)


SYSTEM = EnergyReading(
    "system", "nut", "measured", 300.0, 3000.0, 30.0, 1.0, 1.0, 10, 0, True, includes=WALL.includes
)
GPU = replace(
    SYSTEM, domain="accelerator", meter="gpu", power_w=200.0, energy_j=2000.0,
    kind="device-reported", includes=("gpu",), leaves_out=only("gpu").leaves_out,
)  # fmt: skip


def test_it_is_a_part_of_the_system() -> None:
    shares = {share.part: share for share in breakdown([SYSTEM, GPU], 10.0)}
    assert shares["accelerator"].power_w == 200.0 and shares["rest"].power_w == 100.0
    assert "accelerator" not in {share.part for share in breakdown([SYSTEM], 10.0)}
    assert not any(reading.doubtful for reading in judged([SYSTEM, GPU]))
    more = replace(GPU, power_w=400.0, energy_j=4000.0)
    assert all("is in system" in str(reading.reasons) for reading in judged([SYSTEM, more]))
    # Two meters may read the GPUs of two makers.
    assert not any(r.doubtful for r in judged([GPU, replace(GPU, meter="nvml", energy_j=9.0)]))
