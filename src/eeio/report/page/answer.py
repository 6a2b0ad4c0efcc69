"""The first screen: this I/O's cost in joules, its uncertainty, and the warnings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eeio.analysis.domain_figures import DomainFigures
from eeio.analysis.summary import Quartiles
from eeio.record.run import Run
from eeio.report.page.page_data import Line, Page, figures_of
from eeio.units.number_text import page_number
from eeio.units.sizes import MB, percent

_DOUBTFUL_ABOVE = 0.25
"""An uncertainty above this share of a figure is shown as a warning."""


@dataclass(frozen=True)
class Mark:
    """A box above all figures. `kind` is a class of the style: quick, estimate, incomplete."""

    kind: str
    word: str
    text: str


@dataclass(frozen=True)
class Part:
    """A piece of a sentence; `kind`: `` plain, `strong`, `unsure` (a wide uncertainty)."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Tile:
    """One figure of the first screen. `line` is the place of the experiment it is of."""

    title: str
    value: str
    unit: str = ""
    below: tuple[Part, ...] = ()
    line: int | None = None
    kind: str = ""


def marks(page: Page) -> list[Mark]:
    """Warnings that come before any number."""
    made = []
    quick = [c.name for c in page.report.campaigns if not c.is_measurement]
    if quick:
        text = f"not a measurement: {', '.join(quick)} only checked the set-up. Publish `standard`."
        made.append(Mark("quick", "QUICK:", text))
    if page.demo:
        text = "the demo meter invents power, so that eeio can be tried. No power was measured."
        made.append(Mark("quick", "DEMO:", text))
    if page.estimated:
        reason = page.common_reason or "no power was measured"
        text = (
            f"no power was measured ({reason}). Modelled watts are shown for orientation, hatched, "
            "and never ranked or compared."
        )
        made.append(Mark("estimate", "ESTIMATE:", text))
    for campaign in page.report.campaigns:
        for shortcoming in campaign.shortcomings:
            made.append(Mark("incomplete", "INCOMPLETE:", f"{campaign.name}: {shortcoming}"))
        for remark in page.report.remarks_on_delays(campaign):
            made.append(Mark("incomplete", "DELAY:", f"{campaign.name}: {remark}"))
    return made


_Of = tuple[int, Line, DomainFigures]


def _ranked(page: Page) -> tuple[list[_Of], bool]:
    """Lines with a ranked MB/J in the page's domain, the best first; and whether they are only
    direct I/O, because page cache hits do not measure the storage."""
    ranked = []
    for index, line in enumerate(page.lines):
        if (
            (figures := figures_of(line.row, page.key)) is not None
            and figures.ranked_reason is None
            and figures["efficiency_bytes_per_j"] is not None
            and not page.estimated
        ):
            ranked.append((index, line, figures))
    direct = [item for item in ranked if item[1].row.cache.buffer == "off"]
    return direct or ranked, bool(direct)


def answer(page: Page) -> list[Part]:
    """One or two sentences."""
    ranked, direct = _ranked(page)
    if page.key is None or page.estimated:
        return [Part("Energy: not measured. ", "strong"), *_why(page), *_bandwidths(page)]
    if not ranked:
        return [
            Part("No experiment may be ranked. ", "strong"),
            *_why_not_ranked(page),
            *_power(page),
        ]
    best, worst = ranked[0], ranked[-1]
    past = ""
    if direct:
        past = " past the page cache"
    parts = [Part(f"Moving 1 GB{past} costs "), *_cost(best)]
    if best is worst:
        parts += [Part(f" ({best[1].full_name}), the only experiment that may be ranked.")]
    else:
        parts += [
            Part(f", best ranked ({best[1].full_name}), and "),
            *_cost(worst),
            Part(f", worst ranked ({worst[1].full_name})"),
            *_factor(best, worst),
        ]
    return [*parts, *_power(page)]


def _cost(of: _Of) -> list[Part]:
    figures = of[2]
    cost = figures["energy_j_per_gb"]
    if cost is None:
        efficiency = figures["efficiency_bytes_per_j"]
        assert efficiency is not None
        return [Part(f"1 J for {page_number(efficiency.median / MB)} MB", "strong")]
    limit = _limit(figures)
    return [
        Part(f"{page_number(cost.median)} J", "strong"),
        *([Part(" "), limit] if limit else []),
    ]


def _limit(figures: DomainFigures) -> Part | None:
    relative = figures["uncertainty_relative"]
    if relative is None:
        return None
    kind = ""
    if relative.median > _DOUBTFUL_ABOVE:
        kind = "unsure"
    return Part(f"±{percent(relative.median)} %", kind)


