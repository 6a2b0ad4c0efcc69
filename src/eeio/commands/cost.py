"""`eeio cost`: J, kWh, money and carbon of moving a TB, and of storing one for a year."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from eeio.commands import guideline
from eeio.commands.amounts import decimal_bytes, duty
from eeio.commands.arguments import OptionGroup, add_help_all, former
from eeio.commands.campaign_folders import analysis, load_campaigns, reject_mixed_demo
from eeio.commands.experiments import (
    add_choice,
    choice_of,
    chosen_domain,
    number_of,
    print_left_out,
)
from eeio.commands.output_file import add_formats, write_document
from eeio.errors import EXIT_DONE, EeioError, LimitError, RejectedError
from eeio.guideline.cost_inputs import CostInputs, grid_of, load_inputs, positive
from eeio.record.publication import warnings_of
from eeio.report.document import Document
from eeio.units import quantities as q

if TYPE_CHECKING:
    from eeio.guideline.measured import Choice
    from eeio.guideline.servers import Server
    from eeio.record.store import Campaign


_ONLY_CAMPAIGNS = ("inputs", "price", "embodied_kg", "capacity", "idle_w")
"""Options without a meaning for the replacement of servers."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "cost",
        help="J, kWh, money and carbon per TB; guideline for replacing servers",
        description="Computes the cost of a TB from a campaign's bandwidth and power and from "
        "your prices, with intervals (docs/how-to/costs.md). Two or more campaigns are compared "
        "by their cost per TB. With --traditional and --low-power it shows how many low-power "
        "servers replace one traditional server. eeio includes no prices and no carbon figures. "
        "A result without its input is missing, with a reason.",
    )
    parser.add_argument("campaigns", metavar="NAME|PATH", nargs="*", help="campaign name or folder")
    prices = OptionGroup(parser, "prices and carbon")
    prices.add("--price-per-kwh", metavar="N", type=_price)
    prices.add(
        "--price", metavar="N[,N]", type=_each(_number("purchase")), default=(),
        help="price of machine and drives, also one per campaign: 900,1200",
    )  # fmt: skip
    prices.add("--years", metavar="N", type=_number("years"), help="service life in years")
    prices.add(
        "--grid-g-per-kwh", metavar="N|HOURS.csv",
        help="g CO2e per kWh, or a file with columns hour_utc,g_per_kwh",
    )  # fmt: skip
    prices.add(
        "--duty-cycle", metavar="SHARE", type=duty,
        help="share of time with I/O, e.g. 10%% or 0.1; otherwise idle",
    )  # fmt: skip
    prices.rare(
        "--pue",
        metavar="N",
        type=_number("pue"),
        help="PUE: energy of the site over energy of the machine",
    )
    prices.rare(
        "--embodied-kg", metavar="N[,N]", type=_each(_number("embodied_kg")), default=(),
        help="embodied carbon in kg CO2e, also one per campaign",
    )  # fmt: skip
    prices.add(
        "--capacity", metavar="SIZE[,SIZE]", type=_each(decimal_bytes), default=(),
        help="stored data, e.g. 4T; adds the cost of storing a TB for a year",
    )  # fmt: skip
    prices.add(
        "--idle-w", metavar="N[,N]", type=_each(_number("idle_w")), default=(),
        help="idle power in W, for campaigns that did not measure it; also one per campaign",
    )  # fmt: skip
    prices.rare("--currency", metavar="TEXT", default="")
    prices.rare(
        "--inputs", metavar="FILE.yaml", type=Path,
        help="prices and carbon figures; options take precedence",
    )  # fmt: skip
    guideline.add_options(OptionGroup(parser, "replacement of servers"))
    experiments = OptionGroup(parser, "experiments")
    experiments.add(
        "--workload", metavar="MIX.yaml", type=Path,
        help="workload mix (default: equal bytes per experiment)",
    )  # fmt: skip
    add_choice(experiments)
    experiments.add(
        "--demo", action="store_true", help="accept the fictitious power of the demo meter"
    )
    add_formats(OptionGroup(parser))
    for name in ("--duty", "--busy-share"):
        former(parser, name, "--duty-cycle")
    former(parser, "--purchase", "--price")
    add_help_all(parser)
    parser.set_defaults(action=cost)


_price = number_of(q.PRICE)


def cost(arguments: argparse.Namespace) -> int:
    sides = {"--traditional": arguments.traditional, "--low-power": arguments.low_power}
    if not any(sides.values()):
        given = [
            name
            for name in guideline.OPTIONS
            if getattr(arguments, name[2:].replace("-", "_")) not in (None, [], 1, "medians")
        ]
        if given:
            raise RejectedError(f"{given[0]}: only with --traditional and --low-power")
        if not arguments.campaigns:
            raise RejectedError(
                "which campaign? `eeio cost NAME`, or --traditional NAME --low-power NAME"
            )
        return cost_of(arguments)
    missing = [name for name, names in sides.items() if not names]
    if missing:
        raise RejectedError(f"{missing[0]} NAME is missing: a guideline compares two servers")
    if arguments.campaigns:
        raise RejectedError(
            f"{arguments.campaigns[0]}: give it after --traditional or after --low-power"
        )
    if arguments.demo:
        raise RejectedError("--demo: demo power is not accepted for the replacement of servers")
    for name in _ONLY_CAMPAIGNS:
        if getattr(arguments, name):
            option = name.replace("_", "-")
            raise RejectedError(
                f"--{option}: not with --traditional; it has --traditional-{option}"
            )
    return guideline.guide(arguments)


def _number(name: str) -> Callable[[str], float]:
    def convert(text: str) -> float:
        try:
            return positive(name, text)
        except LimitError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


