"""The pages of a bundle of several campaigns: their comparison, and the cost of a TB on each."""

import contextlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from eeio.commands import compare, cost
from eeio.commands.campaign_folders import analysis
from eeio.errors import EeioError, LimitError
from eeio.record.store import Campaign
from eeio.report.document import Document, render_html


@dataclass(frozen=True)
class Pages:
    """Command -> its page, or why there is none."""

    made: Mapping[str, str]
    missing: Mapping[str, str]


NO_PAGES = Pages(MappingProxyType({}), MappingProxyType({}))


def pages(campaigns: Sequence[Campaign]) -> Pages:
    """Those of `eeio compare` and `eeio cost` without options."""
    if len(campaigns) < 2:
        return NO_PAGES
    folders = tuple(str(campaign.folder) for campaign in campaigns)
    made, missing = {}, {}
    for command, document in (("compare", _comparison), ("cost", _cost)):
        remarks = io.StringIO()
        try:
            with contextlib.redirect_stderr(remarks), analysis():
                made[command] = render_html(document(folders))
        except (EeioError, LimitError) as error:
            missing[command] = "; ".join([*remarks.getvalue().splitlines(), str(error)])
    return Pages(made, missing)


def _comparison(folders: tuple[str, ...]) -> Document:
    from eeio.statistics.decision import Rule

    request = compare.CompareRequest(campaigns=folders)
    document, _ = compare.document_of(
        request, Rule(request.indifference, request.floor, request.alpha)
    )
    return document


def _cost(folders: tuple[str, ...]) -> Document:
    return cost.document_of(cost.CostRequest(campaigns=folders))
