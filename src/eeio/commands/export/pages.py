"""The pages of a bundle of several campaigns: their comparison, and the cost of a TB on each."""

import argparse
import contextlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from eeio.commands import compare, cost
from eeio.commands.arguments import Parser
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
    folders = [str(campaign.folder) for campaign in campaigns]
    made, missing = {}, {}
    for command, document in (("compare", _comparison), ("cost", _cost)):
        remarks = io.StringIO()
        try:
            with contextlib.redirect_stderr(remarks), analysis():
                made[command] = render_html(document(folders))
        except (EeioError, LimitError) as error:
            missing[command] = "; ".join([*remarks.getvalue().splitlines(), str(error)])
    return Pages(made, missing)


def _comparison(folders: Sequence[str]) -> Document:
    from eeio.statistics.decision import Rule

    arguments = _arguments(compare.add_parser, "compare", folders)
    rule = Rule(arguments.indifference, arguments.floor, arguments.alpha)
    document, _ = compare.document_of(arguments, rule)
    return document


def _cost(folders: Sequence[str]) -> Document:
    return cost.document_of(_arguments(cost.add_parser, "cost", folders))


def _arguments(
    add_parser: "Callable[[argparse._SubParsersAction[argparse.ArgumentParser]], None]",
    command: str,
    folders: Sequence[str],
) -> argparse.Namespace:
    """Those of the command as typed with the campaigns only."""
    parser = Parser(prog="eeio")
    add_parser(parser.add_subparsers(parser_class=Parser, prog="eeio"))
    return parser.parse_args([command, *folders])
