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

from eeio.analysis.printed_figures import VERDICTS, Verdict, agreement
from eeio.comparison.cells import BANDWIDTH, EFFICIENCY, POWER, Cell, fits
from eeio.comparison.differences import Difference, differences, largest
from eeio.comparison.normality import NormalityCount, normality_counts
from eeio.comparison.pairing import pairs
from eeio.errors import EeioError
from eeio.report.document import Document, flat
from eeio.report.documents.comparison import normality_table
from eeio.report.table_and_plot import Table
from eeio.studies import Source
from eeio.studies.pavan2018.printed import Claim, printed
from eeio.studies.pavan2018.values import VALUES, Data, names_of

DEFINITION = (
    "efficiency by the paper's definition: the median over ten repetitions of bandwidth over mean "
    "power of each; elsewhere eeio shows 1000 divided by the median J/GB"
)
_MEANING = f"""\
{DEFINITION}
match: within half a unit of the printed figure; truncated: cut off instead of rounded
partial: the figure is there, but the test does not confirm it, or a larger one is there too
no: the data does not give it
p: Mann-Whitney, two-sided, of the two experiments that gave the figure"""


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
            "definition": DEFINITION,
            "claims": [answer.to_json() for answer in self.answers],
            "experiments": list(map(_experiment_json, self.cells)),
            "normality": list(map(asdict, self.normality)),
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
        "bandwidth_bytes_per_s": cell.known(BANDWIDTH),
        "power_system_w": cell.known(POWER["system"]),
        "power_device_w": cell.known(POWER["device"]),
        "efficiency_bytes_per_j": cell.known(EFFICIENCY),
        "reasons": {
            name: reason for name in cell.figures if (reason := cell.why(name)) is not None
        },
    }


def claims() -> tuple[Claim, ...]:
    """The list of claims, checked. Raises EeioError for one that cannot be computed."""
    made = printed()
    for claim in made:
        if claim.value is not None and claim.value not in VALUES:
            raise EeioError(f"claims.yaml: {claim.id}: no value {claim.value!r}")
    return made


def replicate(sources: Sequence[Source]) -> Replication:
    """Answers every claim from the available data. A claim without data is `no`, with that
    reason."""
    data = Data(sources)
    answers = tuple(_answer(claim, data) for claim in claims())
    normality = tuple(normality_counts(data.cells))
    return Replication(answers, tuple(data.cells), normality, tuple(data.missing()))


def _unconfirmed(claim: Claim, most: Difference) -> Answer:
    """Of the largest difference, which the test does not confirm."""
    agrees = agreement(claim.printed, claim.decimals, most.percent)
    verdict: Verdict = "partial"
    if agrees is None:
        verdict = "no"
    reason = f"the test does not confirm it (p = {most.p:.2g})"
    if most.percent <= 0:
        reason = "the direction is the other one"
    return Answer(claim, most.percent, most.p, verdict, names_of(most), reason)


def _answer(claim: Claim, data: Data) -> Answer:
    if claim.value is not None:
        return _value_answer(claim, data)
    assert claim.metric is not None
    chosen = [cell for cell in data.cells if fits(cell, claim.where)]
    differing = differences(pairs(chosen, claim.higher, claim.lower), claim.metric)
    if not differing:
        return Answer(claim, None, None, "no", (), "the data contain no such experiments")
    best = largest(differing)
    if best is None:
        return _unconfirmed(claim, max(differing, key=lambda difference: difference.percent))
    agrees = agreement(claim.printed, claim.decimals, best.percent)
    if agrees is not None:
        return Answer(claim, best.percent, best.p, agrees, names_of(best), None)
    others = [d for d in differing if d.percent > 0 and d.confirmed()]
    same = next(
        (d for d in others if agreement(claim.printed, claim.decimals, d.percent) is not None), None
    )
    if same is not None:
        return Answer(
            claim,
            same.percent,
            same.p,
            "partial",
            names_of(same),
            f"these have it, but the largest confirmed difference is {best.percent:.4g} %: "
            f"{' over '.join(names_of(best))}",
        )
    return Answer(
        claim, best.percent, best.p, "no", names_of(best), "the largest confirmed difference"
    )


def _value_answer(claim: Claim, data: Data) -> Answer:
    assert claim.value is not None
    try:
        computed = VALUES[claim.value](data)
    except (KeyError, ValueError) as error:
        reason = f"the data for it is missing ({error})"
        return Answer(claim, None, None, "no", (), reason)
    if computed.value is None:
        return Answer(claim, None, computed.p, "no", computed.cells, computed.reason)
    verdict = agreement(claim.printed, claim.decimals, computed.value) or "no"
    return Answer(claim, computed.value, computed.p, verdict, computed.cells, computed.reason)


def summary(replication: Replication) -> str:
    """How many claims came out how."""
    counts = ", ".join(f"{replication.count(verdict)} {verdict}" for verdict in VERDICTS)
    missing = ""
    if replication.missing:
        missing = f"; not in the data: {', '.join(replication.missing)}"
    return (
        f"{len(replication.answers)} claims: {counts}; "
        f"{len(replication.cells)} experiments{missing}"
    )


def document(replication: Replication) -> Document:
    """The claims, then the sources of those that do not match, then the counts."""
    tables = [
        Table(
            title="Claims of the paper, recomputed",
            header=("Claim", "Section", "Of", "Printed", "Recomputed", "p", "Verdict"),
            rows=tuple(map(_row, replication.answers)),
            numeric=frozenset((3, 4, 5)),
            note=_MEANING,
        ),
        Table(
            title="Data of the figures that do not match",
            header=("Claim", "Verdict", "Why", "From"),
            rows=tuple(
                (a.claim.id, a.verdict, a.reason or "", " over ".join(a.cells))
                for a in replication.answers
                if a.verdict in ("partial", "no")
            ),
        ),
    ]
    if replication.normality:
        tables.append(normality_table(replication.normality))
    return Document(
        title="eeio study replicate pavan2018",
        parts=(*tables, summary(replication)),
        data=replication.to_json,
        records=lambda: [flat(answer.to_json()) for answer in replication.answers],
    )


def _row(answer: Answer) -> tuple[str, ...]:
    claim = answer.claim
    unit = claim.unit if claim.unit.startswith("%") else f" {claim.unit}"
    value = "-"
    if answer.recomputed is not None:
        value = f"{answer.recomputed:.{claim.decimals + 2}f}"
    p = "-"
    if answer.p is not None:
        p = f"{answer.p:.2g}"
    return (
        claim.id,
        claim.section,
        claim.text,
        f"{claim.printed:.{claim.decimals}f}{unit}",
        value,
        p,
        answer.verdict,
    )
