"""The paper's figures next to a campaign of `eeio-pavan2018`.

The paper compares experiments of its machines and drives; a campaign has one of each. So only
claims that compare experiments on one drive have an equivalent (the effects of the buffer cache,
the request size, the access pattern and the operation), and only those of a drive of the same kind.
Like the paper's figure, ours is the largest difference of the medians of all pairs of the claim.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from eeio.comparison.cells import BANDWIDTH, EFFICIENCY, POWER, Cell, cells_of, fits
from eeio.comparison.idle import idle_and_busy
from eeio.comparison.pairing import pairs
from eeio.record.store import Campaign
from eeio.studies import PaperFigure
from eeio.studies.pavan2018.printed import Claim, printed

PAPER = "Pavan et al. 2018"
SUITE = "eeio-pavan2018"
_PLACE = ("machine", "device", "type")
_TOPICS = {
    BANDWIDTH: "bandwidth",
    EFFICIENCY: "bytes per joule",
    POWER["system"]: "power of the system",
    POWER["device"]: "power of the drive",
}
_RISES = (
    (0.12, "most configurations", ("HDD", "SSD")),
    (0.2, "PC, SSDs", ("SSD",)),
)
"""W, configurations, and kinds of drives."""
APART = (
    "Paper: medians of 10 repetitions of 20 GiB or 60 s, fio on ext4, on a PC (Core 2 Duo, "
    "kernel 3.16) or an MPSoC (Cubietruck, 3.4); the largest difference that Mann-Whitney "
    "confirms, over all its drives of that kind. Its buffered writes end before their sync; the "
    "campaign's end when the bytes are on the device. Campaign: the largest difference of its "
    "drive, without a test (see `eeio compare`). Claims that compare machines or kinds of "
    "drives have no counterpart in one campaign."
)


def figures(campaign: Campaign) -> list[PaperFigure]:
    cells = cells_of(campaign)
    kind = "unknown"
    if cells:
        kind = cells[0].factors["type"]
    return _rises(campaign, cells, kind) + [
        _figure(campaign.name, claim, cells)
        for claim in printed()
        if claim.metric is not None
        and not {*claim.higher, *claim.lower} & {*_PLACE}
        and kind in (*_kinds(claim.where), "unknown")
    ]


def _rises(campaign: Campaign, cells: Sequence[Cell], kind: str) -> list[PaperFigure]:
    """The figure 6 values that the text gives: the drive, busiest over idle. As in the paper, for
    direct I/O experiments, over the median at idle."""
    past_cache = [cell for cell in cells if cell.factors["buffer"] == "off"]
    device = (i for i in idle_and_busy(campaign, past_cache) if i.domain == "device")
    item = next(device, None)
    ours, remark = None, "power of the drive was not measured"
    if item is not None and item.busy_w is not None:
        remark = item.reason or "the median of idle power was not stored"
        if item.idle_median_w is not None:
            ours, remark = item.busy_w - item.idle_median_w, f"{item.busiest}, over the median"
    rises = []
    for printed_w, of, kinds in _RISES:
        if kind in (*kinds, "unknown"):
            rises.append(
                PaperFigure(
                    campaign=campaign.name,
                    topic=_TOPICS[POWER["device"]],
                    what="drive, busiest experiment over idle",
                    unit="W",
                    printed=printed_w,
                    source="section 5, figure 6",
                    of=of,
                    ours=ours,
                    remark=remark,
                )
            )
    return rises


def _kinds(where: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of drives that a claim is of; all where it names none."""
    if "type" in where:
        return (where["type"],)
    device = where.get("device")
    if device is None:
        return ("HDD", "SSD")
    names = device
    if isinstance(device, str):
        names = [device]
    return tuple(dict.fromkeys(name[:3] for name in names))


def _figure(campaign: str, claim: Claim, cells: Sequence[Cell]) -> PaperFigure:
    metric = claim.metric
    assert metric is not None
    where = {}
    for name, level in claim.where.items():
        if name not in _PLACE:
            where[name] = level
    chosen = [cell for cell in cells if fits(cell, where)]
    both = list(pairs(chosen, claim.higher, claim.lower))
    measured = [pair for pair in both if _is_measured(pair, metric)]
    ours, remark = None, "the campaign has no such experiments"
    if measured:
        high, low = max(measured, key=lambda pair: _ratio(pair, metric))
        ours = _ratio((high, low), metric) - 1.0
        remark = f"{high.label(without=_PLACE)} (n {high.n(metric)}, {low.n(metric)})"
        if len(measured) > 1:
            remark += f", the largest of {len(measured)} pairs"
    elif both:
        reasons = (cell.why(metric) for cell in chain.from_iterable(both))
        remark = next(filter(None, reasons), "not measured")
    return PaperFigure(
        campaign=campaign,
        topic=_TOPICS[metric],
        what=_what(claim),
        unit="change",
        printed=claim.printed / 100.0,
        source=f"section {claim.section}",
        of=_of(claim.where),
        ours=ours,
        remark=remark,
    )


def _is_measured(pair: tuple[Cell, Cell], metric: str) -> bool:
    """Whether the pair has a ratio."""
    high, low = pair
    return bool(high.n(metric) and low.n(metric)) and low.median(metric) > 0


def _ratio(pair: tuple[Cell, Cell], metric: str) -> float:
    return pair[0].median(metric) / pair[1].median(metric)


def _what(claim: Claim) -> str:
    """`buffer on over off: random write, 32 KiB`."""
    compared = ", ".join(
        f"{name + ' ' if name in ('buffer', 'size') else ''}{claim.higher[name]} over "
        f"{claim.lower[name]}"
        for name in claim.higher
    )
    where = claim.where
    kind = " ".join(str(where[name]) for name in ("spatiality", "operation") if name in where)
    rest = [kind or "all", *([where["size"]] if "size" in where else [])]
    if "buffer" in where:
        rest.append(f"buffer {where['buffer']}")
    return f"{compared}: {', '.join(rest)}"


def _of(where: Mapping[str, Any]) -> str:
    device = where.get("device")
    drives = device
    if not isinstance(device, str):
        drives = ", ".join(device or ())
    drives = drives or (f"{where['type']}s" if "type" in where else "all drives")
    return f"{where.get('machine', 'both machines')}, {drives}"
