"""lmbench 3: the performance of the machine under the I/O stack, as context values.

Its programs print bare figures on standard error; the profile puts a line `# COMMAND` before each.
Bandwidths are in 10^6 bytes a second, memory latencies in ns, system calls in us.
"""

import re
from collections.abc import Callable

from eeio.errors import ToolOutputError
from eeio.files import inputs
from eeio.record.run import ContextValue
from eeio.record.tools.capture import Capture, ToolResult, naming
from eeio.record.tools.description import About

ABOUT = About(named=())

OUTPUT_FILE = "stderr.txt"
_END = "end"
_NUMBER = r"(\d{1,15}(?:\.\d{1,15})?)"
_OPERATIONS = {"rd": "read", "wr": "write", "cp": "copy"}


def parse(capture: Capture) -> ToolResult:
    """The context values of one invocation; a part that failed is a note, not a value."""
    source = str(capture.directory / OUTPUT_FILE)
    text = capture.text(OUTPUT_FILE)
    pieces = re.split(r"^# (.*)\n", text, flags=re.M)
    commands = list(zip(pieces[1::2], pieces[2::2], strict=True))
    if not commands or commands[-1][0] != _END:
        raise ToolOutputError(
            f"{source}: not the profile's lmbench output, or cut off: no line `# {_END}`"
        )
    context: list[ContextValue] = []
    notes: list[str] = []
    for command, output in commands[:-1]:
        program, *arguments = command.split() or [""]
        read = _READERS.get(program)
        values = []
        if read and arguments:
            values = read(output, arguments)
        if not values:
            printed = " ".join(output.split())[:80] or "nothing"
            notes.append(f"lmbench: {command}: no figure, it said {printed!r}")
        context += values
    if not context:
        raise ToolOutputError(f"{source}: no program of lmbench gave a figure: {notes}")
    return ToolResult(context=tuple(context), notes=tuple(notes))


# Name of a system call in lmbench's summary -> the last word of `lat_syscall`.
_SIMPLE = {
    "syscall": "null",
    "read": "read",
    "write": "write",
    "stat": "stat",
    "fstat": "fstat",
    "open/close": "open",
}


def parse_results(text: str, source: str = "lmbench's results") -> ToolResult:
    """The context values of a results file that lmbench's `make results` wrote.

    Memory read and write bandwidth of every block, under names that end in the block's bytes, and
    of the largest one under the names that the profile's runs have; latencies of system calls.
    Raises ToolOutputError when the file is not lmbench's, or is cut off before these.
    """
    with naming(source):
        inputs.check_lines(text)
        return _results(text, source)


def _results(text: str, source: str) -> ToolResult:
    if not text.startswith("[lmbench"):
        raise ToolOutputError(f"{source}: not lmbench's results, it begins {text[:60]!r}")
    context = [
        ContextValue(f"syscall_{_SIMPLE[name]}_latency", float(value) * 1e-6, "s")
        for name, value in re.findall(rf"^Simple (\S+): {_NUMBER} microseconds$", text, re.M)
        if name in _SIMPLE
    ]
    for operation in ("read", "write"):
        section = re.search(
            rf"^Memory {operation} bandwidth\n((?:{_NUMBER} {_NUMBER}\n)+)", text, re.M
        )
        if section is None:
            raise ToolOutputError(f"{source}: cut off: no `Memory {operation} bandwidth`")
        rows = [line.split() for line in section[1].splitlines()]
        name = f"memory_{operation}_bandwidth"
        for megabytes, rate in rows:
            block = round(float(megabytes) * 1e6)
            context.append(ContextValue(f"{name}_{block}_bytes", float(rate) * 1e6, "B/s"))
        context.append(ContextValue(name, float(rows[-1][1]) * 1e6, "B/s"))
        context.append(ContextValue(f"{name}_working_set", float(rows[-1][0]) * 1e6, "B"))
    return ToolResult(context=tuple(context))


def _bw_mem(output: str, arguments: list[str]) -> list[ContextValue]:
    match = re.fullmatch(rf"{_NUMBER} {_NUMBER}\n", output)
    if match is None:
        return []
    name = f"memory_{_OPERATIONS.get(arguments[-1], arguments[-1])}_bandwidth"
    return [
        ContextValue(name, float(match[2]) * 1e6, "B/s"),
        ContextValue(f"{name}_working_set", float(match[1]) * 1e6, "B"),
    ]


def _lat_mem_rd(output: str, arguments: list[str]) -> list[ContextValue]:
    """The first and the last block: the innermost cache's latency and the memory's."""
    rows = re.findall(rf"^{_NUMBER} {_NUMBER}$", output, re.M)
    wanted = None
    if len(arguments) > 1:
        wanted = re.fullmatch(_NUMBER, arguments[-2])
    if not rows or wanted is None or float(rows[-1][0]) != float(wanted[1]):
        return []
    wanted_mib = float(wanted[1])
    return [
        ContextValue("cache_latency", float(rows[0][1]) * 1e-9, "s"),
        ContextValue("memory_latency", float(rows[-1][1]) * 1e-9, "s"),
        ContextValue("memory_latency_working_set", wanted_mib * (1 << 20), "B"),
    ]


def _lat_syscall(output: str, arguments: list[str]) -> list[ContextValue]:
    match = re.fullmatch(rf"Simple \w+: {_NUMBER} microseconds\n", output)
    if match is None:
        return []
    return [ContextValue(f"syscall_{arguments[-1]}_latency", float(match[1]) * 1e-6, "s")]


def _lat_fs(output: str, _arguments: list[str]) -> list[ContextValue]:
    """Rows of size, files, creations a second, deletions a second."""
    values = []
    for size, _, created, deleted in re.findall(
        rf"^(\d{{1,9}}k)\t(\d{{1,18}})\t{_NUMBER}\t{_NUMBER}\n", output, re.M
    ):
        values.append(ContextValue(f"file_create_rate_{size}", float(created), "1/s"))
        values.append(ContextValue(f"file_delete_rate_{size}", float(deleted), "1/s"))
    return values


_READERS: dict[str, Callable[[str, list[str]], list[ContextValue]]] = {
    "bw_mem": _bw_mem,
    "lat_mem_rd": _lat_mem_rd,
    "lat_syscall": _lat_syscall,
    "lat_fs": _lat_fs,
}
