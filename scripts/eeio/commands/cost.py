"""`eeio cost`: what moving a TB costs in J, kWh, money and carbon, and storing one for a year."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from eeio import terminal
from eeio.commands.amounts import decimal_bytes, duty
from eeio.commands.campaign_folders import analysis, load_campaigns, refuse_mixed_demo
from eeio.commands.measured_cells import add_choice, choice_of, chosen_domain, told
from eeio.commands.output_file import add_output, write_output
from eeio.errors import EXIT_DONE, RefusedError
from eeio_limits import LimitError
from eeio_results.errors import EeioError
from eeio_results.guideline.cost_inputs import CostInputs, grid_of, load_inputs, positive
from eeio_results.stamps import warnings_of

if TYPE_CHECKING:
    from eeio_results.guideline.cost import Cost, LessPerTb
    from eeio_results.guideline.measured import Choice
    from eeio_results.guideline.servers import Server
    from eeio_results.store import Campaign


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "cost",
        help="J, kWh, money and carbon per TB moved or stored for a year",
        description="Computes what a TB costs from a campaign's bandwidth and power and from your "
        "own prices, with intervals, and shows which input changes each answer most "
        "(docs/cost.md). Of two or more campaigns it shows which costs less per TB. eeio contains "
        "no prices and no carbon figures: what you do not give is missing, with its reason.",
    )
    parser.add_argument("campaigns", metavar="NAME|PATH", nargs="+", help="name, or its folder")
    parser.add_argument(
        "--workload", metavar="MIX.yaml", type=Path,
        help="as the guideline's (default: the same bytes in each experiment)",
    )  # fmt: skip
    parser.add_argument(
        "--inputs", metavar="FILE.yaml", type=Path,
        help="all of the numbers below by their names; options go before it",
    )  # fmt: skip
    parser.add_argument("--price-per-kwh", metavar="N", type=_number("price_per_kwh"))
    parser.add_argument(
        "--grid-g-per-kwh", metavar="N|HOURS.csv",
        help="g CO2e a kWh, or a file of hours: hour_utc,g_per_kwh",
    )  # fmt: skip
    parser.add_argument("--pue", metavar="N", type=_number("pue"), help="site over machine energy")
    parser.add_argument(
        "--duty", metavar="SHARE", type=duty,
        help="of the time in which it moves bytes, 10%% or 0.1; it idles the rest",
    )  # fmt: skip
    parser.add_argument(
        "--purchase", metavar="N[,N]", type=_each(_number("purchase")), default=(),
        help="of the machine with its drives; of several campaigns one for each: 900,1200",
    )  # fmt: skip
    parser.add_argument(
        "--embodied-kg", metavar="N[,N]", type=_each(_number("embodied_kg")), default=(),
        help="kg CO2e of making it; of several campaigns one for each",
    )  # fmt: skip
    parser.add_argument("--years", metavar="N", type=_number("years"), help="that it is used")
    parser.add_argument(
        "--capacity", metavar="SIZE[,SIZE]", type=_each(decimal_bytes), default=(),
        help="stored on it, 4T: also what a TB costs in a year that is stored",
    )  # fmt: skip
    parser.add_argument("--currency", metavar="WORD", default="")
    add_choice(parser)
    parser.add_argument(
        "--demo", action="store_true", help="accept the fictitious power of the demo meter"
    )
    parser.add_argument(
        "--format", choices=("table", "json", "markdown"), default="table", help="(default: table)"
    )
    add_output(parser)
    parser.set_defaults(action=cost_of)


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


def cost_of(arguments: argparse.Namespace) -> int:
    with analysis():
        from eeio_results.guideline.cost import costs
        from eeio_results.guideline.measured import domain_words
        from eeio_results.guideline.workload_file import load_workload
        from eeio_results.report import cost as report
    names = arguments.campaigns
    try:
        given = [_inputs(arguments, place, len(names)) for place in range(len(names))]
        workload = None if arguments.workload is None else load_workload(arguments.workload)
    except (EeioError, LimitError) as error:
        raise RefusedError(str(error)) from error
    campaigns = load_campaigns(names)
    refuse_mixed_demo(campaigns)
    demo = [campaign.name for campaign in campaigns if campaign.is_demo]
    if demo and not arguments.demo:
        raise RefusedError(
            f"{', '.join(demo)}: the power is fictitious (meter demo), so nothing costs this; "
            "--demo computes it all the same, to try the command"
        )
    choice = choice_of(arguments)
    domain = chosen_domain(campaigns, choice)
    systems = [_system(campaign, choice, domain) for campaign in campaigns]
    if len({system.name for system in systems}) < len(systems):
        systems = [replace(s, name=c.name) for s, c in zip(systems, campaigns, strict=True)]
    made, verdicts = costs(systems, workload, given)
    remarks = [f"{one.name}: {words}" for one in campaigns for words in warnings_of(one)]
    if (words := domain_words(domain, len(campaigns))) is not None:
        remarks.append(words)
    if given[0].pue is None:
        remarks.append("no --pue: the energy of the machine alone, without that of its site")
    if given[0].duty is None:
        remarks.append("no --duty: no idle energy is in what moving a TB costs")
    made = (replace(made[0], messages=(*remarks, *made[0].messages)), *made[1:])
    width = terminal.width() if arguments.output is None else None
    render: dict[str, Callable[[Sequence[Cost], Sequence[LessPerTb]], str]] = {
        "table": partial(report.render_text, width=width),
        "json": partial(report.render_json, domain=domain),
        "markdown": report.render_markdown,
    }
    write_output(arguments, render[arguments.format](made, verdicts))
    return EXIT_DONE


def _inputs(arguments: argparse.Namespace, place: int, campaigns: int) -> CostInputs:
    """Of the campaign at that place. Raises EeioError and LimitError."""

    def own(option: str) -> float | None:
        values = getattr(arguments, option)
        if len(values) not in (0, 1, campaigns):
            raise EeioError(
                f"--{option.replace('_', '-')}: {len(values)} numbers for {campaigns} campaigns; "
                "give one for all, or one for each"
            )
        return None if not values else values[place if len(values) > 1 else 0]

    grid = arguments.grid_g_per_kwh
    given = CostInputs(
        price_per_kwh=arguments.price_per_kwh,
        grid=None if grid is None else grid_of(grid),
        pue=arguments.pue,
        duty=arguments.duty,
        purchase=own("purchase"),
        embodied_kg=own("embodied_kg"),
        years=arguments.years,
        capacity_bytes=own("capacity"),
        currency=arguments.currency,
    )
    return given if arguments.inputs is None else given.over(load_inputs(arguments.inputs))


def _system(campaign: "Campaign", choice: "Choice", domain: str) -> "Server":
    from eeio_results.guideline.measured import LeftOut, cells, idle_power_w
    from eeio_results.guideline.servers import Server

    left_out: LeftOut = {}
    found = cells(campaign, choice, domain, left_out)
    told(left_out)
    return Server(
        name=f"{campaign.machine.hostname} {campaign.machine.drive_name}",
        cells=tuple(found),
        idle_power_w=idle_power_w(campaign, domain),
    )
