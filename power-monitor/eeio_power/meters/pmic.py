"""The rails of a Raspberry Pi 5's power chip: `pmic`.

`vcgencmd pmic_read_adc` prints the volts and the amperes of each rail that the chip makes
(`VDD_CORE_A current(7)=6.22421000A`, `VDD_CORE_V volt(15)=0.86173300V`); the sum of their products
is the power behind the chip: processor, memory, and what the 3.3 V and 1.8 V rails of the board
feed (an SD card, too). It is a `module`: not in it are the 5 V that go past the chip (USB ports,
NVMe and other boards on the header or the PCIe connector, the fan), the chip's own losses and those
of the supply. EXT5V_V and BATT_V have no current and are left out; a rail with a current and no
voltage makes the reading missing.

Each reading is one conversion of each rail, one after the other: the uncertainty grows with how
much neighbouring readings differ. The accuracy is not stated; 10 % is used.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eeio.units.quantities import POWER_SAMPLE
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Detected, Measured, Reads, Verified
from eeio_power.reading import Contents, Kind

OPTIONS: dict[str, str] = {}

KIND: Kind = "measured"
VERIFIED_ON: Verified = "recording"
MEASURES: Measured = "this machine"
READS = Reads(nodes=("dev/vcio",), programs=("vcgencmd",))
MAILBOX = Path("dev/vcio")
# A conversion takes about a millisecond; asking for it, several.
NATIVE_PERIOD_S = 0.002
ACCURACY = 0.10
RESOLUTION_W = 0.01
MAX_POWER_W = 60.0
ANSWER_S = 2.0
ANSWER_BYTES = 1 << 16

CONTENTS = Contents(("processor", "memory", "board"), ("drives", "fans", "supply"))
REMARK = (
    "the rails behind the power chip, without 5 V loads that bypass it (USB, NVMe, header, fan) "
    "and the chip's losses"
)
CHANNEL = Channel(
    name="pmic:rails",
    domain="module",
    quantity="power_w",
    accuracy_relative=ACCURACY,
    resolution=RESOLUTION_W,
    max_power_w=MAX_POWER_W,
    contents=CONTENTS,
    remark=REMARK,
)

_LINE = re.compile(r"\s*([A-Z0-9_]+)_([AV]) (current|volt)\([0-9]+\)=([0-9.]+)([AV])\s*")


def power_w(text: str) -> float:
    """The sum over all rails with a current, W. Raises PowerError if one has no voltage."""
    values: dict[str, dict[str, float]] = {"A": {}, "V": {}}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match and match[2] == match[5]:
            try:
                values[match[2]][match[1]] = POWER_SAMPLE.of_text(match[4], match[1])
            except ValueError as error:
                raise PowerError(f"vcgencmd pmic_read_adc: {error}") from error
    currents, voltages = values["A"], values["V"]
    if not currents:
        output = text.strip()[:120] or "nothing"
        raise PowerError(f"vcgencmd pmic_read_adc reports no current: {output!r}")
    if unknown := [rail for rail in currents if rail not in voltages]:
        raise PowerError(f"vcgencmd pmic_read_adc reports no voltage of {', '.join(unknown)}")
    return sum(current_a * voltages[rail] for rail, current_a in currents.items())


@dataclass(frozen=True)
class PmicMeter:
    """The power chip of this board."""

    spec: str
    name: str
    tool: str
    kind: Kind = KIND
    native_period_s: float = NATIVE_PERIOD_S
    channels: Sequence[Channel] = (CHANNEL,)

    def read(self) -> Sequence[float | None]:
        """W. Raises PowerError if vcgencmd does not say."""
        try:
            done = subprocess.run(
                [self.tool, "pmic_read_adc"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=ANSWER_S,
                check=False,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PowerError(f"{self.tool}: {error}") from error
        text = done.stdout[:ANSWER_BYTES].decode("utf-8", errors="replace")
        if done.returncode != 0:
            raise PowerError(f"{self.tool} failed: {text.strip()[:120]}")
        return [power_w(text)]

    def close(self) -> None:
        """No file stays open."""


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> PmicMeter:
    """Take a first reading. Raises PowerError if this is no Raspberry Pi 5, or may not ask."""
    if not (root / MAILBOX).exists():
        raise PowerError(f"meter '{spec}': no {root / MAILBOX}; only a Raspberry Pi has it")
    tool = shutil.which("vcgencmd")
    if tool is None:
        raise PowerError(
            f"meter '{spec}': vcgencmd is missing; apt-get install raspi-utils or "
            "libraspberrypi-bin"
        )
    meter = PmicMeter(spec, options.get("name", "pmic"), tool)
    try:
        meter.read()
    except PowerError as error:
        raise PowerError(
            f"meter '{spec}': {error}; the chip is a Raspberry Pi 5's, and group video may ask"
        ) from error
    return meter


def find(root: Path) -> Detected:
    """Whether the board's power chip reports its rails."""
    try:
        open_meter("pmic", {}, root).close()
    except PowerError as error:
        reason, _, remedy = str(error).removeprefix("meter 'pmic': ").rpartition("; ")
        return Detected("pmic", KIND, ("module",), False, reason, remedy)
    return Detected("pmic", KIND, ("module",), True, REMARK, contents={"module": CONTENTS})
