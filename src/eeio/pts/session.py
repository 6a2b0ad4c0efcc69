"""The power session of PTS's module: sampling, and the entries of its result file.

    python3 -m eeio.pts.session --meter rapl --samples power.csv.gz

It is `eeio_power.session`, with the same options and lines of JSON, and further

    {"do": "idle", ...}               also `entries`, and a line for each `missing` reading
    {"do": "end", "order": 3, ...}    what was measured stays known for `entries`
    {"do": "entries", ...}            the `entries` of an experiment, `annotations` (hash of a
                                      result, line), and what is `missing`, one line per source

An experiment has its `name`, `arguments`, `description`, `results` and `trials`. A result has its
`hash`, `title`, `description`, `scale` and `values`, pairs of a trial's number and the tool's
value. A trial has its `order`, `duration_s`, and whether it `failed`.

MB/J of a trial is that of the phase with the label at the end of the result's description
(`Observation.bytes_per_j`). If the trial's output is unreadable, a trial with one bandwidth is one
phase with an unknown share of I/O, as in `eeio import`; with several bandwidths the power belongs
to none.

This process needs only the standard library.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eeio.analysis.observation import (
    NO_COST,
    NO_READING,
    Key,
    Missing,
    Observation,
    Value,
    observed,
)
from eeio.errors import LimitError, SchemaError
from eeio.files import typed
from eeio.pts import power_entries
from eeio.pts.power_entries import Base, PowerEntry
from eeio.record import windows
from eeio.record.energy_reading import COST_DOMAINS, EnergyReading
from eeio.record.run import Experiment, Phase
from eeio_power import session
from eeio_power.session import Answer

Body = Mapping[str, Any]

_BANDWIDTH = "MB/s"
_NO_PHASE = "no phase of the trial has exactly this bandwidth, and the power covers all its I/O"
_SEVERAL = "a trial with several bandwidths has one power, which is none of theirs"


@dataclass(frozen=True)
class Measured:
    """What was measured of a trial. `phases` are by their labels in PTS's descriptions, None if its
    output was unreadable (`why_unread`)."""

    readings: tuple[EnergyReading, ...] = ()
    phases: Mapping[str, Observation] | None = None
    why_unread: str | None = None

    def by(self, source: Key) -> EnergyReading | None:
        return next((reading for reading in self.readings if reading.key == source), None)


def phase_of_result(reported: Body) -> Phase:
    """A phase as a trial reports it (`trial`), with its energies."""
    body = {key: value for key, value in reported.items() if key != "invalid"}
    return Phase.from_json({**body, "validity": reported["invalid"]})


def measured(answer: Body) -> Measured:
    """Of the session's answer to `end`."""
    readings = tuple(typed.read(EnergyReading, body) for body in answer.get("readings", ()))
    labels = answer.get("labels")
    if labels is None:
        return Measured(readings, None, answer.get("not_told"))
    bodies = answer["told"]["phases"]
    try:
        experiment = Experiment.from_json(answer["experiment"])
        phases = {
            label: observed(experiment, phase_of_result(body))
            for label, body in zip(labels, bodies, strict=True)
            if label
        }
    except (LimitError, SchemaError) as error:
        return Measured(readings, None, f"its data are damaged: {error}")
    return Measured(readings, phases)


