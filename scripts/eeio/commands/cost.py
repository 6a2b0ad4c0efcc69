"""`eeio cost`: what moving a TB costs in J, kWh, money and carbon, and storing one for a year."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from eeio import terminal
from eeio.commands.amounts import decimal_bytes, duty
from eeio.commands.campaign_folders import analysis, load_campaigns
from eeio.commands.measured_cells import add_choice, cells, idle_power_w, other_domains, told
from eeio.commands.output_file import add_output, write_output
from eeio.errors import EXIT_DONE, RefusedError
from eeio_limits import LimitError
from eeio_results.errors import EeioError
from eeio_results.guideline.cost_inputs import CostInputs, grid_of, load_inputs, positive
from eeio_results.stamps import warnings_of

if TYPE_CHECKING:
    from eeio_results.guideline.cost import Cost
    from eeio_results.guideline.servers import Server
    from eeio_results.store import Campaign


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "cost",
        help="J, kWh, money and carbon of a TB that is moved, or stored for a year",
        description="Of a campaign's bandwidth and power, and of your own prices, what a TB costs, "
        "with intervals, and which input moves each answer most (docs/cost.md). No price "
        "and no carbon of ours is built in: what is not given is missing, with its reason.",
    )
    parser.add_argument("campaign", metavar="NAME|PATH", help="name, or its folder")
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
        "--purchase", metavar="N", type=_number("purchase"), help="of the machine with its drives"
    )
    parser.add_argument(
        "--embodied-kg", metavar="N", type=_number("embodied_kg"), help="kg CO2e of making it"
    )
    parser.add_argument("--years", metavar="N", type=_number("years"), help="that it is used")
    parser.add_argument(
        "--capacity", metavar="SIZE", type=decimal_bytes,
        help="stored on it, 4T: also what a TB costs in a year that is stored",
    )  # fmt: skip
    parser.add_argument("--currency", metavar="WORD", default="")
    add_choice(parser)
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


def cost_of(arguments: argparse.Namespace) -> int:
    with analysis():
        from eeio_results.guideline.cost import cost
        from eeio_results.guideline.workload_file import load_workload
        from eeio_results.report import cost as report
    try:
        given = _inputs(arguments)
        workload = None if arguments.workload is None else load_workload(arguments.workload)
    except (EeioError, LimitError) as error:
        raise RefusedError(str(error)) from error
    (campaign,) = load_campaigns([arguments.campaign])
    made = cost(_system(campaign, arguments), workload, given)
    remarks = [f"{campaign.name}: {words}" for words in warnings_of(campaign)]
    if given.pue is None:
        remarks.append("no --pue: the energy of the machine alone, without that of its site")
    if given.duty is None:
        remarks.append("no --duty: no idle energy is in what moving a TB costs")
    made = replace(made, messages=(*remarks, *made.messages))
    width = terminal.width() if arguments.output is None else None
    render: dict[str, Callable[[Cost], str]] = {
        "table": partial(report.render_text, width=width),
        "json": report.render_json, "markdown": report.render_markdown,
    }  # fmt: skip
    write_output(arguments, render[arguments.format](made))
    return EXIT_DONE


def _inputs(arguments: argparse.Namespace) -> CostInputs:
    """Raises EeioError and LimitError."""
    grid = arguments.grid_g_per_kwh
    given = CostInputs(
        price_per_kwh=arguments.price_per_kwh,
        grid=None if grid is None else grid_of(grid),
        pue=arguments.pue,
        duty=arguments.duty,
        purchase=arguments.purchase,
        embodied_kg=arguments.embodied_kg,
        years=arguments.years,
        capacity_bytes=arguments.capacity,
        currency=arguments.currency,
    )
    return given if arguments.inputs is None else given.over(load_inputs(arguments.inputs))


def _system(campaign: "Campaign", arguments: argparse.Namespace) -> "Server":
    from eeio_results.guideline.servers import Server

    left_out: dict[str, list[str]] = {}
    found = cells(campaign, arguments, left_out)
    if not found:
        raise RefusedError(
            f"{campaign.name}: no experiment of {arguments.tool} at the level {arguments.level} "
            f"has both bandwidth and power of the {arguments.domain}"
            + other_domains([campaign], arguments.domain)
            + _other_places(campaign)
        )
    told(left_out)
    return Server(
        name=f"{campaign.machine.hostname} {campaign.machine.drive_name}",
        cells=tuple(found),
        idle_power_w=idle_power_w(campaign, arguments.domain),
    )


def _other_places(campaign: "Campaign") -> str:
    """Where it measured, for --tool and --level."""
    known = dict.fromkeys(
        f"--tool {run.experiment.tool} --level {run.experiment.level}"
        for run in campaign.runs
        if run.experiment.level != "context"
    )
    return f"; it has {', '.join(known)}" if known else ""
