"""Which energy counters of a processor package are counters of their own.

AMD's and Hygon's processors have one package counter a package; Linux shows it once a die on parts
with several (Threadripper 1950X; from 6.10 until it was mended in 6.12, every part with CPUID leaf
0x80000026). Intel's Cascade Lake-AP has a true counter a die. The kernel's own rule is the same:
`rapl_msrs_are_pkg_scope` in drivers/powercap/intel_rapl_common.c.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from eeio_power.errors import PowerError

DIES_OPTION = (
    "once: a package's dies show one counter; each: every die has its own "
    "(default: once on AMD and Hygon, else each, and refused where they move in step)"
)

_ONE_COUNTER = frozenset(("AuthenticAMD", "HygonGenuine"))
_VENDOR = re.compile(rb"^vendor_id\s*:\s*(\w+)", re.M)
# The vendor stands in the first lines; the file of a large machine has megabytes.
_HEAD_BYTES = 4096

PACKAGE = re.compile(r"package-[0-9]+")


def dies_once(spec: str, options: Mapping[str, str], root: Path) -> bool | None:
    """Whether a package's dies show one counter; None: not known, so their steps must tell.

    Raises PowerError for an option that is neither.
    """
    wanted = options.get("dies")
    if wanted not in (None, "once", "each"):
        raise PowerError(f"meter '{spec}': dies={wanted}: it is once or each")
    if wanted is not None:
        return wanted == "once"
    return True if one_counter_a_package(root) else None


def one_counter_a_package(root: Path) -> bool:
    """Whether the processors below `root` are of a vendor with one counter a package."""
    try:
        with (root / "proc/cpuinfo").open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    match = _VENDOR.search(head)
    return match is not None and match[1].decode("ascii", "replace") in _ONE_COUNTER
