"""A replay is recorded with what its trace is."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from eeio.record import tools
from eeio.record.tools.capture import Capture

SIZE = 4096


def lines(operation: str, place: Callable[[int], int], client: int = 0, count: int = 20) -> str:
    return "".join(f"{n / 100},{client},{operation},{place(n)},{SIZE}\n" for n in range(count))


def recorded(folder: Path, trace: str | None) -> tuple[str, tuple[str, ...]]:
    """Spatiality and notes of a replay of that trace; None: it is gone."""
    path = folder / "trace.csv"
    if trace is not None:
        rows = sorted(trace.splitlines(), key=lambda row: float(row.partition(",")[0]))
        path.write_text("# made\ntime,client,op,offset,length\n" + "\n".join(rows) + "\n")
    phase = {
        "name": "read", "operation": "read", "spatiality": "mixed", "request_size_bytes": None,
        "bytes_moved": 4096, "start_monotonic_s": None, "end_monotonic_s": None,
        "bandwidth_bytes_per_s": 1.0,
    }  # fmt: skip
    (folder / "eeio.json").write_text(json.dumps({"schema_version": 1, "phases": [phase]}))
    capture = Capture(folder, {"replay": str(path)}, 0, 0.0, 1.0, 0.0)
    result = tools.parse("dataserver", capture)
    return result.phases[0].spatiality, result.notes


@pytest.mark.parametrize(
    ("trace", "reported"),
    [
        (lines("read", lambda n: n * SIZE), "sequential"),
        (lines("read", lambda n: n * 4 * SIZE), "strided"),
        (lines("read", lambda n: n * n * 37 % 101 * SIZE), "random"),
        # Each client is sequential for itself, however their requests mix.
        (
            lines("write", lambda n: n * SIZE, 0) + lines("write", lambda n: (900 + n) * SIZE, 1),
            "sequential",
        ),
        (lines("write", lambda n: n * SIZE) + lines("read", lambda n: n * SIZE), "sequential"),
        (lines("write", lambda n: n * SIZE) + lines("read", lambda n: n * 4 * SIZE), "mixed"),
        # One request a client: no step from one to the next.
        (lines("read", lambda _: 0, 0, 1) + lines("read", lambda _: 8192, 1, 1), "mixed"),
    ],
)
def test_spatiality_is_that_of_the_trace(tmp_path: Path, trace: str, reported: str) -> None:
    assert recorded(tmp_path, trace) == (reported, ())


def test_a_trace_that_is_gone_is_reported(tmp_path: Path) -> None:
    found, notes = recorded(tmp_path, None)
    assert found == "mixed"
    assert "its trace cannot be read" in notes[0] and "trace.csv" in notes[0]


def test_patterns_are_reported_by_the_program(tmp_path: Path) -> None:
    recorded(tmp_path, None)
    body = (tmp_path / "eeio.json").read_text().replace("mixed", "strided")
    (tmp_path / "eeio.json").write_text(body)
    result = tools.parse("dataserver", Capture(tmp_path, {}, 0, 0.0, 1.0, 0.0))
    assert result.phases[0].spatiality == "strided" and result.notes == ()
