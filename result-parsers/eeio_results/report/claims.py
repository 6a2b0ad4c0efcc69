"""A study's claims against its data, as text, Markdown and JSON."""

import json
from collections.abc import Sequence

from eeio_results.report.text import table
from eeio_results.studies.pavan2018 import Answer, Replication

_VERDICTS = ("match", "truncated", "partial", "no")
_MEANING = (
    "match: within half a unit of the printed figure; truncated: cut off instead of rounded;\n"
    "partial: the figure is there, but the test does not confirm it, or another one is larger;\n"
    "no: the data does not give it. p: Mann-Whitney, two-sided, of the two experiments named."
)


def to_json(replication: Replication) -> str:
    """The contract of `eeio replicate --format json`."""
    return json.dumps(replication.to_json(), indent=1) + "\n"


def to_text(replication: Replication) -> str:
    """The claims as a table, then what gave each that does not match."""
    lines = [table(_HEADER, [_row(answer) for answer in replication.answers]), _MEANING, ""]
    lines += [f"{a.claim.id}: {a.verdict}: {_why(a)}" for a in _odd(replication.answers)]
    return "\n".join([*lines, "", summary(replication), ""])


def to_markdown(replication: Replication) -> str:
    """As the text, for a paper's repository."""
    rows = ["| " + " | ".join(_HEADER) + " |", "|" + "---|" * len(_HEADER)]
    rows += ["| " + " | ".join(_row(answer)) + " |" for answer in replication.answers]
    odd = [f"- `{a.claim.id}` ({a.verdict}): {_why(a)}" for a in _odd(replication.answers)]
    return "\n".join([*rows, "", _MEANING, "", *odd, "", summary(replication), ""])


def summary(replication: Replication) -> str:
    """How many claims came out how."""
    counts = ", ".join(f"{replication.count(v)} {v}" for v in _VERDICTS)  # type: ignore[arg-type]
    missing = f"; not in the data: {', '.join(replication.missing)}" if replication.missing else ""
    return (
        f"{len(replication.answers)} claims: {counts}; "
        f"{len(replication.cells)} experiments{missing}"
    )


_HEADER = ("Claim", "Section", "Of", "Printed", "Recomputed", "p", "Verdict")


def _row(answer: Answer) -> tuple[str, ...]:
    claim = answer.claim
    unit = "" if claim.unit == "%" else f" {claim.unit}"
    value = "-" if answer.recomputed is None else f"{answer.recomputed:.{claim.decimals + 2}f}"
    printed = f"{claim.printed:.{claim.decimals}f}{' %' if claim.unit == '%' else unit}"
    p = "-" if answer.p is None else f"{answer.p:.2g}"
    return claim.id, claim.section, claim.text, printed, value, p, answer.verdict


def _odd(answers: Sequence[Answer]) -> list[Answer]:
    return [answer for answer in answers if answer.verdict in ("partial", "no")]


def _why(answer: Answer) -> str:
    between = " over ".join(answer.cells)
    return "; ".join(part for part in (answer.reason, between) if part)
