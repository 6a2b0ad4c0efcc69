"""The text across every figure of a campaign that is not to be published."""

from collections.abc import Iterable

from eeio.record.store import Campaign

QUICK = "QUICK: not a measurement"
DEMO = "DEMO: fictitious power"
QUICK_WARNING = f"{QUICK}. Runs this short check the set-up; publish `standard`."
DEMO_WARNING = f"{DEMO}. The demo meter invents it; no power was measured."


def stamp_of(campaigns: Iterable[Campaign]) -> str:
    """Empty where every campaign is a measurement."""
    chosen = tuple(campaigns)
    return "; ".join(
        text
        for text, applies in (
            (QUICK, any(not campaign.is_measurement for campaign in chosen)),
            (DEMO, any(campaign.is_demo for campaign in chosen)),
        )
        if applies
    )


def short_stamp(warnings: Iterable[str]) -> str:
    """`QUICK DEMO`, across the charts of a page with these warnings."""
    every = "\n".join(warnings)
    return " ".join(text.partition(":")[0] for text in (QUICK, DEMO) if text in every)


def warnings_of(campaign: Campaign) -> list[str]:
    """Warnings that come before any figure of the campaign."""
    return [
        *([] if campaign.is_measurement else [QUICK_WARNING]),
        *([DEMO_WARNING] if campaign.is_demo else []),
    ]