def _factor(best: _Of, worst: _Of) -> list[Part]:
    low, high = best[2]["energy_j_per_gb"], worst[2]["energy_j_per_gb"]
    if low is None or high is None or not low.median:
        return [Part(".")]
    return [Part(f": a factor of {page_number(high.median / low.median)}.")]


def _power(page: Page) -> list[Part]:
    """Idle and busy power of the page's domain."""
    assert page.key is not None
    domain = page.key[0]
    busy = []
    for line in page.lines:
        if (figures := figures_of(line.row, page.key)) is not None and (
            power_w := figures["power_w"]
        ) is not None:
            busy.append(power_w.median)
    idle = _idle(page)
    parts = [Part(f" The {domain} draws ")]
    if idle:
        parts += [Part(f"{_range(idle)} W", "strong"), Part(" idle and ")]
    if busy:
        return [*parts, Part(f"{_range(busy)} W"), Part(" during I/O.")]
    return []


def _idle(page: Page) -> list[float]:
    return [
        reading.power_w
        for campaign in page.report.campaigns
        for reading in campaign.idle
        if reading.key == page.key and reading.valid and reading.power_w is not None
    ]


def _range(values: Sequence[float]) -> str:
    low, high = page_number(min(values)), page_number(max(values))
    if low == high:
        return low
    return f"{low} to {high}"


def _why(page: Page) -> list[Part]:
    reasons = dict.fromkeys(
        line.row.why("power_w") for line in page.lines if line.row.why("power_w") is not None
    )
    return [Part(f"{next(iter(reasons), 'no experiment was run')}. ")]


def _why_not_ranked(page: Page) -> list[Part]:
    parts = []
    for line in page.lines:
        if (figures := figures_of(line.row, page.key)) is not None and figures.ranked_reason:
            parts.append(f"{line.full_name}: {figures.ranked_reason}")
    if not parts:
        return [Part("No experiment has both bandwidth and energy.")]
    others = ""
    if len(parts) > 1:
        others = f" ({len(parts) - 1} more are left out; the table shows why)"
    return [Part(f"{parts[0]}{others}.")]


def _bandwidths(page: Page) -> list[Part]:
    parts = []
    for line in page.lines:
        if q := line.row["bandwidth_bytes_per_s"]:
            parts.append(q.median / MB)
    if not parts:
        return [Part("No bandwidth was measured either.")]
    return [Part("I/O ran at "), Part(f"{_range(parts)} MB/s", "strong"), Part(".")]


def tiles(page: Page) -> list[Tile]:
    """Six figures; a missing one shows its reason."""
    return [
        *(_measured_tiles(page) if not page.estimated and page.key else _other_tiles(page)),
        _validity(page),
    ]


def _measured_tiles(page: Page) -> list[Tile]:
    assert page.key is not None
    ranked, direct = _ranked(page)
    of = "I/O"
    if direct:
        of = "direct I/O"
    tiles = []
    for title, place in ((f"Best ranked {of}", 0), (f"Worst ranked {of}", -1)):
        tiles.append(_efficiency_tile(title, ranked[place]) if ranked else _none(title))
    idle = _idle(page)
    reason = next((c.idle_reason for c in page.report.campaigns if c.idle_reason), None)
    title = f"Idle power, {page.key[0]}"
    tiles.append(
        Tile(title, _range(idle), "W", _idle_parts(page))
        if idle
        else Tile(title, "none", "", (Part(reason or "this meter has no idle baseline"),))
    )
    energies = [_span(page, domain) for domain in range(len(page.keys))]
    tiles.append(
        Tile(
            "J per GB, all",
            energies[0][0],
            "J" if energies[0][1] else "",
            (Part(" · ".join(text for _, text in energies if text)),),
        )
    )
    tiles.append(_iops_tile(ranked))
    return tiles


def _none(title: str) -> Tile:
    return Tile(title, "none", "", (Part("no experiment may be ranked"),))


def _efficiency_tile(title: str, of: _Of) -> Tile:
    place, _, figures = of
    efficiency, cost = figures["efficiency_bytes_per_j"], figures["energy_j_per_gb"]
    assert efficiency is not None
    below = []
    if cost is not None:
        below = [Part(f"{page_number(cost.median)} J/GB ")]
    limit = _limit(figures)
    below.append(limit or Part("the meter states no uncertainty"))
    return Tile(title, page_number(efficiency.median / MB), "MB/J", tuple(below), place)


def _idle_parts(page: Page) -> tuple[Part, ...]:
    limits = []
    for campaign in page.report.campaigns:
        for reading in campaign.idle:
            if (
                reading.key == page.key
                and reading.uncertainty_j is not None
                and reading.energy_j
                and reading.power_w is not None
            ):
                limits.append(reading.uncertainty_j / reading.energy_j * reading.power_w)
    text = "the meter states no uncertainty"
    if limits:
        text = f"±{page_number(max(limits))} W"
    return (Part(f"{text}, before the runs"),)


