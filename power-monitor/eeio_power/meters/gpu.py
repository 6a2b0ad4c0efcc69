"""GPUs that report their power through the kernel's hwmon class: amdgpu, i915 and xe.

`gpu[,root=DIR][,only=CHIP/SENSOR+...]`; a GPU has the name of its sensor, such as `amdgpu/power1`.

- amdgpu: `power1_average`, else `power1_input` (uW), the power of the socket. "On APUs this
  includes the CPU" (the kernel's documentation of amdgpu): a chip without `power1_cap`, which APUs
  lack, or with the labels of an APU's limits is not read.
- i915 (discrete cards only) and xe: `energy1_input` (uJ, a counter), else `energy2_input`. The
  chips `i915_gtN` are tiles of a card and not read.

Each GPU is added to the domain `accelerator`, a part of the system. The GPU reports on itself, so
the values are `device-reported`, and `auto` does not select them. The drivers state no accuracy:
10 % are used. Reading may keep a card from its runtime suspend.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from eeio_power.delay import unknown_up_to
from eeio_power.meters import Detected, Verified, contents_of
from eeio_power.meters._hwmon_chips import FileSensor, sensors_of
from eeio_power.meters.hwmon import HWMON
from eeio_power.reading import Kind, only
from eeio_power.sysfs import (
    Choice,
    SensorMeter,
    named,
    read_optional_int,
    read_optional_text,
    unreadable,
)

OPTIONS = {
    "root": "the hwmon class folder, instead of /sys/class/hwmon",
    "only": "the GPUs to add, joined by +, such as amdgpu/power1 (default: all)",
}
KIND: Kind = "device-reported"
VERIFIED_ON: Verified = "simulator"
ACCURACY = 0.10
CONTENTS = only("gpu")
MAX_POWER_W = 2000.0
# Energy units of Intel's cards are 2^-14 J.
_COUNT_J, _COUNTER_PERIOD_S = 2.0**-14, 0.1
_COUNTER_DELAY = unknown_up_to(0.1, 0.0, "assumed of i915 and xe: up to 0.1 s late")
_POWER_DELAY = unknown_up_to(1.0, 1.0, "assumed of amdgpu: up to 1 s late, means of up to 1 s")
_CHIPS = ("amdgpu", "i915", "xe")
_OF_APU = re.compile(r"(slow|fast)PPT", re.I)
_MISSING = "load its driver (amdgpu, i915, xe); for NVIDIA use --meter nvml"


class GpuMeter(SensorMeter[FileSensor]):
    """The GPUs of one hwmon folder."""

    @property
    def native_period_s(self) -> float:
        """The period of the slowest GPU."""
        return max(sensor.period_s for sensor in self.sensors)


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> GpuMeter:
    """Open the GPUs. Raises PowerError if there is none, or one cannot be read."""
    folder = root / HWMON
    if "root" in options:
        folder = Path(options["root"])
    sensors = _choose(folder, options.get("only")).usable(spec)
    return GpuMeter(spec, options.get("name", "gpu"), sensors, KIND)


def find(root: Path) -> Detected:
    """Whether a driver of a GPU reports its power."""
    choice = _choose(root / HWMON, None)
    return choice.finding("gpu", KIND, contents_of([s.channel for s in choice.sensors]))


def _choose(folder: Path, wanted: str | None) -> Choice[FileSensor]:
    cards, with_processor = _cards(folder)
    if wanted is not None and cards:
        choice = named(cards, wanted, lambda card: card.name, "GPU")
        cards = list(choice.sensors)
        if choice.problem:
            return choice
    if not cards:
        reason = f"{folder} has no GPU with a sensor of its own"
        if with_processor:
            reason = f"{', '.join(with_processor)} may include the processor"
            return Choice((), (reason, "use a meter of the package or of the system"))
        chips = [read_optional_text(chip / "name") for chip in sorted(folder.glob("*"))]
        if silent := [chip for chip in chips if chip in _CHIPS]:
            reason = f"{', '.join(silent)} reports neither its power nor its energy"
            return Choice((), (reason, "use another meter, or a newer kernel"))
        return Choice((), (reason, _MISSING))
    problem = unreadable(file for card in cards for file in card.files)
    left_out = ""
    if with_processor:
        left_out = f"; without {', '.join(with_processor)}"
    return Choice(tuple(_as_accelerator(card, left_out) for card in cards), problem)


def _cards(folder: Path) -> tuple[list[FileSensor], list[str]]:
    """One sensor a GPU, that of its card or the first; and the names of those that may include the
    processor."""
    first: dict[Path, FileSensor] = {}
    for sensor in sensors_of(folder):
        place = sensor.files[0].parent
        # The second die of a card has no limit and no power of its own.
        is_gpu = sensor.chip in _CHIPS and read_optional_int(place / "power1_cap") != 0
        if is_gpu and (place not in first or sensor.label == "card" != first[place].label):
            first[place] = sensor
    apart = [
        s
        for place, s in first.items()
        if s.chip == "amdgpu" and (not (place / "power1_cap").exists() or _OF_APU.search(s.label))
    ]
    return [s for s in first.values() if s not in apart], [s.name for s in apart]


def _as_accelerator(sensor: FileSensor, left_out: str) -> FileSensor:
    counted = sensor.channel.quantity == "energy_j"
    resolution = 1.0
    delay = _POWER_DELAY
    period_s = sensor.period_s
    if counted:
        resolution = _COUNT_J
        delay = _COUNTER_DELAY
        period_s = _COUNTER_PERIOD_S
    channel = replace(
        sensor.channel,
        name=f"gpu:{sensor.name}",
        domain="accelerator",
        accuracy_relative=ACCURACY,
        resolution=resolution,
        in_domain_total=True,
        max_power_w=MAX_POWER_W,
        contents=CONTENTS,
        delay=delay,
        remark=f"reported by the GPU{sensor.label and f' as {sensor.label}'}{left_out}",
    )
    return replace(sensor, channel=channel, period_s=period_s)
