"""What a parser's module says about its tool, as `ABOUT`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

BytesOf = Literal["tool", "process", "drive"]


@dataclass(frozen=True)
class About:
    """A module that says nothing is of a tool that reports its own bytes, whose labels show every
    argument of an experiment."""

    program: str | None = None
    """The name of its program, if it is not that of the tool."""
    bytes_of: BytesOf = "tool"
    """The source of the bytes in MB, MB/s, MB/J and J/GB: those that the tool reports, those that
    the kernel counts for its processes, or those of the drive."""
    reports_all_bytes: bool = False
    """Whether all I/O of its files is in its report: other I/O on the drive can be judged then."""
    words: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """How labels write an argument with a value, in this order: `shared file` for
    ("file", "shared")."""
    named: tuple[str, ...] | None = None
    """The arguments that labels write as `name=value` where an experiment has them, in this order.
    None: all of them."""
    layer_rank: int | None = None
    """The place among the tools that represent one layer of the I/O path; the lowest of those that
    were measured does. None for a tool whose work differs from that of other layers."""
    own_file: tuple[str, str] | None = None
    """The argument with which each process has its own file, for a tool whose processes share
    one otherwise."""


FSYNC = {
    ("fsync", "on"): "fsync",
    ("fsync", "end"): "fsync at the end",
    ("fsync", "off"): "fsync=off",
}
"""`words` of tools with the argument `fsync`."""
