"""`eeio compare`: the largest confirmed differences between experiments, factor by factor."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from eeio.commands.campaign_folders import (
    analysis,
    load_campaigns,
    reject_mixed_demo,
    save_figures,
)
from eeio.commands.experiments import FACTORS, max_p99_option, wanted, where_option
from eeio.commands.gate_options import FailIf, check_detect, detect_option, fail_if_option
from eeio.commands.output_file import (
    document_format,
    output_file,
    pager_switch,
    write_document,
    write_file,
)
from eeio.commands.report import with_tests
from eeio.errors import EXIT_DONE, EXIT_FAILED, EXIT_WORSE, EeioError, RejectedError
from eeio.measure.bench.plan import SUITE as BENCH
from eeio.options import Command, argument, option, switch
from eeio.record.publication import warnings_of
from eeio.report.campaign.characterized import build
from eeio.report.document import Document
from eeio.units.external_text import shown

if TYPE_CHECKING:
    from eeio.comparison.campaigns import Comparison
    from eeio.comparison.cells import Cell
    from eeio.comparison.gate import Gate, Side
    from eeio.record.store import Campaign
    from eeio.statistics.adjustment import Adjustment
    from eeio.statistics.decision import Rule

_ADJUSTMENTS = ("benjamini-hochberg", "holm", "bonferroni", "none")


@dataclass(frozen=True, kw_only=True)
class CompareRequest:
    """`eeio compare`."""

    campaigns: tuple[str, ...] = argument(
        "NAME|PATH",
        help="campaign name or folder",
        count="+",
    )
    by: tuple[str, ...] = option(
        "--by",
        value="FACTOR",
        help=f"compare within each level of FACTOR: {', '.join(FACTORS)}",
        choices=FACTORS,
        repeat=True,
        group="experiments",
    )
    where: tuple[str, ...] = where_option("experiments")
    max_p99: float | None = max_p99_option("experiments")
    sessions: bool = switch(
        "--sessions",
        help="compare session means: one list per machine, A1,A2,A3 B1,B2",
        group="experiments",
        rare=True,
    )
    fail_if: FailIf | None = fail_if_option(
        "exit with 4 if worse, 1 if untested", group="gate for CI"
    )
    detect: float | None = detect_option(
        "the change that must not pass unnoticed, above that of --fail-if", group="gate for CI"
    )
    undecided: str | None = option(
        "--undecided",
        help="an experiment that is not decided: exit with 1 or 0 (default: fail with --detect)",
        choices=("fail", "pass"),
        group="gate for CI",
    )
    junit: Path | None = option(
        "--junit",
        value="FILE",
        help="also write the gate's result as JUnit XML",
        parse=Path,
        group="gate for CI",
    )
    annotations: str | None = option(
        "--annotations",
        help="also print failures as workflow commands",
        choices=("github",),
        group="gate for CI",
        rare=True,
    )
    alpha: float = option(
        "--alpha",
        help="significance level (default: %(default)s)",
        parse=float,
        default=0.05,
        group="statistics",
    )
    indifference: float = option(
        "--indifference",
        value="SHARE",
        help="equivalence margin (default: %(default)s)",
        parse=float,
        default=0.05,
        group="statistics",
        rare=True,
    )
    floor: float = option(
        "--floor",
        value="SHARE",
        help="smallest effect to report (default: %(default)s)",
        parse=float,
        default=0.01,
        group="statistics",
        rare=True,
    )
    adjust: "Adjustment" = option(
        "--adjust",
        help="p-value correction for several pairs (default: %(default)s)",
        choices=_ADJUSTMENTS,
        default=_ADJUSTMENTS[0],
        group="statistics",
        rare=True,
    )
    normality: bool = switch(
        "--normality",
        help="also test whether repetitions are normally distributed",
        group="statistics",
        rare=True,
    )
    format: str = document_format(group="output")
    output: Path | None = output_file(group="output")
    no_pager: bool = pager_switch(group="output")


def compare(request: CompareRequest) -> int:
    with analysis():
        from eeio.statistics.decision import Rule
    if not 0 < request.alpha < 1:
        raise RejectedError(f"--alpha {request.alpha}: it is between 0 and 1")
    try:
        rule = Rule(request.indifference, request.floor, request.alpha)
    except EeioError as error:
        raise RejectedError(str(error)) from error
    if request.fail_if is not None and len(request.campaigns) < 2:
        raise RejectedError("--fail-if: name two campaigns, the one before first")
    _check_gate(request)
    if request.sessions:
        return compare_sessions(request, rule)
    document, gates = document_of(request, rule)
    return _answer(request, document, gates)


def document_of(request: CompareRequest, rule: "Rule") -> "tuple[Document, Sequence[Gate]]":
    """The answer for single campaigns, and its gates."""
    with analysis():
        from eeio.comparison import campaigns as comparison
        from eeio.report.documents import comparison as report
    campaigns = load_campaigns(request.campaigns)
    reject_mixed_demo(campaigns)
    cells = comparison.named_cells(campaigns)
    changes = comparison.compare(
        campaigns,
        cells,
        where=wanted(request.where, [cell for of_one in cells for cell in of_one]),
        by=request.by,
        adjustment=request.adjust,
        alpha=request.alpha,
        with_normality=request.normality,
        max_p99_s=request.max_p99,
        rule=rule,
    )
    if changes is None:
        raise RejectedError("none of these campaigns has such an experiment with a result")
    sides = [
        (campaign.name, of_one, [campaign])
        for campaign, of_one in zip(campaigns, cells, strict=True)
    ]
    gates = _gates(sides, request)
    page = _page(campaigns, changes, gates, _undecided(request))
    document = report.document(changes, page)
    save_figures(campaigns)
    return document, gates


def _check_gate(request: CompareRequest) -> None:
    """Raises RejectedError for options of a gate without one, and for a change to detect that is
    tolerated."""
    for name in ("junit", "annotations", "detect", "undecided"):
        if request.fail_if is None and getattr(request, name) is not None:
            raise RejectedError(f"--{name}: an option of the gate; give --fail-if too")
    if request.fail_if is not None and request.detect is not None:
        check_detect(request.fail_if, request.detect)


def _undecided(request: CompareRequest) -> Literal["pass", "fail"]:
    """A change that must not pass unnoticed must not pass undecided."""
    if request.undecided is not None:
        if request.undecided == "fail":
            return "fail"
        return "pass"
    if request.detect is None:
        return "pass"
    return "fail"


def compare_sessions(request: CompareRequest, rule: "Rule") -> int:
    """Groups of campaigns, each of one machine, the first against each other one."""
    from eeio.comparison.sessions import compare_groups
    from eeio.comparison.settings import differing
    from eeio.report.documents import sessions as report

    for name, given in (
        ("--by", request.by),
        ("--where", request.where),
        ("--normality", request.normality),
        ("--max-p99", request.max_p99 is not None),
    ):
        if given:
            raise RejectedError(f"{name}: not with --sessions")
    names = [list(filter(None, group.split(","))) for group in request.campaigns]
    if not all(names):
        raise RejectedError("--sessions: a group without a campaign; give such as A1,A2 B1,B2")
    campaigns = load_campaigns(list(chain.from_iterable(names)))
    reject_mixed_demo(campaigns)
    loaded = iter(campaigns)
    groups = [list(islice(loaded, len(group))) for group in names]
    try:
        changes = compare_groups(groups, rule, request.adjust)
    except EeioError as error:
        raise RejectedError(f"--sessions: {error}") from error
    sides = [
        (" + ".join(names), of_group, group)
        for names, of_group, group in zip(changes.groups, changes.cells, groups, strict=True)
    ]
    warnings = [text for campaign in campaigns for text in warnings_of(campaign)]
    warnings += differing({name: of_group for name, _, of_group in sides}, changes.changes)
    document = report.document(changes, tuple(dict.fromkeys(warnings)))
    return _answer(request, document, _gates(sides, request))


def _page(
    campaigns: "Sequence[Campaign]",
    found: "Comparison",
    gates: "Sequence[Gate]",
    undecided: Literal["pass", "fail"],
) -> Callable[[], str]:
    def rendered() -> str:
        with analysis():
            from eeio.measure.power_series import power_series
            from eeio.report import page
            from eeio.report.documents import gate
        remarks = [line for each_gate in gates for line in gate.lines(each_gate, False, undecided)]
        return page.render(
            with_tests(build(campaigns, readings=power_series)),
            found.changes,
            power_series,
            remarks,
        )

    return rendered


def _gates(
    sides: "Sequence[tuple[str, Sequence[Cell], Sequence[Campaign]]]", request: CompareRequest
) -> "Sequence[Gate]":
    """The test of each later campaign against the first; none without --fail-if."""
    requested = request.fail_if
    if requested is None:
        return ()
    with analysis():
        from eeio.analysis.observation import Missing
        from eeio.comparison.cells import fits, why_too_slow
        from eeio.comparison.gate import Side, gate
    where = dict(word.split("=", 1) for word in request.where)
    (name, cells, campaigns), *others = sides
    before = Side(
        name,
        [c for c in cells if fits(c, where) and why_too_slow(c, request.max_p99) is None],
        campaigns,
    )
    gates = []
    for side in others:
        after = Side(*side)
        # An experiment that is too slow now has no result that may count: it is not tested.
        fast = [
            cell
            if (reason := why_too_slow(cell, request.max_p99)) is None
            else replace(cell, figures=dict.fromkeys(cell.measured, Missing(reason)))
            for cell in after.cells
        ]
        try:
            gates.append(
                gate(
                    before,
                    replace(after, cells=fast),
                    requested.share,
                    requested.metric,
                    detect=request.detect,
                )
            )
        except EeioError as error:
            if max(requested.share, request.detect or 0.0) >= 1:
                raise RejectedError(str(error)) from error
            raise
    if all(Path(campaign.design.suite).name == BENCH for campaign in campaigns):
        return [replace(each, bench_runs=_bench_runs(before, each)) for each in gates]
    return gates


def _bench_runs(before: "Side", found: "Gate") -> int | None:
    """The runs of each command with which the gate finds its change in 9 of 10 comparisons."""
    with analysis():
        from eeio.comparison.gate_plan import gate_plan
    return gate_plan(before, found.share, found.metric, found.to_detect).repetitions


def _answer(request: CompareRequest, document: Document, gates: "Sequence[Gate]") -> int:
    """Writes the document with the gates; their failures also on stderr, for the log of a CI job,
    and in the exit status."""
    if not gates:
        write_document(request, document)
        return EXIT_DONE
    with analysis():
        from eeio.report.documents import gate as report
    of_comparison, undecided = document.data, _undecided(request)
    tables = tuple(report.table(each, request.sessions) for each in gates)
    verdicts = tuple(report.summary(each, undecided) for each in gates)
    document = replace(
        document,
        answer=(*verdicts, *document.answer),
        parts=(*tables, *document.parts),
        data=lambda: {**of_comparison(), "gate": report.to_json(gates, undecided)},
    )
    write_document(request, document)
    for each in gates:
        for line in report.lines(each, request.sessions, undecided):
            print(shown(line), file=sys.stderr)
    if request.junit is not None:
        write_file(request.junit, report.junit(gates, undecided))
    if request.annotations == "github":
        print("\n".join(report.workflow_commands(gates, undecided)))
    if any(each.of("worse") for each in gates):
        return EXIT_WORSE
    failed = any(report.fails(row, undecided) for each in gates for row in each.rows)
    if failed:
        return EXIT_FAILED
    return EXIT_DONE


COMMAND = Command(
    "compare",
    CompareRequest,
    compare,
    help="compare campaigns or factors; gate a change with --fail-if",
    description="Compares bandwidth, power and efficiency for each factor: cache, request "
    "size, access pattern, operation, drive type, machine. Shows the largest significant "
    "difference with its interval (Mann-Whitney test) and a breakdown of the power above "
    "idle. `eeio check NAME --against BASELINE --limit 5%` is the short form of the gate "
    "`--fail-if`.",
)
