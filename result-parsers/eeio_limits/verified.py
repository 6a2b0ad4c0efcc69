"""What each kind of meter was verified with: a simulator, a recording of a device, or hardware.

Other people's programs (ipmi_sim, upsd, Prometheus, snmpsim) are simulators: they speak the
protocol, and nothing says how true the watts of a real device are. A recording is the output of a
real device that others published.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

Verified = Literal["simulator", "recording", "hardware"]

MODELS: Mapping[str, str] = {"nvml": "NVIDIA H100 80GB HBM3"}
"""The devices of the meters that were verified on hardware."""

VERIFIED_ON: Mapping[str, Verified] = {
    **dict.fromkeys(
        ("cray", "csv", "gpu", "hwmon", "iio", "ipmi", "mqtt", "nut", "nvme", "perf",
         "power_supply", "prometheus", "quarch", "rapl", "redfish", "scpi", "shelly", "snmp",
         "tasmota", "wattsup"),
        "simulator",
    ),
    "pmic": "recording",
    "nvml": "hardware",
}  # fmt: skip
"""By the name of the meter's module. Meters of users are not in it, nor are model and demo."""


def verified_on(meter: str, specs: Iterable[str] = ()) -> Verified | None:
    """Of a meter by its name in readings; `specs` show the kind of one with another name."""
    return VERIFIED_ON.get(_kind(meter, specs))


def _kind(meter: str, specs: Iterable[str]) -> str:
    """The name of its module."""
    name = meter.rpartition(": ")[2]  # `2 nodes: rapl`
    for spec in specs:
        kind, *options = spec.split(",")
        if f"name={name}" in options:
            name = kind.partition(":")[0]
    return name if name in VERIFIED_ON else name.rstrip("0123456789")  # `nvme0`


def verified_text(meter: str, specs: Iterable[str] = ()) -> str | None:
    """As `verified_on`, with the device: `hardware (NVIDIA H100 80GB HBM3)`."""
    kind = _kind(meter, specs)
    how = VERIFIED_ON.get(kind)
    if how != "hardware":
        return how
    return f"{how} ({MODELS[kind]})"


def verified_note(meters: Iterable[str], specs: Iterable[str] = ()) -> list[str]:
    """One line a kind of verification: `rapl, nut: verified on simulator, not on hardware`."""
    specs = tuple(specs)
    found: dict[str, list[str]] = {}
    for meter in dict.fromkeys(meters):
        if (how := verified_text(meter, specs)) is not None:
            found.setdefault(how, []).append(meter)
    return [
        f"{', '.join(names)}: verified on {how}"
        + ("" if how.startswith("hardware") else ", not on hardware")
        for how, names in found.items()
    ]
