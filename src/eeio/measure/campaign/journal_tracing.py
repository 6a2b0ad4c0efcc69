"""Traces the journal of ext4 around a run, if a study or the user requests it, and delays fsync
calls for a study's `delayjc`."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from eeio import studies
from eeio.errors import EeioError
from eeio.machine.image import DELAYJC
from eeio.machine.undo import UndoJournal
from eeio.measure.campaign.probes import Environment, Probe
from eeio.measure.campaign.variants import VARIANTS
from eeio.measure.campaign.volumes import Volume
from eeio.measure.journal import delayjc
from eeio.measure.journal.trace import JournalTracer, find_ext4
from eeio.record.design import PlannedExperiment, StudyProtocol
from eeio.record.run import Run
from eeio.record.tools.capture import PhaseResult, ToolResult
from eeio.studies import JournalFigures
from eeio.traces import jbd2
from eeio.traces.journal_figures import figures

_TRACE = "journal.gz"
_NONE_DELAYED = (
    "libdelayjc.so delayed no call, so this was plain ext4; the tool may be static or setuid"
)


class JournalWatch(Probe):
    """The journal of the volume's file system; inactive unless requested.

    If the journal cannot be traced, its figures are missing, with a note. If the library cannot be
    preloaded, the run fails (EeioError), because it would measure another variant.
    """

    def __init__(
        self,
        planned: PlannedExperiment,
        volume: Volume,
        raw: Path,
        journal: UndoJournal,
        study: StudyProtocol | None,
        *,
        requested: bool = False,
    ) -> None:
        self._planned = planned
        self._directory = volume.directory
        self._raw = raw
        self._journal = journal
        self._study = study
        self._requested = requested
        self._stack = ExitStack()
        self._trace: JournalTracer | None = None
        self._state: Path | None = None
        self._delays: delayjc.DelayedCalls | None = None
        self._loaded = False
        self._settings: Environment = {}
        self._notes: list[str] = []

    @property
    def settings(self) -> Environment:
        return self._settings

    def start(self) -> None:
        of_study = self._study is not None and self._planned.variant is not None
        if delaying := self._delaying():
            self._state = self._stack.enter_context(delayjc.state_file(self._journal))
            self._settings = delaying(self._state)
        if not of_study and not self._requested:
            return
        try:
            self._trace = self._stack.enter_context(
                JournalTracer(find_ext4(self._directory), self._raw / _TRACE, self._journal)
            )
            # The tool is started by this thread: it is traced with all that it starts.
            self._trace.follow(os.getpid())
        except EeioError as error:
            self._trace = None
            self._notes.append(f"journal not traced: {error}")

    def _delaying(self) -> Callable[[Path], Mapping[str, str]] | None:
        """The settings that delay calls, for a given state file; None if calls are not delayed. The
        window is the study's, or the library's default."""
        study, variant = self._study, self._planned.variant
        if study is None or variant is None:
            if self._planned.volume != DELAYJC:
                return None
            return delayjc.settings
        if not VARIANTS[variant].delays:
            return None
        return partial(
            delayjc.settings,
            window_us=study.window_us[self._planned.experiment.tool],
            max_resets=study.max_resets,
            flush_first=study.flush_first,
        )

    def stop(self, ended_s: float | None) -> None:
        with self._stack:
            if self._trace is not None:
                self._trace.unfollow()
            if self._state is not None and ended_s is not None:
                counters = delayjc.read_counters(self._state)
                self._delays = counters.total
                self._loaded = counters.processes > 0

    def add_to_result(self, result: ToolResult, run: Run) -> ToolResult:
        """The phase that the study is about with the figures of the journal, or each with those of
        its window."""
        phases: Sequence[PhaseResult] = result.phases
        if self._trace is not None or self._delays is not None:
            phases = self._with_figures(phases, run)
        return replace(result, phases=tuple(phases), notes=(*self._notes, *result.notes))

    def _with_figures(self, phases: Sequence[PhaseResult], run: Run) -> Sequence[PhaseResult]:
        trace = self._complete_trace()
        delays = self._of_delays()
        if self._study is None:
            if self._delays is not None:
                self._notes.append(
                    f"ext4+delayjc: {self._delays.calls} fsync calls were delayed in "
                    f"{self._delays.windows} windows of {1e-3 * delayjc.WINDOW_US:g} ms"
                )
            reason: tuple[str, ...] = ()
            if self._delayed_none():
                reason = (_NONE_DELAYED,)
            began_s = run.started_monotonic_s
            return [_in_window(phase, trace, began_s, delays, reason) for phase in phases]
        includes_sync = run.experiment.flush in (None, "end")
        traced = False
        for study in studies.every().values():
            if study.journal is None:
                continue
            of_trace: Mapping[str, float] = {}
            if trace is not None:
                of_trace = study.journal.of_trace(trace, includes_sync)
            traced = traced or bool(of_trace)
            figures = {**of_trace, **delays}
            phases = [self._with_metrics(phase, study.journal, figures) for phase in phases]
        if trace is not None and not traced:
            self._notes.append("journal not traced: no fsync on this file system was seen")
        return phases

    def _delayed_none(self) -> bool:
        """Whether calls should have been delayed and were not: the library was not loaded, or a
        program that flushes each operation bypassed it. A program without flushes has no call to
        delay."""
        if self._delays is None or self._delays.calls > 0:
            return False
        return not self._loaded or self._planned.experiment.flush == "each"

    def _complete_trace(self) -> jbd2.JournalTrace | None:
        """The trace; None with a note if events were lost."""
        if self._trace is None:
            return None
        trace = jbd2.load(self._raw / _TRACE)
        if trace.overruns:
            self._notes.append(f"journal not traced completely: {trace.overruns} events missing")
            return None
        return trace

    def _of_delays(self) -> dict[str, float]:
        if self._delays is None or self._delays.calls == 0:
            return {}
        calls = self._delays.calls
        return {
            "delayjc_calls": float(calls),
            "delayjc_windows": float(self._delays.windows),
            "delayjc_held_mean_s": self._delays.held_ns / calls / 1e9,
            "delayjc_held_max_s": self._delays.held_max_ns / 1e9,
            "delayjc_flush_mean_s": self._delays.flush_ns / calls / 1e9,
        }

    def _with_metrics(
        self, phase: PhaseResult, figures: JournalFigures, found: Mapping[str, float]
    ) -> PhaseResult:
        if phase.name not in figures.phases:
            return phase
        metrics = dict(figures.joined({**phase.metrics, **found}))
        invalid = phase.invalid
        if self._delays is not None and self._delays.calls == 0 and _NONE_DELAYED not in invalid:
            invalid = (*invalid, _NONE_DELAYED)
        return replace(phase, metrics=metrics, invalid=invalid)


def _in_window(
    phase: PhaseResult,
    trace: jbd2.JournalTrace | None,
    began_s: float,
    delays: Mapping[str, float],
    invalid: tuple[str, ...],
) -> PhaseResult:
    """The phase with the trace of its window, and the delayed calls of the complete run."""
    metrics: dict[str, float] = {}
    if phase.operation != "read":
        metrics = dict(delays)
    if trace is not None and phase.start_s is not None and phase.end_s is not None:
        metrics |= figures(trace, began_s + phase.start_s, began_s + phase.end_s)
    return replace(phase, metrics={**phase.metrics, **metrics}, invalid=(*phase.invalid, *invalid))
