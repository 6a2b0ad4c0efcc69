"""The repetitions of an experiment's phase, and which of them share a median."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from eeio.analysis.observation import Missing, Observation
from eeio.analysis.selection import judged
from eeio.record.run import EnergyReading, Experiment, Phase, Run
from eeio.record.store import Campaign
from eeio.record.windows import writes


@dataclass(frozen=True)
class Repetitions:
    """The phases of one name in the runs of an experiment: what a row of a report and a cell of a
    comparison summarize."""

    campaign: Campaign
    experiment: Experiment
    runs: Sequence[Run]
    name: str
    is_direction: bool = False
    """One direction of a phase that read and wrote at the same time."""

    @cached_property
    def pairs(self) -> list[tuple[Run, Phase]]:
        pairs = []
        for run in self.runs:
            for phase in run.phases:
                if phase.name == self.name:
                    pairs.append((run, phase))
        return pairs

    @cached_property
    def good(self) -> list[Phase]:
        """The valid ones."""
        return [phase for run, phase in self.pairs if not run.validity and not phase.validity]

    @cached_property
    def first(self) -> Phase:
        return self.pairs[0][1]

    @cached_property
    def judged(self) -> tuple[list[Observation], str | None]:
        """The valid ones that may share a median, and why others may not."""
        return judged(self.experiment, self.good)

    @cached_property
    def run_of(self) -> dict[int, Run]:
        """The run of each phase, by the identity of the object."""
        return {id(phase): run for run, phase in self.pairs}

    @property
    def left_out(self) -> str | None:
        """Why some of the valid ones may not share a median with the others."""
        return self.judged[1]

    @cached_property
    def why_not_durable(self) -> str | None:
        """Why its windows end before the bytes are on the device, or why others are left out."""
        if self.left_out is not None or self.durable is not False:
            return self.left_out
        reasons = [observation.window.durable_reason for observation in self.observations]
        return next(filter(None, reasons), None)

    @property
    def duration_s(self) -> float | None:
        """The median length of the windows."""
        lasted_s = [observation.window.duration_s for observation in self.observations]
        known_s = [duration_s for duration_s in lasted_s if duration_s is not None]
        if known_s:
            return statistics.median(known_s)
        return None

    @cached_property
    def partly(self) -> str | None:
        """Why the bandwidths of some repetitions are none of the row: a median of a part of the
        repetitions is not one of the row."""
        used = self.judged[0]
        lacking = sum(observation.window.bandwidth_bytes_per_s is None for observation in used)
        if lacking in (0, len(used)):
            return None
        return f"{lacking} of {len(used)} repetitions moved no bytes, or report no bandwidth"

    @cached_property
    def observations(self) -> list[Observation]:
        """The valid ones that share a median."""
        used = self.judged[0]
        if self.partly is None:
            return used
        windows = []
        for observation in used:
            windows.append(
                replace(
                    observation.window, bandwidth_bytes_per_s=None, why_no_efficiency=self.partly
                )
            )
        return [
            Observation(self.experiment, observation.phase, window)
            for observation, window in zip(used, windows, strict=True)
        ]

    @cached_property
    def bandwidths(self) -> list[float]:
        rates = [observation.window.bandwidth_bytes_per_s for observation in self.observations]
        return [rate for rate in rates if rate is not None]

    @cached_property
    def invalid_reasons(self) -> tuple[str, ...]:
        of_runs: list[str] = []
        for run in self.runs:
            of_runs.extend(run.validity)
        of_phases = list[str]()
        for _, phase in self.pairs:
            of_phases.extend(phase.validity)
        return tuple(dict.fromkeys(of_runs + of_phases))

    @property
    def n(self) -> int:
        """Repetitions with figures. Experiments that move uncounted bytes have time and power,
        too."""
        if self.bandwidths:
            return len(self.bandwidths)
        rates = [each.operations_per_s for each in self.observations]
        counted = sum(not isinstance(rate, Missing) for rate in rates)
        uncounted = sum(phase.bytes_moved is None for phase in self.good)
        return counted or (len(self.observations) if self.partly else uncounted)

    @property
    def durable(self) -> bool | None:
        """All windows are of one kind; None if nothing was written or measured."""
        if not self.observations or not writes(self.first.operation):
            return None
        return self.observations[0].window.durable


def repetitions_of(campaign: Campaign) -> dict[str, list[Repetitions]]:
    """Id of an experiment with runs -> the repetitions of each of its phases."""
    made: dict[str, list[Repetitions]] = {}
    for id, runs in campaign.runs_by_experiment().items():
        names = dict.fromkeys(phase.name for run in runs for phase in run.phases)
        experiment = runs[0].experiment
        made[id] = []
        for name in names:
            both = Repetitions(campaign, experiment, runs, name)
            made[id] += [both, *_directions(both)]
    return made


_DIRECTIONS = ("read", "write")
_OF_BOTH = "bytes and energy are those of both directions together, in the row mixed"


def _directions(both: Repetitions) -> Iterator[Repetitions]:
    """Those of each direction of a phase that read and wrote at the same time, with its bandwidth,
    requests and latencies: neither bytes, which count once, nor energy, which cannot be divided."""
    if both.first.operation != "mixed":
        return
    for direction in _DIRECTIONS:
        rate = f"{direction}_bandwidth_bytes_per_s"
        if not all(rate in phase.metrics for _, phase in both.pairs):
            continue
        is_plain = both.name == both.first.operation
        name = f"{direction}s" if is_plain else f"{both.name}: {direction}s"
        runs = []
        for run in both.runs:
            runs.append(
                replace(
                    run,
                    phases=tuple(
                        _of(phase, direction, name)
                        for phase in run.phases
                        if phase.name == both.name
                    ),
                )
            )
        yield Repetitions(both.campaign, both.experiment, runs, name, is_direction=True)


def _of(phase: Phase, direction: str, name: str) -> Phase:
    metrics = {}
    for figure, value in phase.metrics.items():
        if figure.startswith(f"{direction}_"):
            metrics[figure.removeprefix(f"{direction}_")] = value
    return replace(
        phase,
        name=name,
        bytes_moved=None,
        bandwidth_bytes_per_s=metrics.pop("bandwidth_bytes_per_s"),
        metrics=metrics,
        energy=tuple(map(_without_energy, phase.energy)),
        until_durable=None,
        durable_reason=_OF_BOTH,
    )


def _without_energy(reading: EnergyReading) -> EnergyReading:
    return replace(
        reading, power_w=None, energy_j=None, uncertainty_j=None, valid=False, reasons=(_OF_BOTH,)
    )
