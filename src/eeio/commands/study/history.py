"""`eeio study history`, also called as `eeio history`: when the results of a suite changed."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eeio import paths
from eeio.analysis.metrics import gated, gated_name
from eeio.commands.campaign_folders import analysis, load_campaigns
from eeio.commands.output_file import document_format, output_file, pager_switch, write_document
from eeio.errors import EXIT_DONE, EeioError, RejectedError
from eeio.options import Command, argument, option
from eeio.record.publication import warnings_of
from eeio.record.store import Campaign, progress
from eeio.units.names import similar


@dataclass(frozen=True, kw_only=True)
class HistoryRequest:
    """`eeio study history`."""

    suite: str = argument(
        "SUITE",
        help="suite of the campaigns (see `eeio list`)",
    )
    machine: str | None = option(
        "--machine",
        value="HOST",
        help="only campaigns of this machine",
    )
    metric: str | None = option(
        "--metric",
        value="METRIC",
        help="J/GB, MB/s, ... (default: J/GB, or MB/s without energy)",
        parse=gated_name,
        choices=gated()[1:],
    )
    format: str = document_format()
    output: Path | None = output_file()
    no_pager: bool = pager_switch(rare=False)


def _has_power(campaign: Campaign) -> bool:
    phases = (phase for run in campaign.runs for phase in run.phases)
    return any(p.energy or (p.until_durable and p.until_durable.energy) for p in phases)


def _without_demo(campaigns: list[Campaign]) -> list[Campaign]:
    """Without those whose power is fictitious, if others have any other power."""
    demo = [one for one in campaigns if one.is_demo]
    if not any(_has_power(one) for one in campaigns if not one.is_demo):
        return campaigns
    for campaign in demo:
        print(
            f"eeio: left out: {campaign.name}: its power is fictitious (meter demo)",
            file=sys.stderr,
        )
    return [one for one in campaigns if not one.is_demo]


def _loaded(names: Sequence[str], machine: str | None) -> Iterator[Campaign]:
    """The campaigns of the machine. Names on stderr those that are damaged, and copies: a campaign
    counts once."""
    known: dict[tuple[str, str, int], str] = {}
    for name in names:
        try:
            (campaign,) = load_campaigns([name])
        except EeioError as error:
            print(f"eeio: left out: {error}", file=sys.stderr)
            continue
        if machine not in (None, campaign.machine.hostname):
            continue
        design = campaign.design
        key = (campaign.machine.hostname, design.created_utc, design.options.seed)
        if design.created_utc and (first := known.setdefault(key, name)) != name:
            print(f"eeio: left out: {name} is a copy of {first}", file=sys.stderr)
            continue
        yield campaign


def show(request: HistoryRequest) -> int:
    suites: dict[str, list[str]] = {}
    for name, folder in paths.campaigns().items():
        try:
            # A suite of the user's is stored by its folder.
            suites.setdefault(Path(progress(folder).suite).name, []).append(name)
        except (EeioError, OSError, ValueError):
            continue  # `eeio list` names it
    suite = Path(request.suite).name
    if suite not in suites:
        known = similar(suite, suites)
        raise RejectedError(f"no campaign of the suite {suite!r}{known}; see `eeio list`")
    campaigns = list(_loaded(suites[suite], request.machine))
    if not campaigns:
        raise RejectedError(f"no campaign of {suite} on the machine {request.machine}")
    campaigns = _without_demo(campaigns)
    with analysis():
        from eeio.comparison.history import history
        from eeio.report.documents.history import document
    warnings = dict.fromkeys(text for campaign in campaigns for text in warnings_of(campaign))
    of_suite = history(suite, campaigns, request.metric)
    if not of_suite.series:
        raise RejectedError(f"no campaign of {suite} has a measured {of_suite.metric}")
    write_document(request, document(of_suite, tuple(warnings)))
    return EXIT_DONE


COMMAND = Command(
    "history",
    HistoryRequest,
    show,
    help="find when the results of a suite changed",
    description="Shows each experiment of a suite over all stored campaigns, with the changes "
    "of its level and what changed in the machine then. `eeio history SUITE` is the same.",
)
