"""Replaces data that identify a machine or its user, equal values by equal ones.

Names that the machine tells (hosts, users, serial numbers of it and its drives), and what looks
like an address or a serial number: IP, MAC, UUID, WWN, EUI. Replacements look like what they stand
for (RFC 5737, RFC 3849), so that what reads them still can.
"""

import ipaddress
import os
import pwd
import re
import socket
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from eeio_power.sysfs import read_optional_text

# Names that say nothing of anybody, and stand in other words' places: ID=debian, /home, "Linux".
_EVERYBODYS = frozenset(
    {
        "root",
        "localhost",
        "debian",
        "ubuntu",
        "fedora",
        "centos",
        "alma",
        "rocky",
        "arch",
        "linux",
        "raspberrypi",
        "pi",
        "vm",
        "user",
        "admin",
        "test",
        "host",
        "server",
        "node",
        "home",
        "disk",
        "system",
        "package",
        "core",
        "dram",
        "none",
        "nobody",
        "on",
        "off",
        "cpu",
        "sda",
        "intel",
        "amd",
        "arm",
        "power",
        "energy",
    }
)
_HEX = "[0-9A-Fa-f]"

_PATTERNS: tuple[tuple[str, str], ...] = (
    ("UUID", rf"\b{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}\b"),
    ("WWN", r"\b(?:naa|eui|t10|nvme)\.[\w.-]{8,}"),
    ("WWN", rf"\b0x{_HEX}{{16}}\b"),
    # Of a multipath disk (36001405...), of a namespace, of an installation: NAA, NGUID, machine-id.
    ("WWN", rf"(?<![0-9A-Za-z])3?{_HEX}{{32}}(?![0-9A-Za-z])"),
    ("MAC address", rf"(?<![\w:])(?:{_HEX}{{2}}[:-]){{5}}{_HEX}{{2}}(?![\w:])"),
    ("IP address", r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"),
    ("IP address", rf"(?<![\w:.]){_HEX}{{0,4}}(?::{_HEX}{{0,4}}){{2,7}}(?![\w:.])"),
    # Of a serial adapter, in its name below /dev/serial/by-id.
    ("serial number", r"(?<=_)[A-Za-z0-9]+(?=-if\d\d)"),
)


class Replacer:
    """Replaces in any number of texts; `counts` is the number of different ones of each kind."""

    def __init__(
        self, hosts: Iterable[str], users: Iterable[str], serials: Iterable[str] = ()
    ) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self.counts: Counter[str] = Counter()
        self._names: list[tuple[str, re.Pattern[str]]] = [
            (kind, re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])"))
            for kind, names in (
                ("host name", hosts),
                ("user name", users),
                ("serial number", serials),
            )
            # The longest first: of host.example.org and host.
            for name in sorted(set(names), key=lambda name: (-len(name), name))
            if len(name) > 1 and name.lower() not in _EVERYBODYS
        ]

    def __call__(self, text: str, addresses: bool = True) -> str:
        """`addresses`: versions of firmware and kernels look like those of IP, and have none."""
        for kind, pattern in self._names:
            text = pattern.sub(self._substitute(kind), text)
        for kind, expression in _PATTERNS:
            if addresses or kind != "IP address":
                text = re.sub(expression, self._substitute(kind), text)
        return text

    def _substitute(self, kind: str) -> Callable[[re.Match[str]], str]:
        return lambda match: self._replacement(kind, match[0])

    def _replacement(self, kind: str, found: str) -> str:
        if kind == "IP address" and not _is_somebodys(found):
            return found
        if found in self._known.values():
            return found
        key = (kind, found.lower())
        if key not in self._known:
            self.counts[kind] += 1
            self._known[key] = _made(kind, self.counts[kind], found)
        return self._known[key]


def own_names() -> tuple[list[str], list[str]]:
    """The names of this machine, and those of its people."""
    hosts = [socket.gethostname()]
    hosts += [name.partition(".")[0] for name in hosts]
    users = [os.environ.get(variable, "") for variable in ("USER", "LOGNAME", "SUDO_USER")]
    with suppress(OSError):
        users += [entry.pw_name for entry in pwd.getpwall() if 1000 <= entry.pw_uid < 65000]
    with suppress(KeyError):
        users.append(pwd.getpwuid(os.getuid()).pw_name)
    return list(filter(None, hosts)), list(filter(None, users))


_SERIALS = (
    "sys/class/dmi/id/*_serial",
    "sys/class/dmi/id/*_asset_tag",
    "sys/class/nvme/nvme*/serial",
    "sys/block/*/serial",
    "sys/block/*/device/serial",
    "sys/class/power_supply/*/serial_number",
    "sys/class/hwmon/hwmon*/power*_serial_number",
    "sys/class/hwmon/hwmon*/device/*_serial_number",
    "proc/device-tree/serial-number",
)
_LEAST_SERIAL = 6


def own_serials(root: Path) -> list[str]:
    """The serial numbers below `root`: not captured, but they stand in other things' names too."""
    texts = []
    for pattern in _SERIALS:
        for path in root.glob(pattern):
            texts.append(read_optional_text(path))
    # "Default string", "To Be Filled By O.E.M.", "0000000000" are nobody's.
    serials = []
    for text in dict.fromkeys((text or "").strip("\0 ") for text in texts):
        if len(text) >= _LEAST_SERIAL and re.search("[1-9]", text) and len(set(text)) > 1:
            serials.append(text)
    return serials


def _is_somebodys(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def _made(kind: str, number: int, found: str) -> str:
    if kind == "UUID":
        return f"00000000-0000-4000-8000-{number:012x}"
    if kind == "WWN":
        # The kind of name stays.
        head, dot, _ = found.rpartition(".") if found[:2] != "0x" else ("", "", "")
        return f"{head.partition('.')[0]}{dot}0x{number:016x}"
    if kind == "MAC address":
        return f"02:00:00:00:{number >> 8 & 0xFF:02x}:{number & 0xFF:02x}"
    if kind == "IP address":
        if ":" in found:
            return f"2001:db8::{number:x}"
        if number < 255:
            return f"192.0.2.{number}"
        return f"198.51.{number >> 8}.{number & 0xFF}"
    word = {"host name": "host", "user name": "user", "serial number": "SERIAL"}[kind]
    return f"{word}{number}"