def _each(convert: Callable[[str], float]) -> Callable[[str], tuple[float, ...]]:
    """One number for all campaigns, or one for each of them."""
    return lambda text: tuple(convert(part) for part in text.split(","))


def _reject_demo(names: Sequence[str]) -> None:
    if names:
        raise RejectedError(
            f"{', '.join(names)}: the power is fictitious (meter demo), so the cost is not real; "
            "to try the command, use --demo"
        )


def _not_given(inputs: CostInputs) -> list[str]:
    remarks = []
    if inputs.pue is None:
        remarks.append("no --pue: only the machine's energy, without that of its site")
    if inputs.duty is None:
        remarks.append("no --duty-cycle: the cost of moving a TB excludes idle energy")
    return remarks


def cost_of(arguments: argparse.Namespace) -> int:
    write_document(arguments, document_of(arguments))
    return EXIT_DONE


def document_of(arguments: argparse.Namespace) -> Document:
    """The answer for the campaigns."""
    with analysis():
        from eeio.guideline.cost import costs
        from eeio.guideline.measured import domain_remark, unranked_remarks
        from eeio.guideline.workload_file import load_workload
        from eeio.report.documents import cost as report
    names = arguments.campaigns
    try:
        given = [_inputs(arguments, place, len(names)) for place in range(len(names))]
        workload = None if arguments.workload is None else load_workload(arguments.workload)
    except (EeioError, LimitError) as error:
        raise RejectedError(str(error)) from error
    campaigns = load_campaigns(names)
    reject_mixed_demo(campaigns)
    demo = [campaign.name for campaign in campaigns if campaign.is_demo]
    _reject_demo([] if arguments.demo else demo)
    choice = choice_of(arguments)
    domain = chosen_domain(campaigns, choice)
    lacking = [campaign for campaign in campaigns if campaign.idle_power_w(domain) is None]
    for_all = len(arguments.idle_w) < len(names) and bool(lacking)
    idles = [
        _idle(campaign, domain, inputs.idle_w, for_all)
        for campaign, inputs in zip(campaigns, given, strict=True)
    ]
    systems = [
        _system(campaign, choice, domain, idle_w)
        for campaign, (idle_w, _) in zip(campaigns, idles, strict=True)
    ]
    if len({system.name for system in systems}) < len(systems):
        systems = [replace(s, name=c.name) for s, c in zip(systems, campaigns, strict=True)]
    made, verdicts = costs(systems, workload, given)
    remarks = [
        f"{campaign.name}: {remark}"
        for campaign in campaigns
        for remark in (*warnings_of(campaign), *unranked_remarks(campaign, choice, domain))
    ]
    if (remark := domain_remark(domain, len(campaigns))) is not None:
        remarks.append(remark)
    remarks += _not_given(given[0])
    if given[0].duty is not None or given[0].capacity_bytes is not None:
        remarks += [
            f"{campaign.name}: {source}"
            for campaign, (_, source) in zip(campaigns, idles, strict=True)
        ]
    if len(names) > 1:
        remarks.append(
            "one session each: what changed between the campaigns (temperature, updates) is part "
            "of the difference"
        )
    made = (replace(made[0], messages=(*remarks, *made[0].messages)), *made[1:])
    return report.document(made, verdicts, domain, demo=bool(demo))


def _inputs(arguments: argparse.Namespace, place: int, campaigns: int) -> CostInputs:
    """Of the campaign at that place. Raises EeioError and LimitError."""

    def own(option: str) -> float | None:
        values: list[float] = getattr(arguments, option)
        if len(values) not in (0, 1, campaigns):
            raise EeioError(
                f"--{option.replace('_', '-')}: {len(values)} numbers for {campaigns} campaigns; "
                "give one for all, or one for each"
            )
        if not values:
            return None
        return values[place] if len(values) > 1 else values[0]

    grid = arguments.grid_g_per_kwh
    given = CostInputs(
        price_per_kwh=arguments.price_per_kwh,
        grid=None if grid is None else grid_of(grid),
        pue=arguments.pue,
        duty=arguments.duty_cycle,
        purchase=own("price"),
        embodied_kg=own("embodied_kg"),
        years=arguments.years,
        capacity_bytes=own("capacity"),
        idle_w=own("idle_w"),
        currency=arguments.currency,
    )
    return given if arguments.inputs is None else given.over(load_inputs(arguments.inputs))


def _idle(
    campaign: "Campaign", domain: str, given_w: float | None, for_all: bool
) -> tuple[float | None, str]:
    """The idle power in W with its source in words. `for_all`: one number is for all campaigns that
    did not measure it. Raises RejectedError if the user gives one for a campaign that did."""
    measured_w = campaign.idle_power_w(domain)
    if measured_w is None and given_w is None:
        why = campaign.idle_reason or "the campaign did not measure it"
        return None, f"its idle power is not known ({why}); give --idle-w"
    if measured_w is None:
        return given_w, f"idle power {given_w:g} W, given by --idle-w or in --inputs"
    if given_w is not None and not for_all:
        raise RejectedError(
            f"--idle-w {given_w:g}: {campaign.name} measured its idle power itself: "
            f"{measured_w:.4g} W of the {domain}; leave the option out"
        )
    return measured_w, f"idle power {measured_w:.4g} W, measured by the campaign"


def _system(
    campaign: "Campaign", choice: "Choice", domain: str, idle_power_w: float | None
) -> "Server":
    from eeio.guideline.measured import LeftOut, cells
    from eeio.guideline.servers import Server

    left_out: LeftOut = {}
    found = cells(campaign, choice, domain, left_out)
    print_left_out(left_out)
    return Server(
        name=campaign.machine.name or campaign.name,
        cells=tuple(found),
        idle_power_w=idle_power_w,
    )
