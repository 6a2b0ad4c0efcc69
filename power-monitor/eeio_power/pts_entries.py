"""The entries of a PTS result file that power adds: idle baseline, power, energy and MB/J.

PTS's module requests them from the session and inserts them. An entry is an object:

    {"base": the hash of the result that it is derived from, null for the idle baseline,
     "title", "description", "arguments" (null: those of the base), "scale", "proportion",
     "values": texts, "value": their mean, "json"}

MB/J of a trial is that of the phase with the label at the end of the result's description, by the
rule of the run record: of a phase with a separate window, and none if the tool did I/O in too
little of it. If the trial's output is unreadable (another tool, no package `eeio`), a trial with
one bandwidth is one phase with an unknown share of I/O, as in `eeio import`; with several
bandwidths the power belongs to none.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eeio.record.reading import COST_DOMAINS, DOMAINS_WITHOUT_DRIVES, MARKS
from eeio.record.reasons import NO_COST_OF_ACCELERATOR, no_positive_power, unknown_energy
from eeio.units import quantities as q
from eeio.units.number_text import pts_number

Body = Mapping[str, Any]

_BANDWIDTH = "MB/s"
_NO_PHASE = "no phase of the trial has exactly this bandwidth, and the power covers all its I/O"
_NOT_ITS_OWN = "a trial with several bandwidths has one power, which is none of theirs"
_SOURCE = ("meter", "domain", "kind")


def idle_entries(window: Body) -> dict[str, Any]:
    """`entries` of the idle baseline in this window, and its `missing` values."""
    entries, missing = [], []
    for reading in window["readings"]:
        if not reading["valid"]:
            why = "; ".join(reading["reasons"])
            missing.append(f"idle baseline of {reading['meter']} {reading['domain']}: {why}")
            continue
        description = _label("Idle Power", reading)
        entries.append(
            _entry(
                None, _title("eeio: idle baseline", reading), description, "W",
                [reading["power_w"]], {"idle": window}, arguments="idle",
            )
        )  # fmt: skip
    return {"entries": entries, "missing": missing}


def entries_of(experiment: Body) -> dict[str, Any]:
    """`entries` of an experiment, `annotations` (hash of a result, line) and what is `missing`, one
    line per key.

    `experiment` has its `name`, `arguments`, `description`; `results` of one scale, each with its
    `hash`, `title`, `description`, `scale` and `values`, pairs of a trial's number and the tool's
    value; and `trials` with `readings`, `efficiency`, `not_told` and `failed`.
    """
    made = _Made(experiment)
    for source in _sources(experiment["trials"]):
        made.add(source)
    return {"entries": made.entries, "annotations": made.annotations, "missing": made.missing}


class _Made:
    def __init__(self, experiment: Body) -> None:
        self.entries: list[dict[str, Any]] = []
        self.annotations: list[tuple[str, str]] = []
        self.missing: dict[str, str] = {}
        self._experiment = experiment
        self._results = experiment["results"]
        self._trials = experiment["trials"]
        self._taken = [k for k, trial in enumerate(self._trials) if not trial["failed"]]

    def add(self, source: Body) -> None:
        """All that one meter saw of one domain."""
        first, name = self._results[0], f"{source['meter']} {source['domain']}"
        readings = {
            k: reading for k in self._taken if (reading := _reading(self._trials[k], source))
        }
        valid = {k: reading for k, reading in readings.items() if reading["valid"]}
        if len(valid) < len(self._taken):
            bad = [reading for k, reading in readings.items() if k not in valid]
            why = "; ".join(bad[0]["reasons"]) if bad else "no reading"
            line = self._of_trials(len(self._taken) - len(valid), f"energy of {name}: {why}")
            self._annotate(first, line)
            experiment = self._experiment["name"]
            self.missing[f"{experiment} {name}"] = f"{experiment}: {line}"
        if not valid:
            return
        doubts = (
            r for reading in valid.values() if reading["doubtful"] for r in reading["reasons"]
        )
        for doubt in dict.fromkeys(doubts):
            self._annotate(first, f"doubtful: {doubt}")
        for field, quantity, scale in (("power_w", "Power", "W"), ("energy_j", "Energy", "J")):
            own: dict[str, Any] = {"quantity": field, **source}
            if field == "energy_j":
                own["trials"] = [_with_reading(trial, source) for trial in self._trials]
            description = f"{self._experiment['description']} - {_label(quantity, source)}"
            self.entries.append(
                _entry(
                    first["hash"], _title(first["title"], source), description, scale,
                    [reading[field] for reading in valid.values()], own, self._times(valid),
                    self._experiment["arguments"],
                )
            )  # fmt: skip
        for result in self._results:
            if result["scale"] == _BANDWIDTH:  # files that are created have no MB/J
                self._add_efficiency(result, source, valid)

    def _add_efficiency(self, result: Body, source: Body, valid: Mapping[int, Body]) -> None:
        values: dict[int, float] = {}
        reasons: list[str] = []
        measured = {k: float(value) for k, value in result["values"]}
        for k, reading in valid.items():
            if k in measured:
                found = self._efficiency(k, measured[k], result, reading)
                if isinstance(found, str):
                    reasons.append(found)
                elif found is not None:
                    values[k] = found
        if reasons:
            what = f"MB/J of {source['meter']} {source['domain']}: {reasons[0]}"
            self._annotate(result, self._of_trials(len(reasons), what))
        if not values:
            return
        drives = ", without drives" if any(map(_leaves_drives_out, valid.values())) else ""
        label = f"{_label('Mean Energy Efficiency', source)}{drives}"
        self.entries.append(
            _entry(
                result["hash"], _title(result["title"], source),
                f"{result['description']} - {label}", "MB/J", list(values.values()),
                {"quantity": "efficiency_mb_per_j", **source}, self._times(values),
            )
        )  # fmt: skip

    def _efficiency(
        self, k: int, bandwidth: float, result: Body, reading: Body
    ) -> float | str | None:
        """MB/J of a trial, or why there is none; None for a power that is not above 0."""
        if reading["domain"] not in COST_DOMAINS:
            return NO_COST_OF_ACCELERATOR
        trial = self._trials[k]
        if "efficiency" in trial:
            found = _reported_efficiency(trial["efficiency"], result["description"], reading)
            if found is None:
                return _NO_PHASE
            value: float | str = found["reason"] if found["mb_per_j"] is None else found["mb_per_j"]
            return value
        if len(self._results) > 1:
            return _NOT_ITS_OWN + (f" ({trial['not_told']})" if "not_told" in trial else "")
        return bandwidth / reading["power_w"] if reading["power_w"] > 0 else None

    def _of_trials(self, count: int, what: str) -> str:
        return f"{count} of {len(self._taken)} trials have no {what}"

    def _annotate(self, result: Body, line: str) -> None:
        self.annotations.append((result["hash"], line))

    def _times(self, of: Iterable[int]) -> str:
        """How long these trials took, s, as PTS writes it."""
        texts = (f"{self._trials[k]['duration_s']:.3f}" for k in of)
        return ":".join(text.rstrip("0").rstrip(".") for text in texts)


def _reported_efficiency(
    efficiencies: Sequence[Body], description: str, reading: Body
) -> Body | None:
    """The longest label at the end of the description is the result's: `Random Read` ends with
    `Read` too."""
    found = [
        one
        for one in efficiencies
        if one["words"]
        and description.endswith(one["words"])
        and (one["meter"], one["domain"]) == (reading["meter"], reading["domain"])
    ]
    return max(found, key=lambda one: len(one["words"]), default=None)


def _sources(trials: Sequence[Body]) -> list[dict[str, str]]:
    """The meters and power domains that measured any trial."""
    found = {
        (reading["meter"], reading["domain"]): {key: reading[key] for key in _SOURCE}
        for trial in trials
        for reading in trial.get("readings", ())
    }
    return list(found.values())


def _reading(trial: Body, source: Body) -> Body | None:
    own = (source["meter"], source["domain"])
    return next((r for r in trial.get("readings", ()) if (r["meter"], r["domain"]) == own), None)


def _with_reading(trial: Body, source: Body) -> dict[str, Any]:
    """A trial as it goes into the result file, with this source's reading."""
    known = {key: value for key, value in trial.items() if key not in ("readings", "efficiency")}
    return {**known, "reading": _reading(trial, source)}


