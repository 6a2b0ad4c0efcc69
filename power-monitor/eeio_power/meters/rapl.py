"""RAPL: energy counters of the processor packages and of DRAM, through Linux' powercap.

`rapl[,root=DIR][,max_w=500]`, where DIR is the powercap folder (the one with `intel-rapl:0`). Zones
are `intel-rapl:N` (a package, or a die of one) and `intel-rapl:N:M` (a part of it), N and M
hexadecimal, each with `name`, `energy_uj` and `max_energy_range_uj`.

Packages and DRAM are read and added up. `core` and `uncore` are parts of their package, `psys`
contains the packages, and `intel-rapl-mmio:N` shows package N a second time: adding any of them
would count energy two times. Of several zones of one package (`package-0-die-0`, `package-0-die-1`)
one is read on AMD and Hygon, whose packages have one counter; elsewhere all are, and a window in
which they move in step has no energy (`dies=` decides otherwise). The domains are `package` and
`dram`, never `system`: fans, drives and the power supply are not in it.

Accuracy is nominal: 5 % for packages, 20 % for DRAM, the order of magnitude in comparisons with
external meters (Desrochers et al., MEMSYS 2016; Khan et al., ToMPECS 3(2), 2018).

Which energy counters of a processor package are separate counters.

AMD's and Hygon's processors have one counter per package; Linux shows it once per die on parts with
several (Threadripper 1950X; from 6.10 until the fix in 6.12, every part with CPUID leaf
0x80000026). Intel's Cascade Lake-AP has a real counter per die. The kernel's rule is the same:
`rapl_msrs_are_pkg_scope` in drivers/powercap/intel_rapl_common.c.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eeio.units.quantities import ENERGY
from eeio_power.delay import Delay
from eeio_power.errors import PowerError
from eeio_power.helper_process import EnergyReader, find_reader, try_reader
from eeio_power.meters import (
    Channel,
    Detected,
    Measured,
    Reads,
    Verified,
    contents_of,
    number_option,
)
from eeio_power.reading import Contents, Domain, Kind, only
from eeio_power.sysfs import by_number, read_int, read_text

DIES_OPTION = (
    "once: a package's dies share one counter; each: one counter per die (default: once on AMD "
    "and Hygon, else each; rejected if they change in step)"
)

_ONE_COUNTER = frozenset(("AuthenticAMD", "HygonGenuine"))
_VENDOR = re.compile(rb"^vendor_id\s*:\s*(\w+)", re.M)
# The vendor is in the first lines; the file of a large machine has megabytes.
_HEAD_BYTES = 4096

PACKAGE = re.compile(r"package-[0-9]+")


def dies_once(spec: str, options: Mapping[str, str], root: Path) -> bool | None:
    """Whether a package's dies show one counter; None: unknown, so their steps decide.

    Raises PowerError for an option that is neither.
    """
    wanted = options.get("dies")
    if wanted not in (None, "once", "each"):
        raise PowerError(f"meter '{spec}': dies={wanted}: it is once or each")
    if wanted is not None:
        return wanted == "once"
    if one_counter_a_package(root):
        return True
    return None


def one_counter_a_package(root: Path) -> bool:
    """Whether the processors below `root` are of a vendor with one counter a package."""
    try:
        with (root / "proc/cpuinfo").open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    match = _VENDOR.search(head)
    return match is not None and match[1].decode("ascii", "replace") in _ONE_COUNTER


OPTIONS = {
    "root": "the powercap folder, instead of /sys/class/powercap",
    "reader": "helper program that reads the counters, or no: read them directly",
    "max_w": "highest power of one zone, W (default 500): sets the gap that may hide a wrap",
    "dies": DIES_OPTION,
}

POWERCAP = Path("sys/class/powercap")
KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
MEASURES: Measured = "packages"
READS = Reads(files=(("sys/class/powercap/*", "name,enabled,energy_uj,max_energy_range_uj"),))
NATIVE_PERIOD_S = 0.001
DELAY = Delay(0.0005, 0.0, 0.0005, 0.0, "Intel SDM, volume 3: updated about every millisecond")
MAX_POWER_W = 500.0
# The unit of most Intel processors, 2^-14 J; the kernel reports in uJ.
RESOLUTION_J = 2.0**-14
ACCURACY: Mapping[Domain, float] = {"package": 0.05, "dram": 0.20}
CONTENTS: Mapping[Domain, Contents] = {"package": only("processor"), "dram": only("memory")}

# The kernel numbers zones in hexadecimal: linux' drivers/powercap/powercap_sys.c, "%s:%x".
_ZONE = re.compile(r"intel-rapl:[0-9a-f]+(:[0-9a-f]+)?")

_PERMISSION_REASON = "energy_uj is readable by root only since CVE-2020-8694"
_PERMISSION_REMEDY = (
    "run as root, or give a group the right to read it, at every boot: "
    "'chgrp power {files}' and 'chmod g+r {files}' (see docs/reference/meters.md)"
)
_ABSENT_REMEDY = (
    "load the driver ('modprobe intel_rapl_msr'; intel_rapl on kernels before 5.3); virtual "
    "machines and most ARM boards have no RAPL: use an external meter"
)


@dataclass(frozen=True)
class _Zone:
    channel: Channel
    energy_file: Path


@dataclass(frozen=True)
class RaplMeter:
    """The package and DRAM zones of one powercap folder."""

    spec: str
    name: str
    zones: tuple[_Zone, ...]
    reader: Path | None = None
    """The helper program that reads them, if there is one."""
    kind: Kind = KIND
    native_period_s: float = NATIVE_PERIOD_S

    @property
    def channels(self) -> Sequence[Channel]:
        return [zone.channel for zone in self.zones]

    def read(self) -> Sequence[float | None]:
        """The counters, J; None for a zone that cannot be read, never 0.

        Raises the first zone's OSError or ValueError if none can be read.
        """
        values: list[float | None] = []
        failure: Exception | None = None
        for zone in self.zones:
            try:
                values.append(read_int(zone.energy_file) / 1e6)
            except (OSError, ValueError) as error:
                failure = failure or error
                values.append(None)
        if failure is not None and all(value is None for value in values):
            raise failure
        return values

    def batches(self, period_s: float) -> EnergyReader | None:
        """The helper's process, not yet started; None where there is no helper."""
        if self.reader is None:
            return None
        return EnergyReader(self.reader, _given(self.zones), _names(self.zones), period_s)

    def close(self) -> None:
        """No file stays open."""


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> RaplMeter:
    """Open RAPL. Raises PowerError if there is no zone, or one that cannot be read."""
    folder = root / POWERCAP
    if "root" in options:
        folder = Path(options["root"])
    max_power_w = number_option(spec, options, "max_w", above_zero=True) or MAX_POWER_W
    wanted = options.get("reader")
    reader = find_reader(root)
    if wanted is not None:
        reader = None
        if wanted != "no":
            reader = Path(wanted)
    powercap = _look(folder, max_power_w, reader, dies_once(spec, options, root))
    if wanted not in (None, "no") and powercap.reader_problem is not None:
        raise PowerError(
            f"meter '{spec}': {powercap.reader_problem}; repair it, or leave out reader="
        )
    if powercap.problem is not None:
        reason, remedy = powercap.problem
        raise PowerError(f"meter '{spec}': {reason}; {remedy}")
    usable = None
    if powercap.reader_problem is None:
        usable = reader
    return RaplMeter(spec, options.get("name", "rapl"), powercap.zones, usable)


