"""The order in which a run's probes start and stop, whatever ends the run."""

import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from eeio.errors import EeioError
from eeio.measure.campaign.probes import Environment, Probe, Suspension, observe
from eeio.record.run import CacheLayers, Experiment, Run
from eeio.record.tools.capture import Capture, PhaseResult, ToolResult
from eeio_power.suspension import STOPPED

CAPTURE = Capture(Path(), {}, 0, 1.0, 2.5, 0.0, ())


class Noted(Probe):
    """Writes down what is asked of it; `fails` is the step that raises."""

    def __init__(self, name: str, notes: list[str], fails: str = "") -> None:
        self.name = name
        self.notes = notes
        self.fails = fails

    @property
    def settings(self) -> Environment:
        return {f"OF_{self.name.upper()}": self.name}

    def start(self) -> None:
        self._note("start")

    def stop(self, ended_s: float | None) -> None:
        self._note("stop", "" if ended_s is None else f" {ended_s}")

    def _note(self, step: str, when: str = "") -> None:
        self.notes.append(f"{step} {self.name}{when}")
        if self.fails == step:
            raise EeioError(f"{self.name} cannot {step}")


def three(notes: list[str], **fails: str) -> list[Noted]:
    return [Noted(name, notes, fails.get(name, "")) for name in ("a", "b", "c")]


def test_probes_stop_in_reverse_with_the_time_of_the_end() -> None:
    notes: list[str] = []

    def tool(settings: Mapping[str, str]) -> Capture:
        notes.append(",".join(settings.values()))
        return CAPTURE

    assert observe(three(notes), tool) is CAPTURE
    assert notes == [
        "start a", "start b", "start c", "a,b,c", "stop c 2.5", "stop b 2.5", "stop a 2.5",
    ]  # fmt: skip


def test_a_probe_that_cannot_start_is_stopped_with_those_before_it() -> None:
    notes: list[str] = []
    with pytest.raises(EeioError, match="b cannot start"):
        observe(three(notes, b="start"), lambda settings: CAPTURE)
    assert notes == ["start a", "start b", "stop b", "stop a"]


def test_all_probes_stop_where_the_tool_fails() -> None:
    notes: list[str] = []

    def tool(settings: Mapping[str, str]) -> Capture:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        observe(three(notes), tool)
    assert notes[3:] == ["stop c", "stop b", "stop a"]


def test_a_probe_that_cannot_stop_does_not_keep_the_others_from_it() -> None:
    notes: list[str] = []
    with pytest.raises(EeioError, match="b cannot stop"):
        observe(three(notes, b="stop"), lambda settings: CAPTURE)
    assert notes[3:] == ["stop c 2.5", "stop b 2.5", "stop a 2.5"]


def observed_by(probe: Probe) -> tuple[str, ...]:
    """Why the phase of a run is invalid."""
    phase = PhaseResult("write", "write", "sequential", 4096, 1_000_000, 1e6, 0.0, 1.0, "test")
    experiment = Experiment("device", "fio", "write", "sequential", 4096, CacheLayers("off"))
    run = Run(experiment, 1, 0, "quick", "2026-01-01T00:00:00Z", 0.0, 2.0, 0, (), "raw")
    (found,) = probe.add_to_result(ToolResult((phase,)), run).phases
    return found.invalid


@pytest.mark.parametrize(("seconds", "reasons"), [
    (0.0, ()),
    (0.01, ()),
    (31.0, ("the machine was suspended for 31.0 s meanwhile",)),
])  # fmt: skip
def test_a_run_of_a_suspended_machine_is_invalid(seconds: float, reasons: tuple[str, ...]) -> None:
    clock = iter((7.0, 7.0 + seconds))
    probe = Suspension(lambda: next(clock))
    observe([probe], lambda settings: CAPTURE)
    assert observed_by(probe) == reasons


def test_a_run_is_invalid_while_eeio_was_stopped() -> None:
    probe = Suspension(lambda: 0.0)

    def stopped(settings: Mapping[str, str]) -> Capture:
        signal.raise_signal(signal.SIGCONT)
        return CAPTURE

    observe([probe], stopped)
    assert observed_by(probe) == (STOPPED,)
    assert signal.getsignal(signal.SIGCONT) == signal.SIG_DFL
