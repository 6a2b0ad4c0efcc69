"""`eeio cost`: J, kWh, money and carbon of moving a TB, and of storing one for a year."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from eeio.commands import guideline
from eeio.commands.campaign_folders import analysis, load_campaigns, reject_mixed_demo
from eeio.commands.experiments import (
    LEVELS,
    choice_of,
    chosen_domain,
    max_p99_option,
    print_left_out,
)
from eeio.commands.output_file import document_format, output_file, pager_switch, write_document
from eeio.errors import EXIT_DONE, EeioError, LimitError, RejectedError
from eeio.guideline.cost_inputs import CostInputs, grid_of, load_inputs, positive
from eeio.options import Command, argument, option, options_of, switch
from eeio.record.publication import warnings_of
from eeio.record.run import DOMAINS
from eeio.report.document import Document
from eeio.units import quantities as q
from eeio.units.amounts import decimal_bytes, duty

if TYPE_CHECKING:
    from eeio.guideline.measured import Choice
    from eeio.guideline.servers import Server
    from eeio.record.store import Campaign


_REPLACEMENT = "replacement of servers"
_ONLY_CAMPAIGNS = ("inputs", "price", "embodied_kg", "capacity", "idle_w")
"""Options without a meaning for the replacement of servers."""


_price = q.PRICE.of_text


def _devices(text: str) -> int:
    return int(q.REPETITIONS.of_text(text))


def _number(name: str) -> Callable[[str], float]:
    return partial(positive, name)


def _each(convert: Callable[[str], float]) -> Callable[[str], tuple[float, ...]]:
    """One number for all campaigns, or one for each of them."""
    return lambda text: tuple(convert(part) for part in text.split(","))


@dataclass(frozen=True, kw_only=True)
class CostRequest:
    """`eeio cost`."""

    campaigns: tuple[str, ...] = argument(
        "NAME|PATH",
        help="campaign name or folder",
        count="*",
    )
    price_per_kwh: float | None = option(
        "--price-per-kwh",
        value="N",
        parse=_price,
        group="prices and carbon",
    )
    price: tuple[float, ...] = option(
        "--price",
        value="N[,N]",
        help="price of machine and drives, also one per campaign: 900,1200",
        former=(("--purchase", None),),
        parse=_each(_number("purchase")),
        default=(),
        group="prices and carbon",
    )
    years: float | None = option(
        "--years",
        value="N",
        help="service life in years",
        parse=_number("years"),
        group="prices and carbon",
    )
    grid_g_per_kwh: str | None = option(
        "--grid-g-per-kwh",
        value="N|HOURS.csv",
        help="g CO2e per kWh, or a file with columns hour_utc,g_per_kwh",
        group="prices and carbon",
    )
    duty_cycle: float | None = option(
        "--duty-cycle",
        value="SHARE",
        help="share of time with I/O, e.g. 10%% or 0.1; otherwise idle",
        former=(("--duty", None), ("--busy-share", None)),
        parse=duty,
        group="prices and carbon",
    )
    pue: float | None = option(
        "--pue",
        value="N",
        help="PUE: energy of the site over energy of the machine",
        parse=_number("pue"),
        group="prices and carbon",
        rare=True,
    )
    embodied_kg: tuple[float, ...] = option(
        "--embodied-kg",
        value="N[,N]",
        help="embodied carbon in kg CO2e, also one per campaign",
        parse=_each(_number("embodied_kg")),
        default=(),
        group="prices and carbon",
        rare=True,
    )
    capacity: tuple[float, ...] = option(
        "--capacity",
        value="SIZE[,SIZE]",
        help="stored data, e.g. 4T; adds the cost of storing a TB for a year",
        parse=_each(decimal_bytes),
        default=(),
        group="prices and carbon",
    )
    idle_w: tuple[float, ...] = option(
        "--idle-w",
        value="N[,N]",
        help="idle power in W, for campaigns that did not measure it; also one per campaign",
        parse=_each(_number("idle_w")),
        default=(),
        group="prices and carbon",
    )
    currency: str = option(
        "--currency",
        value="TEXT",
        default="",
        group="prices and carbon",
        rare=True,
    )
    inputs: Path | None = option(
        "--inputs",
        value="FILE.yaml",
        help="prices and carbon figures; options take precedence",
        parse=Path,
        group="prices and carbon",
        rare=True,
    )
    traditional: tuple[str, ...] = option(
        "--traditional",
        value="NAME|PATH",
        count="+",
        help="campaigns of the server to replace",
        group=_REPLACEMENT,
    )
    traditional_price: float | None = option(
        "--traditional-price",
        value="N",
        parse=_price,
        help="price of one server",
        group=_REPLACEMENT,
    )
    traditional_device_price: float | None = option(
        "--traditional-device-price",
        value="N",
        parse=_price,
        help="price of one drive",
        group=_REPLACEMENT,
        rare=True,
    )
    traditional_embodied_kg: float | None = option(
        "--traditional-embodied-kg",
        value="N",
        parse=q.CARBON.of_text,
        help="embodied carbon of a server with drives, kg CO2e; needs --years",
        group=_REPLACEMENT,
        rare=True,
    )
    traditional_devices: int = option(
        "--traditional-devices",
        value="N",
        parse=_devices,
        default=1,
        help="drives per server (default: 1)",
        group=_REPLACEMENT,
        rare=True,
    )
    low_power: tuple[str, ...] = option(
        "--low-power",
        value="NAME|PATH",
        count="+",
        help="campaigns of its replacement",
        group=_REPLACEMENT,
    )
    low_power_price: float | None = option(
        "--low-power-price", value="N", parse=_price, help="price of one server", group=_REPLACEMENT
    )
    low_power_device_price: float | None = option(
        "--low-power-device-price",
        value="N",
        parse=_price,
        help="price of one drive",
        group=_REPLACEMENT,
        rare=True,
    )
    low_power_embodied_kg: float | None = option(
        "--low-power-embodied-kg",
        value="N",
        parse=q.CARBON.of_text,
        help="embodied carbon of a server with drives, kg CO2e; needs --years",
        group=_REPLACEMENT,
        rare=True,
    )
    low_power_devices: int = option(
        "--low-power-devices",
        value="N",
        parse=_devices,
        default=1,
        help="drives per server (default: 1)",
        group=_REPLACEMENT,
        rare=True,
    )
    choice: Literal["medians", "best-worst"] = option(
        "--choice",
        choices=("medians", "best-worst"),
        default="medians",
        help="best-worst: best traditional against worst low-power drive",
        group=_REPLACEMENT,
        rare=True,
    )
    servers: tuple[float, ...] = option(
        "--servers",
        value="N",
        parse=q.FRACTION.of_text,
        repeat=True,
        help="also evaluate N low-power servers; repeatable",
        group=_REPLACEMENT,
        rare=True,
    )
    map: Path | None = option(
        "--map",
        value="FILE.svg",
        parse=Path,
        help="also draw the decision map",
        group=_REPLACEMENT,
        rare=True,
    )
    workload: Path | None = option(
        "--workload",
        value="MIX.yaml",
        help="workload mix (default: equal bytes per experiment)",
        parse=Path,
        group="experiments",
    )
    tool: str = option(
        "--tool",
        default="fio",
        help="experiments of this tool (default: %(default)s)",
        group="experiments",
    )
    level: str = option(
        "--level",
        choices=LEVELS,
        default="filesystem",
        help="experiments of this level (default: %(default)s)",
        group="experiments",
    )
    domain: str | None = option(
        "--domain",
        choices=DOMAINS,
        help="power domain (default: the widest in all campaigns)",
        group="experiments",
        rare=True,
    )
    max_p99: float | None = max_p99_option("experiments")
    demo: bool = switch(
        "--demo",
        help="accept the fictitious power of the demo meter",
        group="experiments",
    )
    format: str = document_format()
    output: Path | None = output_file()
    no_pager: bool = pager_switch()


def cost(request: CostRequest) -> int:
    sides = {"--traditional": request.traditional, "--low-power": request.low_power}
    if not any(sides.values()):
        for field, made in options_of(CostRequest):
            is_given = getattr(request, field.name) != field.default
            if made.group == _REPLACEMENT and is_given:
                raise RejectedError(f"{made.flags[0]}: only with --traditional and --low-power")
        if not request.campaigns:
            raise RejectedError(
                "which campaign? `eeio cost NAME`, or --traditional NAME --low-power NAME"
            )
        return cost_of(request)
    missing = [name for name, names in sides.items() if not names]
    if missing:
        raise RejectedError(f"{missing[0]} NAME is missing: a guideline compares two servers")
    if request.campaigns:
        raise RejectedError(
            f"{request.campaigns[0]}: give it after --traditional or after --low-power"
        )
    if request.demo:
        raise RejectedError("--demo: demo power is not accepted for the replacement of servers")
    fields = {field.name for field, _ in options_of(CostRequest)}
    for name in _ONLY_CAMPAIGNS:
        if getattr(request, name):
            flag = name.replace("_", "-")
            own = ""
            if f"traditional_{name}" in fields:
                own = f"; it has --traditional-{flag}"
            raise RejectedError(f"--{flag}: not with --traditional{own}")
    return guideline.guide(request)


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


def cost_of(request: CostRequest) -> int:
    write_document(request, document_of(request))
    return EXIT_DONE


def document_of(request: CostRequest) -> Document:
    """The answer for the campaigns."""
    with analysis():
        from eeio.guideline.cost import costs
        from eeio.guideline.workload_file import load_workload
        from eeio.report.documents import cost as report
    names = request.campaigns
    try:
        given = [_inputs(request, place, len(names)) for place in range(len(names))]
        workload = None
        if request.workload is not None:
            workload = load_workload(request.workload)
    except (EeioError, LimitError) as error:
        raise RejectedError(str(error)) from error
    campaigns = load_campaigns(names)
    reject_mixed_demo(campaigns)
    demo = [campaign.name for campaign in campaigns if campaign.is_demo]
    _reject_demo([] if request.demo else demo)
    choice = choice_of(request)
    domain = chosen_domain(campaigns, choice)
    lacking = [campaign for campaign in campaigns if campaign.idle_power_w(domain) is None]
    for_all = len(request.idle_w) < len(names) and bool(lacking)
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
    sources = [source for _, source in idles]
    remarks = _remarks(campaigns, choice, domain, given[0], sources)
    made = (replace(made[0], messages=(*remarks, *made[0].messages)), *made[1:])
    return report.document(made, verdicts, domain, demo=bool(demo))


def _remarks(
    campaigns: "Sequence[Campaign]",
    choice: "Choice",
    domain: str,
    inputs: CostInputs,
    idle_sources: Sequence[str],
) -> list[str]:
    """Above the table: warnings, the domain, missing inputs, and where each idle power is from."""
    from eeio.guideline.measured import domain_remark, unranked_remarks

    remarks = []
    for campaign in campaigns:
        warnings = (*warnings_of(campaign), *unranked_remarks(campaign, choice, domain))
        remarks += [f"{campaign.name}: {warning}" for warning in warnings]
    of_domain = domain_remark(domain, len(campaigns))
    if of_domain is not None:
        remarks.append(of_domain)
    remarks += _not_given(inputs)
    if inputs.duty is not None or inputs.capacity_bytes is not None:
        for campaign, source in zip(campaigns, idle_sources, strict=True):
            remarks.append(f"{campaign.name}: {source}")
    if len(campaigns) > 1:
        remarks.append(
            "one session each: what changed between the campaigns (temperature, updates) is part "
            "of the difference"
        )
    return remarks


def _inputs(request: CostRequest, place: int, campaigns: int) -> CostInputs:
    """Of the campaign at that place. Raises EeioError and LimitError."""

    def own(name: str) -> float | None:
        values: tuple[float, ...] = getattr(request, name)
        if len(values) not in (0, 1, campaigns):
            raise EeioError(
                f"--{name.replace('_', '-')}: {len(values)} numbers for {campaigns} campaigns; "
                "give one for all, or one for each"
            )
        if not values:
            return None
        if len(values) > 1:
            return values[place]
        return values[0]

    grid = request.grid_g_per_kwh
    given = CostInputs(
        price_per_kwh=request.price_per_kwh,
        grid=None if grid is None else grid_of(grid),
        pue=request.pue,
        duty=request.duty_cycle,
        purchase=own("price"),
        embodied_kg=own("embodied_kg"),
        years=request.years,
        capacity_bytes=own("capacity"),
        idle_w=own("idle_w"),
        currency=request.currency,
    )
    if request.inputs is None:
        return given
    return given.over(load_inputs(request.inputs))


def _idle(
    campaign: "Campaign", domain: str, given_w: float | None, for_all: bool
) -> tuple[float | None, str]:
    """The idle power in W with its source in words. `for_all`: one number is for all campaigns that
    did not measure it. Raises RejectedError if the user gives one for a campaign that did."""
    measured_w = campaign.idle_power_w(domain)
    if measured_w is None and given_w is None:
        reason = campaign.idle_reason or "the campaign did not measure it"
        return None, f"its idle power is not known ({reason}); give --idle-w"
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
    of_campaign = cells(campaign, choice, domain, left_out)
    print_left_out(left_out)
    return Server(
        name=campaign.machine.name or campaign.name,
        cells=tuple(of_campaign),
        idle_power_w=idle_power_w,
    )


COMMAND = Command(
    "cost",
    CostRequest,
    cost,
    help="J, kWh, money and carbon per TB; guideline for replacing servers",
    description="Computes the cost of a TB from a campaign's bandwidth and power and from "
    "your prices, with intervals (docs/how-to/costs.md). Two or more campaigns are compared "
    "by their cost per TB. With --traditional and --low-power it shows how many low-power "
    "servers replace one traditional server. eeio includes no prices and no carbon figures. "
    "A result without its input is missing, with a reason.",
)