def _span(page: Page, place: int) -> tuple[str, str]:
    """The J/GB of a domain from the least to the most, and a word of it."""
    key = page.keys[place]
    texts = []
    for line in page.lines:
        if (figures := figures_of(line.row, key)) is not None and figures["energy_j_per_gb"]:
            texts.append(figures["energy_j_per_gb"].median)
    if key[2] == "modelled" or not texts:
        return "none", "" if texts else f"{key[0]}: no bytes were recorded"
    span = f"{page_number(min(texts))}–{page_number(max(texts))}"
    return span, f"{key[0]} ({key[1]}) {span}"


def _iops_tile(ranked: Sequence[_Of]) -> Tile:
    title = "IOPS per watt, random, best"
    rates = [
        (figures["iops_per_w"].median, place)
        for place, line, figures in ranked
        if figures["iops_per_w"] is not None and line.row.spatiality == "random"
    ]
    if not rates:
        return Tile(title, "none", "", (Part("no ranked random experiment reports its requests"),))
    best, place = max(rates)
    return Tile(title, page_number(best), "IOPS/W", (), place)


def _other_tiles(page: Page) -> list[Tile]:
    tiles = [Tile("Energy, measured", "none", "", tuple(_why(page)), kind="invalid")]
    if page.estimated:
        tiles += _estimated_tiles(page)
    speeds = []
    for index, line in enumerate(page.lines):
        if line.row["bandwidth_bytes_per_s"] is not None:
            speeds.append((line.row["bandwidth_bytes_per_s"].median / MB, index))
    for title, choose in (("Fastest I/O", max), ("Slowest I/O", min)):
        tiles.append(_speed_tile(title, speeds, choose))
    return tiles


_Choose = Callable[[Sequence[tuple[float, int]]], tuple[float, int]]


def _speed_tile(title: str, speeds: Sequence[tuple[float, int]], choose: _Choose) -> Tile:
    if not speeds:
        return Tile(title, "none", "", (Part("no valid run reported a bandwidth"),))
    speed, place = choose(speeds)
    return Tile(title, page_number(speed), "MB/s", (), place)


def _estimated_tiles(page: Page) -> list[Tile]:
    figures = [f for line in page.lines if (f := figures_of(line.row, page.key)) is not None]
    per_gb = [cost.median for f in figures if (cost := f["energy_j_per_gb"]) is not None]
    limits = [of for f in figures if (of := f["uncertainty_relative"]) is not None]
    idle = _idle(page)
    value = "none"
    if per_gb:
        value = f"{page_number(min(per_gb))}–{page_number(max(per_gb))}"
    unit = ""
    if per_gb:
        unit = "J"
    return [
        Tile("ESTIMATE: J per GB, modelled", value, unit, (_band(limits),), kind="estimate"),
        Tile(
            "ESTIMATE: idle power, modelled",
            _range(idle) if idle else "none",
            "W" if idle else "",
            (Part("model, not a reading"),),
            kind="estimate",
        ),
    ]


def _band(limits: Sequence[Quartiles]) -> Part:
    if not limits:
        return Part("no band is known, not ranked")
    shares = [limit.median for limit in limits]
    return Part(f"band ±{percent(min(shares))} to ±{percent(max(shares))} %, not ranked")


def _why_invalid(run: Run) -> str:
    of_phases: list[str] = []
    for phase in run.phases:
        of_phases.extend(phase.validity)
    return [*run.validity, *of_phases][0]


def _validity(page: Page) -> Tile:
    runs: list[Run] = []
    for campaign in page.report.campaigns:
        runs.extend(campaign.runs)
    planned = sum(campaign.planned_runs for campaign in page.report.campaigns)
    if not runs:
        return Tile("Validity", "no run", "", (Part(f"{planned} planned, 0 done"),), kind="invalid")
    invalid = [run for run in runs if not run.valid]
    parts = [Part(f"{len(runs)} of {planned} runs done, {len(invalid)} invalid")]
    if invalid:
        parts.append(Part(f" ({_why_invalid(invalid[0])})"))
    if without := _count_without_power(page):
        parts.append(Part(f" · {without} experiments without power"))
    if page.quick:
        parts.append(Part(" · QUICK: not for publication"))
    if invalid:
        return Tile("Validity", f"{len(invalid)} invalid", "", tuple(parts), kind="invalid")
    return Tile("Validity", "all valid", "", tuple(parts), kind="quick" if page.quick else "")


def _count_without_power(page: Page) -> int:
    rows = (line.row for line in page.lines)
    return sum(bool(row.n) and figures_of(row, page.key) is None for row in rows)
