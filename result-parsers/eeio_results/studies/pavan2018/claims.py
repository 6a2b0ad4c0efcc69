"""Pavan et al. 2018, Energy Efficiency and I/O Performance of Low-Power Architectures.

Recomputes every figure that sections 3 to 7 print about their results (claims.yaml) from run
records of the published data, with the paper's definitions: medians of ten repetitions, efficiency
as bandwidth over mean power of each run, "X % higher" as the ratio of two medians less one,
reported only if the Mann-Whitney test gives p < 0.05. Nothing is tuned to agree: a figure that the
data does not support is `no`, with the reason.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from eeio_results.comparison.cells import BANDWIDTH, EFFICIENCY, POWER, Cell, fits
from eeio_results.comparison.differences import differences, largest
from eeio_results.comparison.normality import NormalityCount, normality_counts
from eeio_results.comparison.pairing import pairs
from eeio_results.errors import EeioError
from eeio_results.printed import Verdict, agreement
from eeio_results.studies import Source
from eeio_results.studies.pavan2018.data import Data
from eeio_results.studies.pavan2018.printed import Claim, printed
from eeio_results.studies.pavan2018.values import VALUES, names_of


@dataclass(frozen=True)
class Answer:
    """A recomputed claim. `cells` name the two experiments (or other sources) that gave it;
    `reason` is why there is no figure, or how it differs."""

    claim: Claim
    recomputed: float | None
    p: float | None
    verdict: Verdict
    cells: tuple[str, ...]
    reason: str | None

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.claim.id,
            "section": self.claim.section,
            "text": self.claim.text,
            "printed": self.claim.printed,
            "unit": self.claim.unit,
            "recomputed": self.recomputed,
            "p_value": self.p,
            "verdict": self.verdict,
            "cells": list(self.cells),
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Replication:
    """All answers, and the experiments that they rest on."""

    answers: tuple[Answer, ...]
    cells: tuple[Cell, ...]
    normality: tuple[NormalityCount, ...] = ()
    missing: tuple[str, ...] = ()

    def count(self, verdict: Verdict) -> int:
        return sum(answer.verdict == verdict for answer in self.answers)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": 1,
            "study": "pavan2018",
            "claims": [answer.to_json() for answer in self.answers],
            "experiments": [_experiment_json(cell) for cell in self.cells],
            "normality": [asdict(count) for count in self.normality],
            "missing": list(self.missing),
        }


def _experiment_json(cell: Cell) -> dict[str, Any]:
    factors = cell.factors
    return {
        "machine": factors["machine"],
        "device": factors["device"],
        "operation": factors["operation"],
        "spatiality": factors["spatiality"],
        "request_size_bytes": cell.request_size_bytes,
        "cache": {"buffer": factors["buffer"]},
        "n": cell.n(BANDWIDTH),
        "bandwidth_bytes_per_s": _median(cell, BANDWIDTH),
        "power_system_w": _median(cell, POWER["system"]),
        "power_device_w": _median(cell, POWER["device"]),
        "efficiency_bytes_per_j": _median(cell, EFFICIENCY),
        "reasons": dict(cell.reasons),
    }


def _median(cell: Cell, metric: str) -> float | None:
    return cell.median(metric) if cell.n(metric) else None


def claims() -> tuple[Claim, ...]:
    """The list of claims, checked. Raises EeioError for one that cannot be computed."""
    found = printed()
    for claim in found:
        if claim.value is not None and claim.value not in VALUES:
            raise EeioError(f"claims.yaml: {claim.id}: no value {claim.value!r}")
    return found


def replicate(sources: Sequence[Source]) -> Replication:
    """Answers every claim from the available data. A claim without data is `no`, with that
    reason."""
    data = Data(sources)
    answers = tuple(_answer(claim, data) for claim in claims())
    normality = tuple(normality_counts(data.cells))
    return Replication(answers, tuple(data.cells), normality, tuple(data.missing()))


def _answer(claim: Claim, data: Data) -> Answer:
    if claim.value is not None:
        return _value_answer(claim, data)
    assert claim.metric is not None
    chosen = [cell for cell in data.cells if fits(cell, claim.where)]
    found = differences(pairs(chosen, claim.higher, claim.lower), claim.metric)
    if not found:
        return Answer(claim, None, None, "no", (), "the data contain no such experiments")
    best = largest(found)
    if best is None:
        most = max(found, key=lambda d: d.percent)
        agrees = agreement(claim.printed, claim.decimals, most.percent)
        verdict: Verdict = "no" if agrees is None else "partial"
        reason = (
            "the direction is the other one"
            if most.percent <= 0
            else f"the test does not confirm it (p = {most.p:.2g})"
        )
        return Answer(claim, most.percent, most.p, verdict, names_of(most), reason)
    agrees = agreement(claim.printed, claim.decimals, best.percent)
    if agrees is not None:
        return Answer(claim, best.percent, best.p, agrees, names_of(best), None)
    others = [d for d in found if d.percent > 0 and d.confirmed()]
    same = next(
        (d for d in others if agreement(claim.printed, claim.decimals, d.percent) is not None), None
    )
    if same is not None:
        return Answer(
            claim, same.percent, same.p, "partial", names_of(same),
            f"these have it, but the largest confirmed difference is {best.percent:.4g} %: "
            f"{' over '.join(names_of(best))}",
        )  # fmt: skip
    return Answer(
        claim, best.percent, best.p, "no", names_of(best), "the largest confirmed difference"
    )


def _value_answer(claim: Claim, data: Data) -> Answer:
    assert claim.value is not None
    try:
        found = VALUES[claim.value](data)
    except (KeyError, ValueError) as error:
        words = f"the data for it is missing ({error})"
        return Answer(claim, None, None, "no", (), words)
    if found.value is None:
        return Answer(claim, None, found.p, "no", found.cells, found.reason)
    verdict = agreement(claim.printed, claim.decimals, found.value) or "no"
    return Answer(claim, found.value, found.p, verdict, found.cells, found.reason)