def _leaves_drives_out(reading: Body) -> bool:
    """Whether it excludes the power of the drives: its MB/J is not the storage's then."""
    return "drives" in reading["leaves_out"] or reading["domain"] in DOMAINS_WITHOUT_DRIVES


def _title(title: str, source: Body) -> str:
    return f"{title} ({MARKS[source['kind']]})" if source["kind"] in MARKS else title


def _label(quantity: str, source: Body) -> str:
    mark = f"{MARKS[source['kind']]}: " if source["kind"] in MARKS else ""
    return f"{mark}{quantity} ({source['meter']} {source['domain']})"


def _entry(
    base: str | None,
    title: str,
    description: str,
    scale: str,
    values: Sequence[float],
    own: Mapping[str, Any],
    times: str | None = None,
    arguments: str | None = None,
) -> dict[str, Any]:
    texts = [pts_number(value) for value in values]
    mean = texts[0] if len(texts) == 1 else pts_number(statistics.fmean(map(float, texts)))
    return {
        "base": base,
        "title": title,
        "description": description,
        "arguments": arguments,
        "scale": scale,
        "proportion": "HIB" if scale == "MB/J" else "LIB",
        "values": texts,
        "value": mean,
        "json": {**({} if times is None else {"test-run-times": times}), "eeio": own},
    }


