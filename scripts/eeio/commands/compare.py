"""`eeio compare`: the largest confirmed differences between experiments, factor by factor."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eeio.commands.analysis import analysis, load_campaigns
from eeio.commands.output import add_output, write_output
from eeio.errors import EXIT_DONE, RefusedError

if TYPE_CHECKING:
    from eeio_results.comparison import Cell
    from eeio_results.store import Campaign

_ADJUSTMENTS = ("benjamini-hochberg", "holm", "bonferroni", "none")
_BY = ("machine", "device", "type", "operation", "spatiality", "size", "buffer", "disk", "level")
_FEW = 5


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "compare",
        help="which factor changes bandwidth, power and efficiency, by how much, how surely",
        description="Finds, for each factor (cache, request size, spatiality, operation, type of "
        "drive, machine), the largest difference in bandwidth, power and efficiency that the "
        "Mann-Whitney test confirms, with its interval; and where the power above idle goes.",
    )
    parser.add_argument("campaigns", metavar="NAME|PATH", nargs="+", help="name, or its folder")
    parser.add_argument(
        "--by", metavar="FACTOR", action="append", default=[], choices=_BY,
        help=f"ask each of its levels apart; may be given again ({', '.join(_BY)})",
    )  # fmt: skip
    parser.add_argument(
        "--where", metavar="FACTOR=LEVEL", action="append", default=[],
        help="only experiments with that level, such as 'size=32 KiB'; may be given again",
    )  # fmt: skip
    parser.add_argument(
        "--adjust", choices=_ADJUSTMENTS, default=_ADJUSTMENTS[0],
        help="of p-values over the pairs of a factor (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--alpha", type=float, default=0.05, help="confirmed below this p (default: %(default)s)"
    )
    parser.add_argument(
        "--normality", action="store_true",
        help="also test whether the repetitions of each experiment are normally distributed",
    )  # fmt: skip
    parser.add_argument(
        "--format", choices=("table", "json", "markdown"), default="table", help="(default: table)"
    )
    add_output(parser)
    parser.set_defaults(action=compare)


def compare(arguments: argparse.Namespace) -> int:
    with analysis():
        from eeio_results import comparison
        from eeio_results.report import comparison as report
    if not 0 < arguments.alpha < 1:
        raise RefusedError(f"--alpha {arguments.alpha}: it is between 0 and 1")
    campaigns = load_campaigns(arguments.campaigns)
    of_campaign = [
        comparison.cells_of(campaign, name)
        for campaign, name in zip(campaigns, comparison.machine_names(campaigns), strict=True)
    ]
    everything = [cell for cells in of_campaign for cell in cells]
    where = _where(arguments.where, everything)
    chosen = [cell for cell in everything if comparison.fits(cell, where)]
    if not chosen:
        raise RefusedError("none of these campaigns has such an experiment with a result")
    groups = []
    for levels in dict.fromkeys(_levels(cell, arguments.by) for cell in chosen):
        cells = [cell for cell in chosen if _levels(cell, arguments.by) == levels]
        found = comparison.findings(cells, arguments.adjust, arguments.alpha)
        groups.append(report.Group(levels, tuple(found)))
    result = report.Comparison(
        campaigns=tuple(campaign.name for campaign in campaigns),
        adjustment=arguments.adjust,
        alpha=arguments.alpha,
        groups=tuple(groups),
        idle_busy=tuple(
            item
            for campaign, cells in zip(campaigns, of_campaign, strict=True)
            for item in comparison.idle_and_busy(campaign, cells)
        ),
        normality=tuple(
            comparison.normality_counts(chosen, arguments.alpha) if arguments.normality else ()
        ),
        warnings=(
            *_warnings(campaigns, chosen),
            *comparison.domain_warnings(chosen),
            *comparison.unmatched(chosen),
        ),
    )
    render = {"table": report.to_text, "json": report.to_json, "markdown": report.to_markdown}
    write_output(arguments, render[arguments.format](result))
    return EXIT_DONE


def _where(words: Sequence[str], cells: "Sequence[Cell]") -> dict[str, str]:
    found = {}
    for word in words:
        name, equals, level = word.partition("=")
        if not equals or name not in _BY:
            raise RefusedError(f"--where {word}: it is FACTOR=LEVEL with one of {', '.join(_BY)}")
        known = sorted({cell.factors[name] for cell in cells})
        if level not in known:
            raise RefusedError(f"--where {word}: no experiment; there is {', '.join(known)}")
        found[name] = level
    return found


def _levels(cell: "Cell", names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, cell.factors[name]) for name in names)


def _warnings(campaigns: "Sequence[Campaign]", cells: "Sequence[Cell]") -> list[str]:
    """What must be said before any difference."""
    found = []
    for campaign in campaigns:
        if not campaign.is_measurement:
            found.append(f"{campaign.name}: QUICK: not a measurement")
        found += [f"{campaign.name}: {remark}" for remark in campaign.design.remarks]
    counts = [max((len(v) for v in cell.values.values()), default=0) for cell in cells]
    few = sum(count < _FEW for count in counts)
    if few:
        found.append(
            f"{few} of {len(cells)} experiments have fewer than {_FEW} valid repetitions: "
            "few differences can be confirmed"
        )
    if len(set(counts)) > 1:
        found.append(f"repetitions are unequal: from {min(counts)} to {max(counts)}")
    invalid = sum(cell.invalid_runs for cell in cells)
    if invalid:
        found.append(f"{invalid} invalid runs are not used; `eeio report` has the reasons")
    missing = {
        reason: metric for cell in cells for metric, reason in cell.reasons.items()
        if metric in ("power_system_w", "efficiency_bytes_per_j")
    }  # fmt: skip
    found += [f"{metric}: missing in some experiments: {why}" for why, metric in missing.items()]
    return found
