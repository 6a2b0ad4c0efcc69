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
from collections.abc import Iterable, Mapping
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


def phase_of_result(phases: Body) -> Phase:
    """A phase as a trial reports it (`trial`), with its energies."""
    body = {key: value for key, value in phases.items() if key != "invalid"}
    return Phase.from_json({**body, "validity": phases["invalid"]})


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
        domain, meter, _ = source
        first = self.experiment["results"][0]
        taken = [k for k, trial in enumerate(self.experiment["trials"]) if not trial["failed"]]
        readings = {k: self.known[k].by(source) for k in taken}
        valid = {k: reading for k, reading in readings.items() if reading and reading.valid}
        if len(valid) < len(taken):
            invalid = [reading for k, reading in readings.items() if reading and k not in valid]
            why = "; ".join(invalid[0].reasons) if invalid else "no reading"
            what = f"energy of {meter} {domain}: {why}"
            line = f"{len(taken) - len(valid)} of {len(taken)} trials have no {what}"
            self.annotations.append((first["hash"], line))
            name = self.experiment["name"]
            self.missing[f"{name} {meter} {domain}"] = f"{name}: {line}"
        if not valid:
            return
        doubtful = [reading for reading in valid.values() if reading.doubtful]
        for doubt in dict.fromkeys(doubt for reading in doubtful for doubt in reading.reasons):
            self.annotations.append((first["hash"], f"doubtful: {doubt}"))
        trials = [
            {**trial, "reading": None if (own := known.by(source)) is None else own.to_json()}
            for trial, known in zip(self.experiment["trials"], self.known, strict=True)
        ]
        base = Base(
            first["hash"], first["title"], self.experiment["description"],
            self.experiment["arguments"],
        )  # fmt: skip
        self.entries += power_entries.power_and_energy(
            base, source, list(valid.values()), {"trials": trials}, self._times(valid)
        )
        for result in self.experiment["results"]:
            if result["scale"] == _BANDWIDTH:  # files that are created have no MB/J
                self._add_efficiency(result, source, valid, len(taken))

    def _add_efficiency(
        self, result: Body, source: Key, valid: Mapping[int, EnergyReading], taken: int
    ) -> None:
        found = {
            int(k): self._bytes_per_j(int(k), float(bandwidth), result, source)
            for k, bandwidth in result["values"]
            if int(k) in valid
        }
        reasons = [value.reason for value in found.values() if isinstance(value, Missing)]
        if reasons:
            what = f"MB/J of {source[1]} {source[0]}: {reasons[0]}"
            line = f"{len(reasons)} of {taken} trials have no {what}"
            self.annotations.append((result["hash"], line))
        values = {k: value / 1e6 for k, value in found.items() if not isinstance(value, Missing)}
        if values:
            base = Base(result["hash"], result["title"], result["description"])
            self.entries.append(
                power_entries.efficiency(
                    base, source, list(values.values()), list(valid.values()), self._times(values)
                )
            )

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
        texts = (f"{self.experiment['trials'][k]['duration_s']:.3f}" for k in trials)
        return ":".join(text.rstrip("0").rstrip(".") for text in texts)


def _of_trial(mb_per_s: float, read: EnergyReading | None) -> Value:
    """Of a trial that is one phase, in bytes per J."""
    if read is None:
        return NO_READING
    if read.domain not in COST_DOMAINS:
        return NO_COST
    reading = windows.known(read)
    if not reading.valid or reading.power_w is None:
        return Missing("; ".join(reading.reasons)) if reading.reasons else NO_READING
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