class PtsSession(session.Session):
    """A session that remembers the trials of the run."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._measured: dict[int, Measured] = {}

    def answer(self, request: Answer) -> Answer:
        """Serves one request; raises PowerError, KeyError, TypeError or ValueError."""
        if request["do"] == "entries":
            trials = request["trials"]
            known = [self._measured.get(trial["order"], Measured()) for trial in trials]
            return Entries(request, known).to_json()
        answer = super().answer(request)
        if request["do"] == "idle":
            return {**answer, **idle_entries(answer)}
        if request["do"] == "end" and "order" in request:
            self._measured[request["order"]] = measured(answer)
            kept = ("started_utc", "start_s", "duration_s", "told", "not_told")
            return {key: answer[key] for key in kept if key in answer}
        return answer


def idle_entries(window: Body) -> Answer:
    """`entries` of the idle baseline in this window, and its `missing` values."""
    readings = [typed.read(EnergyReading, body) for body in window["readings"]]
    return {
        "entries": [
            power_entries.idle(reading, window).to_json() for reading in readings if reading.valid
        ],
        "missing": [
            f"idle baseline of {reading.meter} {reading.domain}: {'; '.join(reading.reasons)}"
            for reading in readings
            if not reading.valid
        ],
    }


@dataclass
class Entries:
    """The entries of one experiment of PTS."""

    experiment: Body
    known: list[Measured]
    """By trial."""
    entries: list[PowerEntry] = field(default_factory=list)
    annotations: list[tuple[str, str]] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> Answer:
        """Makes them."""
        readings = (reading for trial in self.known for reading in trial.readings)
        for source in dict.fromkeys(reading.key for reading in readings):
            self._add(source)
        return {
            "entries": [entry.to_json() for entry in self.entries],
            "annotations": self.annotations,
            "missing": self.missing,
        }

    def _add(self, source: Key) -> None:
        """All that one meter measured of one domain."""
        trials = self.experiment["trials"]
        succeeded = [place for place, trial in enumerate(trials) if not trial["failed"]]
        readings = {place: self.known[place].by(source) for place in succeeded}
        valid = {place: reading for place, reading in readings.items() if reading and reading.valid}
        first = self.experiment["results"][0]
        if len(valid) < len(succeeded):
            invalid = [reading for reading in readings.values() if reading and not reading.valid]
            self._add_missing(source, invalid, len(succeeded) - len(valid), len(succeeded))
        if not valid:
            return
        for doubt in _doubts(valid.values()):
            self.annotations.append((first["hash"], f"doubtful: {doubt}"))
        base = Base(
            first["hash"],
            first["title"],
            self.experiment["description"],
            self.experiment["arguments"],
        )
        self.entries += power_entries.power_and_energy(
            base,
            source,
            list(valid.values()),
            {"trials": self._trials_with(source)},
            self._times(valid),
        )
        for result in self.experiment["results"]:
            if result["scale"] == _BANDWIDTH:  # files that are created have no MB/J
                self._add_efficiency(result, source, valid, len(succeeded))

    def _add_missing(
        self, source: Key, invalid: Sequence[EnergyReading], missing: int, trials: int
    ) -> None:
        """The reason why trials have no energy by a source."""
        domain, meter, _ = source
        reason = "no reading"
        if invalid:
            reason = "; ".join(invalid[0].reasons)
        line = f"{missing} of {trials} trials have no energy of {meter} {domain}: {reason}"
        name = self.experiment["name"]
        self.annotations.append((self.experiment["results"][0]["hash"], line))
        self.missing[f"{name} {meter} {domain}"] = f"{name}: {line}"

    def _trials_with(self, source: Key) -> list[Answer]:
        """The trials as they go into the result file, with the reading of this source."""
        trials = []
        for trial, measured_trial in zip(self.experiment["trials"], self.known, strict=True):
            reading = measured_trial.by(source)
            trials.append({**trial, "reading": None if reading is None else reading.to_json()})
        return trials

    def _add_efficiency(
        self, result: Body, source: Key, valid: Mapping[int, EnergyReading], trials: int
    ) -> None:
        domain, meter, _ = source
        reasons = []
        mb_per_j: dict[int, float] = {}
        for trial, bandwidth in result["values"]:
            if trial not in valid:
                continue
            value = self._bytes_per_j(trial, float(bandwidth), result, source)
            if isinstance(value, Missing):
                reasons.append(value.reason)
            else:
                mb_per_j[trial] = value / 1e6
        if reasons:
            line = (
                f"{len(reasons)} of {trials} trials have no MB/J of {meter} {domain}: {reasons[0]}"
            )
            self.annotations.append((result["hash"], line))
        if mb_per_j:
            base = Base(result["hash"], result["title"], result["description"])
            readings = list(valid.values())
            values, times = list(mb_per_j.values()), self._times(mb_per_j)
            self.entries.append(power_entries.efficiency(base, source, values, readings, times))

    def _bytes_per_j(self, trial: int, mb_per_s: float, result: Body, source: Key) -> Value:
        known = self.known[trial]
        if known.phases is not None:
            # The longest label is the result's: `Random Read` ends with `Read` too.
            labels = [label for label in known.phases if result["description"].endswith(label)]
            if not labels:
                return Missing(_NO_PHASE)
            return bytes_per_j(known.phases[max(labels, key=len)], source)
        if len(self.experiment["results"]) > 1:
            return Missing(_SEVERAL + (f" ({known.why_unread})" if known.why_unread else ""))
        return _of_trial(mb_per_s, known.by(source))

    def _times(self, trials: Iterable[int]) -> str:
        """How long these trials took, s, as PTS writes it."""
        durations_s = [self.experiment["trials"][place]["duration_s"] for place in trials]
        texts = [f"{duration_s:.3f}" for duration_s in durations_s]
        return ":".join(text.rstrip("0").rstrip(".") for text in texts)


def _doubts(readings: Iterable[EnergyReading]) -> list[str]:
    """The reasons of doubtful readings, each once."""
    doubtful = [reading for reading in readings if reading.doubtful]
    return list(dict.fromkeys(reason for reading in doubtful for reason in reading.reasons))


def _of_trial(mb_per_s: float, read: EnergyReading | None) -> Value:
    """Of a trial that is one phase, in bytes per J."""
    if read is None:
        return NO_READING
    if read.domain not in COST_DOMAINS:
        return NO_COST
    reading = windows.known(read)
    if not reading.valid or reading.power_w is None:
        if reading.reasons:
            return Missing("; ".join(reading.reasons))
        return NO_READING
    if reading.why_not_ranked is not None:
        return Missing(reading.why_not_ranked)
    return mb_per_s * 1e6 / reading.power_w


def bytes_per_j(observation: Observation, source: Key) -> Value:
    """Of a phase by a source, in bytes per J."""
    phase = observation.phase
    if phase.validity:
        return Missing("; ".join(phase.validity))
    by_source = observation.by(source)
    if by_source.reading is None:
        return Missing(f"no power of {phase.name}: {phase.window_source}")
    return by_source.bytes_per_j


if __name__ == "__main__":
    sys.exit(session.main(kind=PtsSession))
