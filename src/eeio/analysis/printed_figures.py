"""Figures that a paper prints, recomputed from others that it prints.

For papers without published data: their text is compared with their tables. A figure is stored as
the paper prints it, so that its decimals show its precision. The place (section, figure, table) is
stored, but not the sentence.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

Verdict = Literal["match", "truncated", "partial", "no"]
VERDICTS: tuple[Verdict, ...] = ("match", "truncated", "partial", "no")

_MOST_INPUTS = 10
"""A formula is evaluated at both ends of each input: at most 2^10 times."""


@dataclass(frozen=True)
class Statement:
    """A figure at its place. `formula` computes it from `inputs`, each also printed in the paper.
    Without a formula, `remark` says why no printed figures give it. With one, `remark` says how the
    text was interpreted, or where it is wrong. `in_part` says what else gives the figure, if the
    formula does not."""

    id: str
    place: str
    of: str
    printed: str
    unit: str = "%"
    inputs: tuple[str, ...] = ()
    formula: Callable[..., float] | None = None
    remark: str = ""
    in_part: str = ""


@dataclass(frozen=True)
class Recomputed:
    """A recomputed statement. `low` and `high` are the range allowed by the inputs' rounding."""

    statement: Statement
    value: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    reason: str

    def to_json(self) -> dict[str, Any]:
        statement = self.statement
        return {
            "id": statement.id,
            "place": statement.place,
            "of": statement.of,
            "printed": float(statement.printed),
            "unit": statement.unit,
            "inputs": list(map(float, statement.inputs)),
            "recomputed": self.value,
            "range": None if self.low is None else [self.low, self.high],
            "verdict": self.verdict,
            "reason": self.reason or None,
        }


def decimals_of(printed: str) -> int:
    """The number of digits after the decimal point."""
    return len(printed.partition(".")[2])


def agreement(printed: float, decimals: int, value: float) -> Literal["match", "truncated"] | None:
    """Whether a value prints as the paper does: rounded, or cut off."""
    unit = 10.0**-decimals
    # Half a unit, plus the error of binary fractions.
    if abs(value - printed) <= unit / 2 * (1 + 1e-9):
        return "match"
    if math.floor(value / unit * (1 + 1e-12)) == round(printed / unit):
        return "truncated"
    return None


def recompute(statement: Statement) -> Recomputed:
    """The verdict: `partial` also if only the rounding of the inputs allows the printed figure. The
    range is that of the formula at the ends of its inputs, so it must rise or fall with each.
    Raises ValueError for a statement with neither a formula nor a remark."""
    if statement.formula is None:
        if not statement.remark:
            raise ValueError(f"{statement.id}: neither a formula nor why there is none")
        return Recomputed(statement, None, None, None, "no", statement.remark)
    if len(statement.inputs) > _MOST_INPUTS:
        raise ValueError(f"{statement.id}: more than {_MOST_INPUTS} inputs")
    printed, decimals = float(statement.printed), decimals_of(statement.printed)
    value = statement.formula(*map(float, statement.inputs))
    ends = [statement.formula(*corner) for corner in product(*map(_ends, statement.inputs))]
    low, high = min(ends), max(ends)
    agrees = agreement(printed, decimals, value)
    if agrees is not None:
        return Recomputed(statement, value, low, high, agrees, statement.remark)
    half = 10.0**-decimals / 2
    room = f"the printed figures allow {low:.4g} to {high:.4g}"
    if low <= printed + half and printed - half <= high:
        reason = _joined(f"only the rounding allows it: {room}", statement.remark)
        return Recomputed(statement, value, low, high, "partial", reason)
    if statement.in_part:
        reason = _joined(statement.in_part, statement.remark)
        return Recomputed(statement, value, low, high, "partial", reason)
    return Recomputed(statement, value, low, high, "no", _joined(room, statement.remark))


def counts(answers: tuple[Recomputed, ...]) -> Mapping[Verdict, int]:
    """How many came out how."""
    return {verdict: sum(a.verdict == verdict for a in answers) for verdict in VERDICTS}


def _ends(printed: str) -> tuple[float, float]:
    half = 10.0 ** -decimals_of(printed) / 2
    return float(printed) - half, float(printed) + half


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))
