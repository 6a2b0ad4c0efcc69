"""Papers' results, recomputed: one paper's figures, and the list of all papers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eeio.analysis.printed_figures import VERDICTS, Recomputed, Verdict, counts, decimals_of
from eeio.report.document import Document
from eeio.report.table_and_plot import Table

_MEANING = """\
match: within half a unit of the printed figure; truncated: cut off instead of rounded
partial: matches only within the rounding of its inputs, or another printed figure fits better
no: no printed figures give it, or they give another figure"""


@dataclass(frozen=True)
class Listed:
    """One paper in the list. `counts` is None where its figures were not recomputed, with the way
    to it in `remark`."""

    study: str
    paper: str
    claims: int
    counts: Mapping[Verdict, int] | None
    remark: str


def of_paper(study: str, paper: str, answers: Sequence[Recomputed]) -> Document:
    """All figures of one paper."""
    claims = [answer.to_json() for answer in answers]
    counted = counts(tuple(answers))
    table = Table(
        title=f"Printed figures of {paper}, recomputed from their other figures",
        header=("Claim", "Place", "Of", "Printed", "Recomputed", "Verdict"),
        rows=tuple(map(_row, answers)),
        numeric=frozenset((3, 4)),
        note=_MEANING,
    )
    reason = Table(
        title="How it was read, and why not",
        header=("Claim", "Verdict", "Why"),
        rows=tuple((a.statement.id, a.verdict, a.reason) for a in answers if a.reason),
    )
    summary = ", ".join(f"{counted[verdict]} {verdict}" for verdict in VERDICTS)
    return Document(
        title=f"eeio study replicate {study}",
        parts=(table, reason, f"{len(answers)} claims: {summary}"),
        data=lambda: {"schema_version": 1, "study": study, "paper": paper, "claims": claims},
        records=lambda: claims,
    )


def of_all(papers: Sequence[Listed]) -> Document:
    """The list of papers."""
    listed = list(map(_listed, papers))
    table = Table(
        title="Printed figures of papers, recomputed",
        header=("Study", "Paper", "Claims", *VERDICTS, "From"),
        rows=tuple(
            (
                paper.study,
                paper.paper,
                str(paper.claims),
                *(
                    ("-",) * len(VERDICTS)
                    if paper.counts is None
                    else (str(paper.counts[verdict]) for verdict in VERDICTS)
                ),
                paper.remark,
            )
            for paper in papers
        ),
        numeric=frozenset(range(2, 3 + len(VERDICTS))),
        note=_MEANING,
    )
    return Document(
        title="eeio study replicate",
        parts=(table,),
        data=lambda: {"schema_version": 1, "papers": listed},
        records=lambda: listed,
    )


def _listed(paper: Listed) -> dict[str, Any]:
    return {
        "study": paper.study,
        "paper": paper.paper,
        "claims": paper.claims,
        **{verdict: paper.counts and paper.counts[verdict] for verdict in VERDICTS},
        "from": paper.remark,
    }


def _row(answer: Recomputed) -> tuple[str, ...]:
    statement = answer.statement
    unit = statement.unit if statement.unit.startswith("%") else f" {statement.unit}"
    digits = decimals_of(statement.printed) + 2
    return (
        statement.id,
        statement.place,
        statement.of,
        f"{statement.printed}{unit.rstrip()}",
        "-" if answer.value is None else f"{answer.value:.{digits}f}",
        answer.verdict,
    )
