"""eeio.json: the format of profiles without a parser of their own."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eeio.errors import ToolOutputError
from eeio.record.phase_times import Stretch
from eeio.record.run import ContextValue, Durable
from eeio.record.tools import parse
from eeio.record.tools.capture import Capture, ToolResult

PHASE: dict[str, Any] = {
    "name": "dump",
    "operation": "write",
    "spatiality": "strided",
    "request_size_bytes": 131072,
    "bytes_moved": 10485760,
    "start_monotonic_s": 100.5,
    "end_monotonic_s": 100.75,
    "bandwidth_bytes_per_s": 41943040.0,
    "metrics": {"iops": 320},
}


def of(folder: Path, body: Any) -> ToolResult:
    text = body if isinstance(body, str) else json.dumps(body)
    (folder / "eeio.json").write_text(text)
    # A tool without a parser module of its own.
    return parse("somebody-s-workload", Capture(folder, {}, 0, 100.0, 102.0, 1.7e9))


def document(**changes: Any) -> dict[str, Any]:
    return {"schema_version": 1, "phases": [{**PHASE, **changes}]}


def test_a_phase_and_a_context_value(tmp_path: Path) -> None:
    body = {**document(), "context": [{"name": "ranks", "value": 4, "unit": "1"}]}
    result = of(tmp_path, body)
    (phase,) = result.phases
    assert (phase.start_s, phase.end_s) == (0.5, 0.75)
    assert phase.bytes_moved == 10485760
    assert phase.metrics == {"iops": 320.0}
    assert phase.window_source == "the workload's clock"
    assert result.context == (ContextValue("ranks", 4.0, "1"),)


def test_what_may_be_missing(tmp_path: Path) -> None:
    body = document(
        start_monotonic_s=None, bandwidth_bytes_per_s=None, request_size_bytes=None, metrics={}
    )
    (phase,) = of(tmp_path, body).phases
    assert (phase.start_s, phase.end_s, phase.bandwidth_bytes_per_s) == (None, None, None)
    assert "reports no times" in phase.window_source


def test_metadata_moves_no_data(tmp_path: Path) -> None:
    body = document(
        operation="metadata", spatiality="none", request_size_bytes=None, bytes_moved=0,
        bandwidth_bytes_per_s=None, metrics={"operations_per_s": 909.5},
    )  # fmt: skip
    (phase,) = of(tmp_path, body).phases
    assert (phase.operation, phase.spatiality, phase.bytes_moved) == ("metadata", "none", 0)
    assert phase.metrics == {"operations_per_s": 909.5}


def test_a_phase_in_stretches(tmp_path: Path) -> None:
    parts = [[100.5, 100.55], [100.7, 100.75]]
    body = document(stretches_monotonic_s=parts, includes_flush=True)
    (phase,) = of(tmp_path, body).phases
    assert [(round(s.start_s, 9), round(s.end_s, 9)) for s in phase.stretches] == [
        (0.5, 0.55), (0.7, 0.75),
    ]  # fmt: skip
    assert isinstance(phase.stretches[0], Stretch)
    recorded = phase.recorded()
    assert recorded.lasted_s == pytest.approx(0.1)
    # Its bandwidth is of that time alone, and of no other.
    assert recorded.why_no_efficiency is None and recorded.io_share == pytest.approx(2.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stretches_monotonic_s": [[100.5, 100.7], [100.6, 100.75]]}, "do not follow each other"),
        ({"stretches_monotonic_s": [[100.5, 100.5], [100.6, 100.75]]}, "do not follow each other"),
        ({"stretches_monotonic_s": [[100.5, 100.7]]}, "of a phase from"),
        ({"stretches_monotonic_s": [[100.5]]}, "not a result"),
        ({"stretches_monotonic_s": [["a", "b"]]}, "not a result"),
        ({"stretches_monotonic_s": 7}, "not a result"),
        (
            {"stretches_monotonic_s": [[100.5, 100.75]], "start_monotonic_s": None},
            "without a known window",
        ),
        (
            {"stretches_monotonic_s": [[100.5, 100.75]], "durable_monotonic_s": 101.5,
             "durable_source": "an fsync"},
            "lasts until it is durable",
        ),
    ],
)  # fmt: skip
def test_stretches_that_cannot_be(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolOutputError, match=message):
        of(tmp_path, document(**changes))


FLUSHED = {"durable_monotonic_s": 101.5, "durable_source": "the program's own fsync"}


def test_a_write_until_it_is_durable(tmp_path: Path) -> None:
    (phase,) = of(tmp_path, document(**FLUSHED)).phases
    assert phase.until_durable == Durable(1.5, 10485760.0, "the program's own fsync")
    assert (phase.end_s, phase.bandwidth_bytes_per_s) == (0.75, 41943040.0)
    assert (phase.includes_flush, phase.durable_reason) == (False, None)


def test_a_program_that_computes_reports_its_own_rate(tmp_path: Path) -> None:
    (phase,) = of(tmp_path, document(**FLUSHED, durable_bandwidth_bytes_per_s=2e7)).phases
    assert phase.until_durable == Durable(1.5, 2e7, "the program's own fsync")


def test_what_else_is_reported_of_a_write(tmp_path: Path) -> None:
    body = document(includes_flush=True, durable_reason="gone", spatiality_seen="sequential")
    (phase,) = of(tmp_path, body).phases
    assert phase.until_durable is None
    assert (phase.includes_flush, phase.durable_reason) == (True, "gone")
    assert phase.spatiality_seen == "sequential"
    (phase,) = of(tmp_path, document(durable_monotonic_s=None, spatiality_seen=None)).phases
    assert (phase.until_durable, phase.spatiality_seen, phase.includes_flush) == (None, None, False)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (
            document(**FLUSHED, start_monotonic_s=None),
            "has a time of durability, but no start and end",
        ),
        (document(durable_monotonic_s=101.5), "durable_source"),
        (document(**{**FLUSHED, "durable_monotonic_s": 100.6}), "before it ends"),
        (document(**{**FLUSHED, "durable_monotonic_s": 200.0}), "when it is durable, of 2.0 s"),
        (document(includes_flush="yes"), "neither true nor false"),
        (document(spatiality_seen=""), "not a name"),
        ("", "empty"),
        ('{"schema_version": 1, "phases": [', "not a result"),
        ("[]", "not a result"),
        ({"schema_version": 2, "phases": []}, "schema_version 2, this program reads 1"),
        ({"schema_version": 1, "phases": []}, "neither phases nor context"),
        (document(operation="erase"), "erase"),
        (document(bytes_moved=-1), "negative"),
        (document(bytes_moved="many"), "not a number"),
        (document(bandwidth_bytes_per_s=float("nan")), "not a number"),
        (document(end_monotonic_s=100.25), "from 0.5 to 0.25 s"),
        (document(end_monotonic_s=200.0), "of 2.0 s"),
    ],
)
def test_bad_documents_are_named(tmp_path: Path, body: Any, found: str) -> None:
    with pytest.raises(ToolOutputError, match=rf"eeio\.json: .*{found}"):
        of(tmp_path, body)


@given(cut=st.integers(0, 400))
def test_truncated_output_never_gives_a_wrong_number(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    text = json.dumps(document())
    folder = tmp_path_factory.mktemp("cut")
    try:
        result = of(folder, text[:cut])
    except ToolOutputError:
        return
    assert result == of(folder, text)