def efficiencies(
    phases: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """MB/J of each phase by each of its readings: its bytes over the energy of its window, for a
    write until they are on the device; bandwidth over mean power if the tool reports no bytes. Null
    with the `reason` if there is none.

    `results` are the command's data on the same phases: PTS's label of each (`words`), and why its
    bandwidth and its power do not match (`why_no_efficiency`).
    """
    return [
        {
            "words": result["words"],
            "meter": reading["meter"],
            "domain": reading["domain"],
            **_efficiency({**phase, **window}, result["why_no_efficiency"], reading),
        }
        for phase, result in zip(phases, results, strict=True)
        for window in (phase.get("until_durable") or phase,)
        for reading in window["energy"]
    ]


def _efficiency(
    phase: Mapping[str, Any], why_not: str | None, reading: Mapping[str, Any]
) -> dict[str, Any]:
    why_not = why_not or _why_unusable(reading)
    if why_not is not None:
        return {"mb_per_j": None, "reason": why_not}
    if phase["bytes_moved"]:
        return {"mb_per_j": phase["bytes_moved"] / 1e6 / reading["energy_j"], "reason": None}
    return {"mb_per_j": phase["bandwidth_bytes_per_s"] / 1e6 / reading["power_w"], "reason": None}


def _why_unusable(reading: Mapping[str, Any]) -> str | None:
    """The same rules as in `eeio run`, which excludes such a reading from MB/J."""
    if reading["domain"] not in COST_DOMAINS:
        return NO_COST_OF_ACCELERATOR
    if not reading["valid"] or reading["coverage"] < q.LEAST_COVERAGE:
        return "; ".join(reading["reasons"])
    if reading["power_w"] <= 0.0:
        return no_positive_power(reading["power_w"])
    limit_j = reading["uncertainty_j"]
    if reading["kind"] == "modelled" or limit_j is None:
        return None
    share = limit_j / reading["energy_j"]
    if share <= q.MOST_UNKNOWN:
        return None
    return unknown_energy(share)