def find(root: Path) -> Detected:
    """Whether RAPL is there and may be read."""
    powercap = _look(root / POWERCAP, MAX_POWER_W, find_reader(root), dies_once("rapl", {}, root))
    if powercap.problem is not None:
        return Detected("rapl", KIND, ("package", "dram"), False, *powercap.problem)
    domains = tuple(dict.fromkeys(z.channel.domain for z in powercap.zones))
    contents = contents_of([zone.channel for zone in powercap.zones])
    return Detected("rapl", KIND, domains, True, powercap.remark, contents=contents)


@dataclass(frozen=True)
class _Found:
    """Contents of a powercap folder, and why it cannot be read."""

    zones: tuple[_Zone, ...]
    problem: tuple[str, str] | None
    """(reason, remedy) if it is unreadable."""
    reader_problem: str | None = None
    """Why the helper cannot."""
    remark: str | None = None
    """Remark about zones that share a package."""


def _look(folder: Path, max_power_w: float, reader: Path | None, once: bool | None) -> _Found:
    try:
        every = _zones(folder, max_power_w)
    except (OSError, ValueError) as error:
        reason = f"{folder}: a RAPL zone is damaged ({error})"
        return _Found((), (reason, "check the powercap driver's log"))
    zones, remark = _counted(every, once)
    if not zones:
        return _Found((), (f"{folder} has no RAPL package or DRAM zone", _ABSENT_REMEDY))
    helped: str | None = "there is none"
    if reader is not None:
        helped = _try_reader(reader, zones)
    # A helper may have the right that we do not have.
    problem = None
    if helped:
        problem = _problem(folder, zones)
    return _Found(zones, problem, helped, remark)


