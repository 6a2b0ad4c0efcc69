"""Stored outputs of tools, read by the parsers of their profiles, without the times of eeio's runs.

A stored output contains no times of its I/O, so its phases have no window.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from eeio.importing import elbencho, io500, mdtest
from eeio_limits import quantities as q
from eeio_results.errors import EeioError, ToolOutputError
from eeio_results.tools import bonnie, fio, ior, iozone, lmbench
from eeio_results.tools.capture import Capture, PhaseResult, ToolResult, naming

_NO_WINDOW = "imported: a stored output contains no times of its I/O"
Read = Callable[[str, str], ToolResult]
"""Given a text and its name in messages."""


def read(form: str, text: str, source: str) -> ToolResult:
    """What an output in one of FORMATS tells. Raises EeioError when it is cut off, damaged, of
    another tool, or tells of an error."""
    result = FORMATS[form](text, source)
    return replace(result, phases=tuple(map(_without_window, result.phases)))


def duration_s(result: ToolResult) -> float:
    """How long the tool's I/O lasted, by its own word or by bytes over bandwidth; 0 without both.
    Its phases ran one after the other, but fio's jobs at once."""
    return max((_of_phase(phase) for phase in result.phases), default=0.0)


def _of_phase(phase: PhaseResult) -> float:
    told = phase.metrics.get("runtime_s")
    if told is not None:
        return told
    rate = phase.bandwidth_bytes_per_s
    return (phase.bytes_moved or 0) / rate if rate else 0.0


def _without_window(phase: PhaseResult) -> PhaseResult:
    if phase.start_s is None and phase.end_s is None:
        return phase
    return replace(
        phase, start_s=None, end_s=None, window_source=_NO_WINDOW, until_durable=None,
        durable_reason=phase.durable_reason if phase.includes_flush else _NO_WINDOW,
    )  # fmt: skip


def _as_run(parse: Callable[[Capture], ToolResult], name: str) -> Read:
    """The parser of an eeio run, given the one file that it reads."""

    def read_text(text: str, source: str) -> ToolResult:
        with TemporaryDirectory(prefix="eeio-import-") as folder:
            kept = Path(folder) / name
            kept.write_text(text, encoding="utf-8", errors="surrogateescape")
            # Room for any run; what lies in it is taken out again.
            capture = Capture(Path(folder), {"buffer": "on"}, 0, 0.0, q.DURATION.most, 0.0)
            try:
                with naming(source):
                    return parse(capture)
            except EeioError as error:
                words = str(error).replace(str(kept), source).replace(folder, source)
                raise ToolOutputError(words) from error

    return read_text


FORMATS: Mapping[str, Read] = MappingProxyType(
    {
        "fio": fio.parse_text,
        "fio-json": _as_run(fio.parse, fio.OUTPUT_FILE),
        "ior": ior.parse_text,
        "iozone": _as_run(iozone.parse, iozone.OUTPUT_FILE),
        "bonnie": _as_run(bonnie.parse, bonnie.OUTPUT_FILE),
        "mdtest": mdtest.parse_text,
        "io500": io500.parse_text,
        "elbencho": elbencho.parse_text,
        "lmbench": lmbench.parse_results,
    }
)
"""Readers by `format` in a map."""
