"""`eeio cost --traditional ... --low-power ...`: how many low-power servers replace one server."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from eeio.commands.campaign_folders import analysis, load_campaigns
from eeio.commands.experiments import choice_of, chosen_domain, print_left_out
from eeio.commands.output_file import write_document, write_file
from eeio.errors import EXIT_DONE, EeioError, LimitError, RejectedError
from eeio.record.publication import QUICK_WARNING

if TYPE_CHECKING:
    from eeio.commands.cost import CostRequest
    from eeio.guideline.answer import Cost, Guideline, LessPerTb
    from eeio.guideline.servers import Costs, Server
    from eeio.record.store import Campaign

_SIDES = ("traditional", "low_power")


def guide(request: "CostRequest") -> int:
    with analysis():
        from eeio.guideline.measured import domain_remark
        from eeio.guideline.replacement_rule import guideline
        from eeio.guideline.workload_file import load_workload
        from eeio.report.documents import guideline as report
    if request.workload is None:
        raise RejectedError("--workload MIX.yaml is missing: the guideline is for one workload mix")
    campaigns = {side: load_campaigns(getattr(request, side)) for side in _SIDES}
    every = [campaign for side in _SIDES for campaign in campaigns[side]]
    if demo := [campaign.name for campaign in every if campaign.is_demo]:
        raise RejectedError(
            f"{', '.join(demo)}: the power is fictitious (meter demo): no server is replaced for "
            "it; measure with a meter (`eeio doctor`)"
        )
    domain = chosen_domain(every, choice_of(request))
    traditional, low_power = (_system(request, side, campaigns[side], domain) for side in _SIDES)
    if traditional.name == low_power.name:
        # One machine before and after a change: told apart by what its campaigns are called.
        traditional = replace(traditional, name=", ".join(request.traditional))
        low_power = replace(low_power, name=", ".join(request.low_power))
    made = guideline(
        load_workload(request.workload),
        traditional,
        low_power,
        _costs(request),
        choice=request.choice,
        counts=request.servers,
    )
    per_tb, less = _per_tb(request, made, (traditional, low_power))
    made = replace(made, per_tb=per_tb, less_per_tb=less)
    quick = [c.name for side in _SIDES for c in campaigns[side] if not c.is_measurement]
    checks = tuple(f"{name}: {QUICK_WARNING}" for name in quick)
    remark = domain_remark(domain, len(every))
    notes = (*checks, *([remark] if remark else []))
    made = replace(made, messages=(*notes, *made.messages))
    if request.map is not None:
        with analysis():
            from eeio.report.figures import guideline_map
        drawn = guideline_map.draw(made, is_measurement=not quick)
        if drawn is None:
            print("no map: no experiment can be compared", file=sys.stderr)
        else:
            write_file(request.map, drawn)
            print(f"map: {request.map}", file=sys.stderr)
    write_document(request, report.document(made, lambda: _render_html(made, quick)))
    return EXIT_DONE


def _render_html(made: "Guideline", quick: "Sequence[str]") -> str:
    with analysis():
        from eeio.report.page import guideline as page
    return page.render(made, quick)


def _costs(request: "CostRequest") -> "Costs | None":
    from eeio.guideline.servers import Costs

    embodied = any(getattr(request, f"{side}_embodied_kg") for side in _SIDES)
    if embodied and request.years is None:
        raise RejectedError("embodied carbon is spread over --years: give them")
    if request.price_per_kwh is None and request.years is not None and embodied:
        return None
    if (request.price_per_kwh is None) != (request.years is None):
        raise RejectedError("electricity needs both --price-per-kwh and --years")
    if request.price_per_kwh is None or request.years is None:
        return None
    pue = 1.0
    if request.pue is not None:
        pue = request.pue
    return Costs(
        price_per_kwh=request.price_per_kwh,
        years=request.years,
        pue=pue,
        busy_share=request.duty_cycle,
        currency=request.currency,
    )


def _per_tb(
    request: "CostRequest", made: "Guideline", systems: "Sequence[Server]"
) -> "tuple[tuple[Cost, ...], tuple[LessPerTb, ...]]":
    """Cost per TB on each system, and which is cheaper."""
    from eeio.guideline.cost import costs
    from eeio.guideline.cost_inputs import CostInputs, grid_of

    embodied = [getattr(request, f"{side}_embodied_kg") for side in _SIDES]
    try:
        grid = None
        if request.grid_g_per_kwh is not None:
            grid = grid_of(request.grid_g_per_kwh)
    except (EeioError, LimitError) as error:
        raise RejectedError(str(error)) from error
    given = CostInputs(
        price_per_kwh=request.price_per_kwh or None,
        grid=grid,
        pue=request.pue,
        duty=request.duty_cycle or None,
        years=request.years,
        currency=request.currency,
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
    request: "CostRequest", side: str, campaigns: "Sequence[Campaign]", domain: str
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
    choice = choice_of(request)
    of_campaigns = [
        cell for campaign in campaigns for cell in cells(campaign, choice, domain, left_out)
    ]
    print_left_out(left_out)
    idle_power_w = None
    if len(campaigns) == 1:
        idle_power_w = campaigns[0].idle_power_w(domain)
    return Server(
        name=machines.pop(),
        cells=tuple(of_campaigns),
        idle_power_w=idle_power_w,
        server_price=getattr(request, f"{side}_price"),
        device_price=getattr(request, f"{side}_device_price"),
        devices=getattr(request, f"{side}_devices"),
    )
