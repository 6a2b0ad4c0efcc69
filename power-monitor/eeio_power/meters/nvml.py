"""NVIDIA GPUs, by the library of their driver (NVML, through nvidia-ml-py).

`nvml[:GPU[+GPU...]]` with the number or UUID of each GPU; all of them by default. Each GPU is added
to the domain `accelerator`, a part of the system. NVML's reference documents

- nvmlDeviceGetTotalEnergyConsumption: mJ since the driver was loaded (Volta and newer), and where
  it is not supported
- nvmlDeviceGetPowerUsage: mW of the GPU "and its associated circuitry (e.g. memory)", on Ampere
  (except GA100) and newer the mean of one second; "accurate to within +/- 5%" on Fermi and Kepler.
  For newer GPUs it states no accuracy: 5 % are used.

The GPU reports on itself: the values are `device-reported`, and `auto` does not select them.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eeio_power.delay import NVIDIA, Delay
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Detected, Quantity, Verified, first_reading, library
from eeio_power.reading import Kind, only

OPTIONS = {"gpus": "numbers or UUIDs of the GPUs, joined by + (default: all)"}
ARGUMENT = "gpus"

KIND: Kind = "device-reported"
VERIFIED_ON: Verified = "hardware"
VERIFIED_WITH = "NVIDIA H100 80GB HBM3"
ACCURACY = 0.05
CONTENTS = only("gpu")
MAX_POWER_W = 2000.0
NATIVE_PERIOD_S = 0.1
COUNTER_DELAY = Delay(0.05, 0.0, 0.05, 0.0, "measured on an H100: changes every 0.1 s")
MEAN_DELAY = Delay(0.05, 1.0, 0.05, 0.0, "NVML: the mean of one second; measured on an H100")
_HOPPER = 9
"""NVML_DEVICE_ARCH_HOPPER: from here on the power is known to be a mean of one second."""
_DRIVER = Path("proc/driver/nvidia/gpus")


@dataclass(frozen=True)
class NvmlMeter:
    """GPUs of one machine."""

    spec: str
    name: str
    nvml: Any
    handles: Sequence[Any]
    channels: Sequence[Channel]
    native_period_s: float = NATIVE_PERIOD_S
    kind: Kind = KIND

    def read(self) -> Sequence[float | None]:
        """J or W of each GPU, None for one that does not answer. Raises PowerError if none does."""
        values: list[float | None] = []
        problem = ""
        for channel, handle in zip(self.channels, self.handles, strict=True):
            try:
                values.append(_value(self.nvml, channel.quantity == "energy_j", handle))
            except self.nvml.NVMLError as error:
                values.append(None)
                problem = f"{channel.name}: {error}; check the GPU with nvidia-smi"
        if problem and not any(value is not None for value in values):
            raise PowerError(problem)
        return values

    def close(self) -> None:
        """Release the library."""
        with suppress(self.nvml.NVMLError):
            self.nvml.nvmlShutdown()


def _value(nvml: Any, counted: bool, handle: Any) -> float:
    """J of the counter, or W."""
    if counted:
        return float(nvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1e3
    return float(nvml.nvmlDeviceGetPowerUsage(handle)) / 1e3


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> NvmlMeter:
    """Open the GPUs. Raises PowerError without the driver, and for one without power."""
    nvml = library(spec, "pynvml", "nvml")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        raise PowerError(f"meter '{spec}': {error}; load NVIDIA's driver") from error
    name = options.get("name", "nvml")
    try:
        handles = _handles(nvml, options.get("gpus"))
        channels = [_channel(nvml, name, handle) for handle in handles]
    except (PowerError, nvml.NVMLError) as error:
        nvml.nvmlShutdown()
        raise PowerError(f"meter '{spec}': {error}") from error
    return first_reading(NvmlMeter(spec, name, nvml, handles, channels))


def _handles(nvml: Any, wanted: str | None) -> list[Any]:
    count = nvml.nvmlDeviceGetCount()
    names = list(map(str, range(count))) if wanted is None else wanted.split("+")
    if not names or len(set(names)) < len(names):
        raise PowerError(f"{count} GPUs, and {wanted or 'none'} is wanted; name each of them once")
    handles = []
    for name in names:
        try:
            if name.isdecimal():
                handles.append(nvml.nvmlDeviceGetHandleByIndex(int(name)))
            else:
                handles.append(nvml.nvmlDeviceGetHandleByUUID(name.encode()))
        except nvml.NVMLError as error:
            raise PowerError(
                f"GPU {name}: {error}; there are {count}, see nvidia-smi -L"
            ) from error
    return handles


def _channel(nvml: Any, name: str, handle: Any) -> Channel:
    """Of the counter where the GPU has one. Raises PowerError if it has neither."""
    uuid, model = nvml.nvmlDeviceGetUUID(handle), nvml.nvmlDeviceGetName(handle)
    counted = True
    try:
        _value(nvml, True, handle)
    except nvml.NVMLError_NotSupported:
        counted = False
        try:
            _value(nvml, False, handle)
        except nvml.NVMLError_NotSupported as error:
            raise PowerError(
                f"{model} ({uuid}) reports neither energy nor power (a part of a GPU does not)"
            ) from error
    quantity: Quantity = "power_w"
    if counted:
        quantity = "energy_j"
    return Channel(
        name=f"{name}:{uuid}",
        domain="accelerator",
        quantity=quantity,
        accuracy_relative=ACCURACY,
        resolution=1e-3,
        max_power_w=MAX_POWER_W,
        contents=CONTENTS,
        delay=COUNTER_DELAY if counted else _delay_of_power(nvml, handle),
        remark=f"{model}, reported by the GPU",
    )


def _delay_of_power(nvml: Any, handle: Any) -> Delay:
    """Older GPUs report the power of a moment; for those between the manual names exceptions."""
    with suppress(nvml.NVMLError):
        if int(nvml.nvmlDeviceGetArchitecture(handle)) >= _HOPPER:
            return MEAN_DELAY
    return NVIDIA


def find(root: Path) -> Detected:
    """Whether NVIDIA's driver knows a GPU; the library is not loaded, which may start the GPU."""
    gpus = root / _DRIVER
    if not gpus.is_dir() or not any(gpus.iterdir()):
        reason, remedy = "NVIDIA's driver has no GPU", "load it; for others use --meter gpu"
        return Detected("nvml", KIND, ("accelerator",), False, reason, remedy)
    try:
        library("nvml", "pynvml", "nvml")
    except PowerError as error:
        return Detected("nvml", KIND, ("accelerator",), False, str(error))
    return Detected("nvml", KIND, ("accelerator",), True, contents={"accelerator": CONTENTS})
