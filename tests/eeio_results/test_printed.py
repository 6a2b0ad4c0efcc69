"""Printed figures of papers, recomputed: the verdicts, and the four papers."""

import pytest

from eeio import studies
from eeio.analysis import printed_figures as printed
from eeio.analysis.printed_figures import Statement, agreement, recompute
from eeio.report.documents.printed_figures import of_paper

PRINTED = ("chang2014", "machado2017", "panadero2012", "pavan2017")


def _answers(name: str) -> dict[str, printed.Recomputed]:
    paper = studies.find(name).printed
    assert paper is not None
    return {s.id: recompute(s) for s in paper.statements()}


@pytest.mark.parametrize(
    ("figure", "decimals", "value", "verdict"),
    [
        (79, 0, 79.4, "match"),
        (79, 0, 78.5, "match"),
        (79, 0, 79.5, "match"),
        (79, 0, 79.9, "truncated"),
        (79, 0, 80.0, None),
        (79, 0, 78.4, None),
        (2.7, 1, 2.74, "match"),
        (2.7, 1, 2.79, "truncated"),
        (2.7, 1, 2.6, None),
        (0.12, 2, 0.1151, "match"),
    ],
)
def test_agreement(figure: float, decimals: int, value: float, verdict: str | None) -> None:
    assert agreement(figure, decimals, value) == verdict


def _half(printed_: str, **arguments: str) -> printed.Recomputed:
    return recompute(
        Statement("x", "table 1", "", printed_, "W", ("9.0",), lambda a: a / 2, **arguments)
    )


@pytest.mark.parametrize(
    ("figure", "verdict"),
    [
        ("4.5", "match"),
        ("4", "match"),
        ("4.4", "no"),
        ("4.52", "partial"),
        ("4.6", "no"),
        ("9", "no"),
    ],
)
def test_verdicts(figure: str, verdict: str) -> None:
    found = _half(figure)
    assert found.verdict == verdict
    assert (found.value, found.low, found.high) == pytest.approx((4.5, 4.475, 4.525))
    assert bool(found.reason) == (verdict in ("partial", "no"))


def test_what_fits_better_is_partial_with_its_text() -> None:
    found = _half("9", in_part="not halved it is there", remark="read as half")
    assert (found.verdict, found.reason) == ("partial", "not halved it is there; read as half")


def test_a_statement_reports_why_nothing_gives_it() -> None:
    with pytest.raises(ValueError, match="x: neither a formula nor why"):
        recompute(Statement("x", "table 1", "", "1"))
    with pytest.raises(ValueError, match="x: more than 10 inputs"):
        recompute(Statement("x", "table 1", "", "1", inputs=("1",) * 11, formula=max))


@pytest.mark.parametrize("name", PRINTED)
def test_every_figure_has_its_place_and_every_doubt_its_reason(name: str) -> None:
    found = _answers(name)
    paper = studies.find(name).printed
    assert paper is not None and len(found) == len(paper.statements())
    for answer in found.values():
        assert answer.statement.place.startswith(("section", "abstract", "slides"))
        if answer.verdict in ("partial", "no"):
            assert answer.reason


@pytest.mark.parametrize(
    ("study", "claim", "verdict", "value"),
    [
        # By hand, from table 3.
        ("pavan2017", "4.2-rise-pc-hdd", "no", 2.502),
        ("pavan2017", "4.2-rise-pc-ssd", "no", 7.883),
        ("pavan2017", "4.2-rise-mpsoc-hdd", "no", 21.811),
        ("pavan2017", "4.2-rise-mpsoc-ssd", "partial", 69.912),
        ("pavan2017", "4.2-less-hdd", "match", 74.194),
        ("pavan2017", "4.2-less-ssd", "match", 83.687),
        ("pavan2017", "4.2-servers-1", "match", 85.004),
        ("pavan2017", "4.2-servers-2", "match", 70.009),
        ("pavan2017", "4.2-servers-3", "match", 55.013),
        ("pavan2017", "0-power", "partial", 6.837),
        ("machado2017", "efficiency-writes", "no", 250.0),
        ("machado2017", "efficiency-reads", "partial", 2166.67),
        ("machado2017", "discussion-four-power", "match", 64.0),
        ("machado2017", "discussion-four-bandwidth", "partial", 26.0),
        ("machado2017", "hou10ni-efficiency", "match", 7.143),
        ("panadero2012", "4-class-b", "truncated", 1.581),
        ("panadero2012", "4-class-c", "no", 6.335),
        ("chang2014", "2-loss-metarates", "no", 28.0),
    ],
)
def test_known_claims(study: str, claim: str, verdict: str, value: float) -> None:
    answer = _answers(study)[claim]
    assert (answer.verdict, answer.value) == (verdict, pytest.approx(value, abs=6e-3))


def test_287_percent_cannot_follow_whatever_the_rounding() -> None:
    answer = _answers("machado2017")["efficiency-writes"]
    assert answer.high == pytest.approx(262.86, abs=0.01)


def test_the_json_is_the_contract() -> None:
    answers = list(_answers("pavan2017").values())
    body = of_paper("pavan2017", "Pavan et al. 2017", answers).data()
    assert (body["schema_version"], body["study"]) == (1, "pavan2017")
    for claim in body["claims"]:
        assert set(claim) == {
            "id", "place", "of", "printed", "unit", "inputs", "recomputed", "range", "verdict",
            "reason",
        }  # fmt: skip