def _counted(zones: Sequence[_Zone], once: bool | None) -> tuple[tuple[_Zone, ...], str | None]:
    """The zones that count, and a remark about those of one package.

    Zones are of one package and one kind if they have the same `counts`. With `once`, only the
    first of them counts. If unknown (None), they stay marked, so that a window in which they move
    in step is detected. Else each is a separate counter.
    """
    first: dict[str, _Zone] = {}
    shared: dict[str, int] = {}
    for zone in zones:
        counts = zone.channel.counts or zone.channel.name
        first.setdefault(counts, zone)
        shared[counts] = shared.get(counts, 0) + 1
    repeated = [counts for counts, times in shared.items() if times > 1]
    if once:
        remark = "; ".join(
            f"{shared[counts]} zones show {counts}: eeio uses {first[counts].channel.name}"
            for counts in repeated
        )
        return tuple(map(_alone, first.values())), remark or None
    if not repeated or once is False:
        return tuple(map(_alone, zones)), None
    return tuple(zones), f"several zones of {', '.join(repeated)} are added, while they differ"


def _alone(zone: _Zone) -> _Zone:
    return replace(zone, channel=replace(zone.channel, counts=None))


def _try_reader(reader: Path, zones: Sequence[_Zone]) -> str | None:
    return try_reader(reader, _given(zones), _names(zones))


def _given(zones: Sequence[_Zone]) -> Path | None:
    """The powercap folder as an argument of the helper: none if it is the kernel's."""
    folder = zones[0].energy_file.parent.parent
    if folder == Path("/") / POWERCAP:
        return None
    return folder.absolute()


def _names(zones: Sequence[_Zone]) -> list[str]:
    return [zone.energy_file.parent.name for zone in zones]


def _problem(folder: Path, zones: Sequence[_Zone]) -> tuple[str, str] | None:
    """(reason, remedy) if we cannot read a zone ourselves."""
    for zone in zones:
        try:
            read_int(zone.energy_file)
        except PermissionError:
            remedy = _PERMISSION_REMEDY.format(files=folder / "intel-rapl:*/energy_uj")
            return f"{zone.energy_file}: {_PERMISSION_REASON}", remedy
        except (OSError, ValueError) as error:
            return f"{zone.energy_file}: cannot be read ({error})", _ABSENT_REMEDY
    return None


def _zones(folder: Path, max_power_w: float) -> tuple[_Zone, ...]:
    if not folder.is_dir():
        return ()
    folders = sorted((d for d in folder.iterdir() if _ZONE.fullmatch(d.name)), key=by_number)
    zones: list[_Zone] = []
    for zone_folder in folders:
        label = read_text(zone_folder / "name")
        domain = _domain(label)
        # A package left out because of an unknown name would be missing in the sum.
        if not label or (domain is None and label != "psys" and zone_folder.name.count(":") == 1):
            raise ValueError(
                f"{zone_folder / 'name'} is {label!r:.40}, which is not a RAPL zone's name"
            )
        if domain is None:
            continue
        name = f"rapl:{_package_prefix(folder, zone_folder)}{label}"
        # Two zones may have one label where each die is shown as the package.
        if name in {zone.channel.name for zone in zones}:
            name = f"{name}@{zone_folder.name}"
        zones.append(
            _Zone(
                channel=Channel(
                    name=name,
                    domain=domain,
                    quantity="energy_j",
                    range_j=ENERGY.checked(
                        read_int(zone_folder / "max_energy_range_uj") / 1e6,
                        f"{zone_folder}: max_energy_range_uj",
                    )
                    or None,
                    accuracy_relative=ACCURACY[domain],
                    resolution=RESOLUTION_J,
                    max_power_w=max_power_w,
                    contents=CONTENTS[domain],
                    counts=_counts(name, domain),
                ),
                energy_file=zone_folder / "energy_uj",
            )
        )
    return tuple(zones)


def _counts(name: str, domain: Domain) -> str:
    """The source that a zone counts: `package-0` of `rapl:package-0-die-1`, `package-0 dram` of its
    memory."""
    match = PACKAGE.search(name)
    package = name
    if match:
        package = match[0]
    if domain == "package":
        return package
    return f"{package} {domain}"


def _domain(label: str) -> Domain | None:
    """`package-0`, `package-0-die-1` -> package; `dram` -> dram; parts and psys -> None."""
    if label.startswith("package"):
        return "package"
    if label == "dram":
        return "dram"
    return None


def _package_prefix(folder: Path, zone_folder: Path) -> str:
    """`package-0/` for a part of package 0, so that two packages' DRAM have different names."""
    parent, _, _ = zone_folder.name.rpartition(":")
    is_part = ":" in parent
    if is_part:
        return f"{read_text(folder / parent / 'name')}/"
    return ""
