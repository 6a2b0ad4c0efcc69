"""`eeio plan --detect`: the repetitions and hours with which a difference would be seen."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eeio import paths
from eeio.campaign import plan as plans
from eeio.campaign import safety
from eeio.campaign.detection import Repeated, repeated
from eeio.campaign.progress import duration_text
from eeio.commands import campaign_options
from eeio.commands.campaign_folders import analysis, load_campaigns
from eeio.errors import RefusedError
from eeio.profiles import suite as suites
from eeio_limits.text import shown
from eeio_results.campaign import AdaptiveProtocol
from eeio_results.errors import EeioError
from eeio_results.store import Campaign, load, read_design

if TYPE_CHECKING:
    from eeio_results.comparison.detection import Needed

_LINES = 12


@dataclass(frozen=True)
class Detection:
    """What it takes to see a difference of `share`, by the campaign `earlier`."""

    share: float
    earlier: str
    needed: "tuple[Needed, ...]"
    times: Repeated

    def to_json(self) -> dict[str, Any]:
        """`detect` of `eeio plan --detect --format json`."""
        return {
            "share": self.share,
            "earlier": self.earlier,
            "expected_s": self.times.expected_s,
            "repetitions": dict(self.times.repetitions),
            "questions": [
                {
                    "experiment": one.question.label,
                    "metric": one.question.metric,
                    "repetitions": one.repetitions,
                }
                for one in self.needed
            ],
            "unknown": list(self.times.unknown),
        }


def add(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument(
        "--detect", metavar="SHARE", type=campaign_options.share,
        help="repetitions needed to detect this difference (5%%) with a power of 80 %%",
    )  # fmt: skip
    parser.add_argument(
        "--from", dest="earlier", metavar="NAME",
        help="with --detect: the campaign whose spread counts (default: the newest of the suite)",
    )  # fmt: skip


def detected(
    plan: plans.Plan, suite: suites.Suite, arguments: argparse.Namespace
) -> Detection | None:
    """What was asked for; None where nothing was."""
    if arguments.earlier is not None and arguments.detect is None:
        raise RefusedError("--from is of --detect SHARE: the difference that is to be seen")
    if arguments.detect is None:
        return None
    with analysis():
        from eeio_results.comparison.detection import hardest, needed
        from eeio_results.statistics.decision import Rule
    adaptive = plan.protocol.adaptive or AdaptiveProtocol()
    earlier = _earlier(plan, suite, arguments.earlier)
    try:
        found = needed(earlier, arguments.detect, Rule(adaptive.indifference, adaptive.floor))
    except EeioError as error:
        raise RefusedError(f"--detect: {error}") from error
    times = repeated(plan, earlier.design, hardest(found))
    return Detection(arguments.detect, earlier.name, tuple(found), times)


def _earlier(plan: plans.Plan, suite: suites.Suite, name: str | None) -> Campaign:
    """The campaign whose spread tells; RefusedError where there is none."""
    if name is not None:
        return load_campaigns([name])[0]
    disks = safety.disks(plan.options)
    folders = [folder / "campaign.json" for folder in paths.campaigns().values()]
    there = [file for file in folders if file.is_file()]
    for file in sorted(there, key=lambda f: f.stat().st_mtime, reverse=True):
        try:
            design = read_design(file.parent)
            if Path(design.suite).name == suite.name and design.disks == disks:
                return load(file.parent)
        except EeioError:
            continue  # damaged, which `eeio report` tells
    raise RefusedError(
        f"--detect: no campaign of {suite.name} on this disk tells how much its experiments "
        "scatter; run one (--preset quick tells roughly), or name one by --from"
    )


def show(found: Detection) -> None:
    """Prints it: a line a question, those that take most first."""
    counts = sorted(set(found.times.repetitions.values()))
    print(
        f"\nto see {found.share:.1%} in 8 of 10 campaigns, by the spread of {found.earlier}: "
        f"{counts[0]} to {counts[-1]} repetitions, about "
        f"{duration_text(found.times.expected_s)}; each pair that differs in one "
        "factor:"
    )
    for one in found.needed[:_LINES]:
        many = f"{one.repetitions} repetitions" if one.repetitions else "more than 1000: never"
        print(f"  {shown(one.question.label)}: {one.question.metric}: {many}")
    if len(found.needed) > _LINES:
        print(f"  and {len(found.needed) - _LINES} that take fewer (--format json has all)")
    if found.times.unknown:
        print(f"  not known of: {shown('; '.join(found.times.unknown))}")
