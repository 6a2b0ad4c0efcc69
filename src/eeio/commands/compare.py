"""`eeio compare`: the largest confirmed differences between experiments, factor by factor."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from eeio.commands.amounts import seconds
from eeio.commands.arguments import OptionGroup, add_help_all
from eeio.commands.campaign_folders import (
    analysis,
    load_campaigns,
    reject_mixed_demo,
    save_figures,
)
from eeio.commands.experiments import FACTORS, add_where, wanted
from eeio.commands.gate_options import FailIf, add_detect, add_fail_if, check_detect
from eeio.commands.output_file import add_formats, write_document, write_file
from eeio.commands.report import with_tests
from eeio.errors import EXIT_DONE, EXIT_FAILED, EXIT_WORSE, EeioError, RejectedError
from eeio.measure.bench.plan import SUITE as BENCH
from eeio.record.publication import warnings_of
from eeio.report.campaign.characterized import build
from eeio.report.document import Document
from eeio.units.external_text import shown

if TYPE_CHECKING:
    from eeio.comparison.campaigns import Comparison
    from eeio.comparison.cells import Cell
    from eeio.comparison.gate import Gate, Side
    from eeio.record.store import Campaign
    from eeio.statistics.decision import Rule

_ADJUSTMENTS = ("benjamini-hochberg", "holm", "bonferroni", "none")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "compare",
        help="compare campaigns or factors; gate a change with --fail-if",
        description="Compares bandwidth, power and efficiency for each factor: cache, request "
        "size, access pattern, operation, drive type, machine. Shows the largest significant "
        "difference with its interval (Mann-Whitney test) and a breakdown of the power above "
        "idle. `eeio check NAME --against BASELINE --limit 5%` is the short form of the gate "
        "`--fail-if`.",
    )
    parser.add_argument("campaigns", metavar="NAME|PATH", nargs="+", help="campaign name or folder")
    experiments = OptionGroup(parser, "experiments")
    experiments.add(
        "--by", metavar="FACTOR", action="append", default=[], choices=FACTORS,
        help=f"compare within each level of FACTOR: {', '.join(FACTORS)}",
    )  # fmt: skip
    add_where(experiments)
    experiments.rare(
        "--max-p99", metavar="TIME", type=seconds,
        help="only experiments with p99 latency up to this, e.g. 250us, 5ms",
    )  # fmt: skip
    experiments.rare(
        "--sessions", action="store_true",
        help="compare session means: one list per machine, A1,A2,A3 B1,B2",
    )  # fmt: skip
    gate_options = OptionGroup(parser, "gate for CI")
    add_fail_if(gate_options, "exit with 4 if worse, 1 if untested")
    add_detect(gate_options, "the change that must not pass unnoticed, above that of --fail-if")
    gate_options.add(
        "--undecided", choices=("fail", "pass"),
        help="an experiment that is not decided: exit with 1 or 0 (default: fail with --detect)",
    )  # fmt: skip
    gate_options.add(
        "--junit", metavar="FILE", type=Path, help="also write the gate's result as JUnit XML"
    )
    gate_options.rare(
        "--annotations", choices=("github",), help="also print failures as workflow commands"
    )
    statistics = OptionGroup(parser, "statistics")
    statistics.add(
        "--alpha", type=float, default=0.05, help="significance level (default: %(default)s)"
    )
    statistics.rare(
        "--indifference", type=float, default=0.05, metavar="SHARE",
        help="equivalence margin (default: %(default)s)",
    )  # fmt: skip
    statistics.rare(
        "--floor", type=float, default=0.01, metavar="SHARE",
        help="smallest effect to report (default: %(default)s)",
    )  # fmt: skip
    statistics.rare(
        "--adjust", choices=_ADJUSTMENTS, default=_ADJUSTMENTS[0],
        help="p-value correction for several pairs (default: %(default)s)",
    )  # fmt: skip
    statistics.rare(
        "--normality", action="store_true",
        help="also test whether repetitions are normally distributed",
    )  # fmt: skip
    add_formats(OptionGroup(parser, "output"))
    add_help_all(parser)
    parser.set_defaults(action=compare)


def compare(arguments: argparse.Namespace) -> int:
    with analysis():
        from eeio.statistics.decision import Rule
    if not 0 < arguments.alpha < 1:
        raise RejectedError(f"--alpha {arguments.alpha}: it is between 0 and 1")
    try:
        rule = Rule(arguments.indifference, arguments.floor, arguments.alpha)
    except EeioError as error:
        raise RejectedError(str(error)) from error
    if arguments.fail_if is not None and len(arguments.campaigns) < 2:
        raise RejectedError("--fail-if: name two campaigns, the one before first")
    _check_gate(arguments)
    if arguments.sessions:
        return compare_sessions(arguments, rule)
    document, gates = document_of(arguments, rule)
    return _answer(arguments, document, gates)


def document_of(arguments: argparse.Namespace, rule: "Rule") -> "tuple[Document, Sequence[Gate]]":
    """The answer for single campaigns, and its gates."""
    with analysis():
        from eeio.comparison import campaigns as comparison
        from eeio.report.documents import comparison as report
    campaigns = load_campaigns(arguments.campaigns)
    reject_mixed_demo(campaigns)
    cells = comparison.named_cells(campaigns)
    found = comparison.compare(
        campaigns,
        cells,
        where=wanted(arguments.where, [cell for of_one in cells for cell in of_one]),
        by=arguments.by,
        adjustment=arguments.adjust,
        alpha=arguments.alpha,
        with_normality=arguments.normality,
        max_p99_s=arguments.max_p99,
        rule=rule,
    )
    if found is None:
        raise RejectedError("none of these campaigns has such an experiment with a result")
    sides = [
        (campaign.name, of_one, [campaign])
        for campaign, of_one in zip(campaigns, cells, strict=True)
    ]
    gates = _gates(sides, arguments)
    page = _page(campaigns, found, gates, _undecided(arguments))
    document = report.document(found, page)
    save_figures(campaigns)
    return document, gates


def _check_gate(arguments: argparse.Namespace) -> None:
    """Raises RejectedError for options of a gate without one, and for a change to detect that is
    tolerated."""
    for option in ("junit", "annotations", "detect", "undecided"):
        if arguments.fail_if is None and getattr(arguments, option) is not None:
            raise RejectedError(f"--{option}: an option of the gate; give --fail-if too")
    if arguments.detect is not None:
        check_detect(arguments.fail_if, arguments.detect)


def _undecided(arguments: argparse.Namespace) -> Literal["pass", "fail"]:
    """A change that must not pass unnoticed must not pass undecided."""
    if arguments.undecided is not None:
        return "fail" if arguments.undecided == "fail" else "pass"
    return "pass" if arguments.detect is None else "fail"


def compare_sessions(arguments: argparse.Namespace, rule: "Rule") -> int:
    """Groups of campaigns, each of one machine, the first against each other one."""
    from eeio.comparison.sessions import compare_groups
    from eeio.report.documents import sessions as report

    for name, given in (
        ("--by", arguments.by), ("--where", arguments.where), ("--normality", arguments.normality),
        ("--max-p99", arguments.max_p99 is not None),
    ):  # fmt: skip
        if given:
            raise RejectedError(f"{name}: not with --sessions")
    names = [list(filter(None, group.split(","))) for group in arguments.campaigns]
    if not all(names):
        raise RejectedError("--sessions: a group without a campaign; give such as A1,A2 B1,B2")
    campaigns = load_campaigns(list(chain.from_iterable(names)))
    reject_mixed_demo(campaigns)
    loaded = iter(campaigns)
    groups = [list(islice(loaded, len(group))) for group in names]
    try:
        found = compare_groups(groups, rule, arguments.adjust)
    except EeioError as error:
        raise RejectedError(f"--sessions: {error}") from error
    sides = [
        (" + ".join(names), of_group, group)
        for names, of_group, group in zip(found.groups, found.cells, groups, strict=True)
    ]
    warnings = [text for campaign in campaigns for text in warnings_of(campaign)]
    document = report.document(found, tuple(dict.fromkeys(warnings)))
    return _answer(arguments, document, _gates(sides, arguments))


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
        remarks = [line for one in gates for line in gate.lines(one, False, undecided)]
        return page.render(with_tests(build(campaigns)), found.changes, power_series, remarks)

    return rendered


def _gates(
    sides: "Sequence[tuple[str, Sequence[Cell], Sequence[Campaign]]]", arguments: argparse.Namespace
) -> "Sequence[Gate]":
    """The test of each later campaign against the first; none without --fail-if."""
    requested: FailIf | None = arguments.fail_if
    if requested is None:
        return ()
    with analysis():
        from eeio.analysis.observation import Missing
        from eeio.comparison.cells import fits, why_too_slow
        from eeio.comparison.gate import Side, gate
    where = dict(word.split("=", 1) for word in arguments.where)
    (name, cells, campaigns), *others = sides
    before = Side(
        name,
        [c for c in cells if fits(c, where) and why_too_slow(c, arguments.max_p99) is None],
        campaigns,
    )
    found = []
    for side in others:
        after = Side(*side)
        # An experiment that is too slow now has no result that may count: it is not tested.
        fast = [
            cell if (why := why_too_slow(cell, arguments.max_p99)) is None
            else replace(cell, figures=dict.fromkeys(cell.measured, Missing(why)))
            for cell in after.cells
        ]  # fmt: skip
        try:
            found.append(
                gate(
                    before,
                    replace(after, cells=fast),
                    requested.share,
                    requested.metric,
                    detect=arguments.detect,
                )
            )
        except EeioError as error:
            if max(requested.share, arguments.detect or 0.0) >= 1:
                raise RejectedError(str(error)) from error
            raise
    if all(Path(campaign.design.suite).name == BENCH for campaign in campaigns):
        return [replace(each, bench_runs=_bench_runs(before, each)) for each in found]
    return found


def _bench_runs(before: "Side", found: "Gate") -> int | None:
    """The runs of each command with which the gate finds its change in 9 of 10 comparisons."""
    with analysis():
        from eeio.comparison.gate_plan import gate_plan
    return gate_plan(before, found.share, found.metric, found.to_detect).repetitions


def _answer(arguments: argparse.Namespace, document: Document, gates: "Sequence[Gate]") -> int:
    """Writes the document with the gates; their failures also on stderr, for the log of a CI job,
    and in the exit status."""
    if not gates:
        write_document(arguments, document)
        return EXIT_DONE
    with analysis():
        from eeio.report.documents import gate as report
    of_comparison, undecided = document.data, _undecided(arguments)
    tables = tuple(report.table(found, arguments.sessions) for found in gates)
    verdicts = tuple(report.summary(found, undecided) for found in gates)
    document = replace(
        document,
        answer=(*verdicts, *document.answer),
        parts=(*tables, *document.parts),
        data=lambda: {**of_comparison(), "gate": report.to_json(gates, undecided)},
    )
    write_document(arguments, document)
    for found in gates:
        for line in report.lines(found, arguments.sessions, undecided):
            print(shown(line), file=sys.stderr)
    if arguments.junit is not None:
        write_file(arguments.junit, report.junit(gates, undecided))
    if arguments.annotations == "github":
        print("\n".join(report.workflow_commands(gates, undecided)))
    if any(found.of("worse") for found in gates):
        return EXIT_WORSE
    failed = any(report.fails(row, undecided) for found in gates for row in found.rows)
    return EXIT_FAILED if failed else EXIT_DONE
