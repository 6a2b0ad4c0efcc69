"""The experiments of a campaign that a rule takes: of one tool, level and power domain."""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from eeio.commands.amounts import seconds
from eeio_limits import LimitError
from eeio_limits import quantities as q

if TYPE_CHECKING:
    from eeio_results.guideline.servers import CellValues
    from eeio_results.record import Switch
    from eeio_results.store import Campaign

DOMAINS = ("system", "module", "package", "dram", "device")


def add_choice(parser: argparse.ArgumentParser) -> None:
    """--tool, --level, --domain and --max-p99."""
    parser.add_argument(
        "--tool", default="fio", help="whose experiments count (default: %(default)s)"
    )
    parser.add_argument(
        "--level", choices=("device", "filesystem", "library", "application"), default="filesystem",
        help="whose experiments count (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--domain", choices=DOMAINS, default="system",
        help="whose power counts (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--max-p99", metavar="TIME", type=seconds,
        help="only experiments whose p99 latency is at most this (250us, 5ms, 0.1s)",
    )  # fmt: skip


def number_of(quantity: q.Quantity) -> Callable[[str], float]:
    """For argparse: a number of that kind."""

    def convert(text: str) -> float:
        try:
            return quantity.of_text(text)
        except LimitError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


def other_domains(campaigns: "Sequence[Campaign]", asked: str) -> str:
    """What to type where another domain was measured than the one that was asked for."""
    measured = {
        reading.domain
        for campaign in campaigns
        for run in campaign.runs
        for phase in run.phases
        for reading in phase.energy
        if reading.valid and reading.kind != "modelled"
    }
    known = [domain for domain in DOMAINS if domain in measured and domain != asked]
    if not known:
        return "; nothing else was measured either: `eeio doctor` tells what meters need"
    return f"; measured was {', '.join(known)}: --domain {known[0]}"


def cells(
    campaign: "Campaign", arguments: argparse.Namespace, left_out: dict[str, list[str]]
) -> "list[CellValues]":
    """Its experiments that count; those without a figure go into `left_out`, by the reason."""
    from eeio_results.comparison.cells import (
        BANDWIDTH,
        J_PER_GB_OF,
        POWER,
        cells_of,
        why_too_slow,
    )
    from eeio_results.guideline.servers import CellValues
    from eeio_results.guideline.workload import CellKey
    from eeio_results.record import FLUSHES

    power, energy = POWER[arguments.domain], J_PER_GB_OF[arguments.domain]
    found = []
    for cell in cells_of(campaign):
        factors = cell.factors
        wanted = factors["tool"] == arguments.tool and factors["level"] == arguments.level
        if not wanted or cell.request_size_bytes is None or factors["operation"] == "mixed":
            continue
        if (slow := why_too_slow(cell, arguments.max_p99)) is not None:
            left_out.setdefault(slow, []).append(f"{campaign.name}: {cell.label()}")
            continue
        both, without = cell.together(BANDWIDTH, power, energy)
        if not both:
            why = cell.reasons.get(power) or cell.reasons.get(BANDWIDTH)
            why = why or "no repetition has both bandwidth and power"
            left_out.setdefault(why, []).append(f"{campaign.name}: {cell.label()}")
            continue
        key = CellKey(
            operation=factors["operation"],
            spatiality=factors["spatiality"],
            request_size_bytes=cell.request_size_bytes,
            buffer=_switch(factors["buffer"]),
            disk=_switch(factors["disk"]),
            flush=factors["flush"] if factors["flush"] in FLUSHES else None,
        )
        variant = factors["device"] + _target(factors["target"])
        bandwidths, powers, energies = zip(*both, strict=True)
        durable = {"yes": True, "no": False}.get(factors["durable"])
        found.append(CellValues(key, bandwidths, powers, variant, without, durable, energies))
    return found


def told(left_out: dict[str, list[str]]) -> None:
    """Says on stderr what was left out, and why."""
    for why, labels in left_out.items():
        more = f" and {len(labels) - 1} more experiments" if len(labels) > 1 else ""
        print(f"{labels[0]}{more}: left out: {why}", file=sys.stderr)


def _switch(level: str) -> "Switch | None":
    return "on" if level == "on" else "off" if level == "off" else None


def _target(target: str) -> str:
    return "" if target == "file" else f" {target.removeprefix('file on ')}"


def idle_power_w(campaign: "Campaign", domain: str) -> float | None:
    """Of the campaign's idle baseline; None where that domain has no valid measured reading."""
    readings = [r for r in campaign.idle if r.domain == domain and r.valid and r.kind != "modelled"]
    return readings[0].power_w if readings else None
