"""`eeio cost --traditional ... --low-power ...`: how many low-power servers replace one server."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from eeio.commands.arguments import OptionGroup
from eeio.commands.campaign_folders import analysis, load_campaigns
from eeio.commands.experiments import choice_of, chosen_domain, number_of, print_left_out
from eeio.commands.output_file import write_document, write_file
from eeio.errors import EXIT_DONE, EeioError, LimitError, RejectedError
from eeio.record.publication import QUICK_WARNING
from eeio.units import quantities as q

if TYPE_CHECKING:
    from eeio.guideline.answer import Cost, Guideline, LessPerTb
    from eeio.guideline.servers import Costs, Server
    from eeio.record.store import Campaign

_SIDES = ("traditional", "low_power")


def add_options(options: OptionGroup) -> None:
    """Those that `eeio cost` has for the replacement of servers."""
    for side, text in (("traditional", "the server to replace"), ("low-power", "its replacement")):
        options.add(
            f"--{side}", metavar="NAME|PATH", nargs="+", default=[], help=f"campaigns of {text}"
        )
        options.add(f"--{side}-price", metavar="N", type=_price, help="price of one server")
        options.rare(f"--{side}-device-price", metavar="N", type=_price, help="price of one drive")
        options.rare(
            f"--{side}-embodied-kg", metavar="N", type=_carbon,
            help="embodied carbon of a server with drives, kg CO2e; needs --years",
        )  # fmt: skip
        options.rare(
            f"--{side}-devices", metavar="N", type=_devices, default=1,
            help="drives per server (default: 1)",
        )  # fmt: skip
    options.rare(
        "--choice", choices=("medians", "best-worst"), default="medians",
        help="best-worst: best traditional against worst low-power drive",
    )  # fmt: skip
    options.rare(
        "--servers", metavar="N", type=_factor, action="append", default=[],
        help="also evaluate N low-power servers; repeatable",
    )  # fmt: skip
    options.rare("--map", metavar="FILE.svg", type=Path, help="also draw the decision map")


OPTIONS = (
    *(
        f"--{side}{suffix}"
        for side in ("traditional", "low-power")
        for suffix in ("", "-price", "-device-price", "-embodied-kg", "-devices")
    ),
    "--choice", "--servers", "--map",
)  # fmt: skip

_price, _carbon, _factor = number_of(q.PRICE), number_of(q.CARBON), number_of(q.FRACTION)


def _devices(text: str) -> int:
    return int(number_of(q.REPETITIONS)(text))


def guide(arguments: argparse.Namespace) -> int:
    with analysis():
        from eeio.guideline.measured import domain_remark
        from eeio.guideline.replacement_rule import guideline
        from eeio.guideline.workload_file import load_workload
        from eeio.report.documents import guideline as report
    if arguments.workload is None:
        raise RejectedError("--workload MIX.yaml is missing: the guideline is for one workload mix")
    campaigns = {side: load_campaigns(getattr(arguments, side)) for side in _SIDES}
    every = [campaign for side in _SIDES for campaign in campaigns[side]]
    if demo := [campaign.name for campaign in every if campaign.is_demo]:
        raise RejectedError(
            f"{', '.join(demo)}: the power is fictitious (meter demo): no server is replaced for "
            "it; measure with a meter (`eeio doctor`)"
        )
    domain = chosen_domain(every, choice_of(arguments))
    traditional, low_power = (_system(arguments, side, campaigns[side], domain) for side in _SIDES)
    if traditional.name == low_power.name:
        # One machine before and after a change: told apart by what its campaigns are called.
        traditional = replace(traditional, name=", ".join(arguments.traditional))
        low_power = replace(low_power, name=", ".join(arguments.low_power))
    made = guideline(
        load_workload(arguments.workload),
        traditional,
        low_power,
        _costs(arguments),
        choice=arguments.choice,
        counts=arguments.servers,
    )
    per_tb, less = _per_tb(arguments, made, (traditional, low_power))
    made = replace(made, per_tb=per_tb, less_per_tb=less)
    quick = [c.name for side in _SIDES for c in campaigns[side] if not c.is_measurement]
    checks = tuple(f"{name}: {QUICK_WARNING}" for name in quick)
    remark = domain_remark(domain, len(every))
    notes = (*checks, *([remark] if remark else []))
    made = replace(made, messages=(*notes, *made.messages))
    if arguments.map is not None:
        with analysis():
            from eeio.report.figures import guideline_map
        drawn = guideline_map.draw(made, is_measurement=not quick)
        if drawn is None:
            print("no map: no experiment can be compared", file=sys.stderr)
        else:
            write_file(arguments.map, drawn)
            print(f"map: {arguments.map}", file=sys.stderr)
    write_document(arguments, report.document(made, lambda: _render_html(made, quick)))
    return EXIT_DONE


def _render_html(made: "Guideline", quick: "Sequence[str]") -> str:
    with analysis():
        from eeio.report.page import guideline as page
    return page.render(made, quick)


def _costs(arguments: argparse.Namespace) -> "Costs | None":
    from eeio.guideline.servers import Costs

    embodied = any(getattr(arguments, f"{side}_embodied_kg") for side in _SIDES)
    if embodied and arguments.years is None:
        raise RejectedError("embodied carbon is spread over --years: give them")
    if arguments.price_per_kwh is None and arguments.years is not None and embodied:
        return None
    if (arguments.price_per_kwh is None) != (arguments.years is None):
        raise RejectedError("electricity needs both --price-per-kwh and --years")
    if arguments.price_per_kwh is None:
        return None
    return Costs(
        price_per_kwh=arguments.price_per_kwh,
        years=arguments.years,
        pue=1.0 if arguments.pue is None else arguments.pue,
        busy_share=arguments.duty_cycle,
        currency=arguments.currency,
    )


def _per_tb(
    arguments: argparse.Namespace, made: "Guideline", systems: "Sequence[Server]"
) -> "tuple[tuple[Cost, ...], tuple[LessPerTb, ...]]":
    """Cost per TB on each system, and which is cheaper."""
    from eeio.guideline.cost import costs
    from eeio.guideline.cost_inputs import CostInputs, grid_of

    embodied = [getattr(arguments, f"{side}_embodied_kg") for side in _SIDES]
    try:
        grid = None if arguments.grid_g_per_kwh is None else grid_of(arguments.grid_g_per_kwh)
    except (EeioError, LimitError) as error:
        raise RejectedError(str(error)) from error
    given = CostInputs(
        price_per_kwh=arguments.price_per_kwh or None,
        grid=grid,
        pue=arguments.pue,
        duty=arguments.duty_cycle or None,
        years=arguments.years,
        currency=arguments.currency,
    )
    return costs(
        systems,
        made.workload,
        [
            replace(given, purchase=_price_of(system), embodied_kg=kg or None)
            for system, kg in zip(systems, embodied, strict=True)
        ],
    )


def _price_of(system: "Server") -> float | None:
    """Of a server with its drives; None where either is not given."""
    if system.server_price is None or system.device_price is None:
        return None
    return system.server_price + system.devices * system.device_price or None


def _system(
    arguments: argparse.Namespace, side: str, campaigns: "Sequence[Campaign]", domain: str
) -> "Server":
    """One side's campaigns as one system, each campaign's drive a variant."""
    from eeio.guideline.measured import LeftOut, cells
    from eeio.guideline.servers import Server

    machines = {campaign.machine.hostname for campaign in campaigns}
    if len(machines) > 1:
        raise RejectedError(
            f"--{side.replace('_', '-')}: campaigns of several machines: "
            f"{', '.join(sorted(machines))}; each side is one kind of server"
        )
    left_out: LeftOut = {}
    choice = choice_of(arguments)
    found = [cell for campaign in campaigns for cell in cells(campaign, choice, domain, left_out)]
    print_left_out(left_out)
    return Server(
        name=machines.pop(),
        cells=tuple(found),
        idle_power_w=campaigns[0].idle_power_w(domain) if len(campaigns) == 1 else None,
        server_price=getattr(arguments, f"{side}_price"),
        device_price=getattr(arguments, f"{side}_device_price"),
        devices=getattr(arguments, f"{side}_devices"),
    )
