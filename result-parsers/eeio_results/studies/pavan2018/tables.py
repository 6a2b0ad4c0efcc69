"""A study's claims against its data."""

from eeio_results.printed import VERDICTS
from eeio_results.report.comparison import normality_table
from eeio_results.report.document import Document, flat
from eeio_results.report.parts import Table
from eeio_results.studies.pavan2018.claims import Answer, Replication

_MEANING = """\
match: within half a unit of the printed figure; truncated: cut off instead of rounded
partial: the figure is there, but the test does not confirm it, or a larger one is there too
no: the data does not give it
p: Mann-Whitney, two-sided, of the two experiments that gave the figure"""


def summary(replication: Replication) -> str:
    """How many claims came out how."""
    counts = ", ".join(f"{replication.count(verdict)} {verdict}" for verdict in VERDICTS)
    missing = f"; not in the data: {', '.join(replication.missing)}" if replication.missing else ""
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
            rows=tuple(_row(answer) for answer in replication.answers),
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
    value = "-" if answer.recomputed is None else f"{answer.recomputed:.{claim.decimals + 2}f}"
    p = "-" if answer.p is None else f"{answer.p:.2g}"
    return (
        claim.id,
        claim.section,
        claim.text,
        f"{claim.printed:.{claim.decimals}f}{unit}",
        value,
        p,
        answer.verdict,
    )
