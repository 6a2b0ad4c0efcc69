"""Remarks that come before any difference: on runs, power, and experiments without a match."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from eeio.comparison.cells import UNKNOWN, Cell
from eeio.record.publication import stamp_of
from eeio.record.store import Campaign

_FEW = 5
_POWER_AND_EFFICIENCY = {"power_system_w": "W of the system", "efficiency_bytes_per_j": "MB/J"}


def of_runs(campaigns: Sequence[Campaign], cells: Sequence[Cell]) -> list[str]:
    """On the basis of the differences: repetitions, invalid and missing runs."""
    remarks = []
    for campaign in campaigns:
        if stamp := stamp_of([campaign]):
            remarks.append(f"{campaign.name}: {stamp}")
        for remark in campaign.design.remarks:
            remarks.append(f"{campaign.name}: {remark}")
    counts = [max(map(cell.n, cell.measured), default=0) for cell in cells]
    few = sum(count < _FEW for count in counts)
    if few:
        remarks.append(
            f"{few} of {len(cells)} experiments have fewer than {_FEW} valid repetitions: "
            "few differences can be confirmed"
        )
    if len(set(counts)) > 1:
        remarks.append(f"repetitions are unequal: from {min(counts)} to {max(counts)}")
    invalid = sum(cell.invalid_runs for cell in cells)
    if invalid:
        remarks.append(f"{invalid} invalid runs are not used; `eeio report` has the reasons")
    return [*remarks, *_missing_figures(cells)]


def _missing_figures(cells: Sequence[Cell]) -> Iterator[str]:
    """Reasons that differ in their figures only are one remark."""
    missing = Counter(
        (metric, reason)
        for cell in cells
        for metric in _POWER_AND_EFFICIENCY
        if (reason := cell.why(metric)) is not None
    )
    alike: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for (metric, reason), count in missing.items():
        alike.setdefault((metric, _NUMBER.sub("#", reason)), []).append((reason, count))
    for (metric, _), reasons in alike.items():
        count = sum(n for _, n in reasons)
        more = ""
        if len(reasons) > 1:
            more = f" ({len(reasons) - 1} more such figures)"
        yield (
            f"{_POWER_AND_EFFICIENCY[metric]}: missing in {count} of {len(cells)} experiments: "
            f"{reasons[0][0]}{more}"
        )


_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def of_flush(cells: Sequence[Cell]) -> list[str]:
    """On experiments not joined because some writes were flushed differently, or it is unknown
    how."""
    levels = {(c.factors.get("flush", ""), c.factors.get("durable", "")) for c in cells}
    known = set()
    for flush, durable in levels:
        if flush not in ("", "as found"):
            known.add((flush, durable))
    remarks = []
    if any(flush == UNKNOWN for flush, _ in known):
        remarks.append(
            "flush: unknown: records of version 1 do not contain the time when a write's bytes "
            "were on the device; its bandwidth and power end when the tool returned"
        )
    if len(known) > 1:
        listed = ", ".join(sorted(f"{flush} (durable: {durable})" for flush, durable in known))
        remarks.append(f"writes are joined only with those of the same flush; there are {listed}")
    left_out = dict.fromkeys(cell.left_out for cell in cells if cell.left_out is not None)
    return [*remarks, *left_out]


def of_load(campaigns: Sequence[Campaign]) -> list[str]:
    """On steps of load curves: the same step is a different rate in each campaign."""
    curves = [campaign.name for campaign in campaigns if campaign.has_load]
    if len(curves) < 2:
        return []
    return [
        f"{', '.join(curves)}: a load step is a share of the campaign's own measured maximum, so "
        "the same step is a different rate in each; a change of MB/s is a change of that maximum"
    ]


def unmatched(cells: Sequence[Cell]) -> list[str]:
    """Experiments that one machine has and another has not, as text."""
    place = ("machine", "device", "type")
    of_machine: dict[str, set[str]] = {}
    for cell in cells:
        of_machine.setdefault(cell.factors["machine"], set()).add(cell.label(place, tool=True))
    everything = set().union(*of_machine.values()) if of_machine else set()
    return [
        f"{machine} has no {label}"
        for machine, known in of_machine.items()
        for label in sorted(everything - known)
    ]


def domain_warnings(cells: Sequence[Cell]) -> list[str]:
    """Remarks on the power behind a MB/J: without the drives, of different domains on different
    sides, contradicted by another meter."""
    of_machine: dict[str, dict[str, None]] = {}
    doubts: dict[str, None] = {}
    for cell in cells:
        of_machine.setdefault(cell.factors["machine"], {}).update(dict.fromkeys(cell.efficiency_of))
        doubts |= dict.fromkeys(f"{cell.factors['machine']}: doubtful: {d}" for d in cell.doubts)
    domains: set[str] = set()
    for of in of_machine.values():
        domains.update(of)
    listed = [f"{machine}: {', '.join(of)}" for machine, of in of_machine.items() if of]
    warnings = []
    if len(domains) > 1:
        warnings.append(f"MB/J of different power domains are shown together: {'; '.join(listed)}")
    elif any("without drives" in domain for domain in domains):
        warnings.append(
            f"MB/J is not the storage's, for the drives are not in it: {'; '.join(listed)}"
        )
    return [*warnings, *_different_meters(cells), *doubts]


def _different_meters(cells: Sequence[Cell]) -> Iterator[str]:
    meters: dict[str, dict[str, dict[str, None]]] = {}
    for cell in cells:
        for domain, meter in cell.meters.items():
            of_machine = meters.setdefault(domain, {}).setdefault(cell.factors["machine"], {})
            of_machine[meter] = None
    for domain, of_machines in meters.items():
        if len({meter for each in of_machines.values() for meter in each}) > 1:
            named = "; ".join(f"{name}: {', '.join(each)}" for name, each in of_machines.items())
            yield (
                f"the power of the {domain} is by different meters, and a difference between the "
                f"meters looks like one of the I/O: {named}"
            )
