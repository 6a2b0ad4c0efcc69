"""`eeio study reference`: deviation of an application from its characterization."""

import argparse

from eeio import studies
from eeio.commands.arguments import OptionGroup
from eeio.commands.campaign_folders import analysis, load_campaigns, named_study
from eeio.commands.output_file import add_formats, write_answer
from eeio.errors import EXIT_DONE, RejectedError


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "reference",
        help="compare an application's phases with measured values",
        description="Compares each phase of an application (BT-IO) with the most similar "
        "experiment of the library or file-system level. Shows the deviation of bandwidth and "
        "power in percent (docs/studies/).",
    )
    parser.add_argument(
        "campaigns", metavar="NAME|PATH", nargs="+",
        help="campaign of the application; also the characterization if separate",
    )  # fmt: skip
    parser.add_argument(
        "--study", metavar="STUDY",
        help="study with the matching rule (default: the first that has one)",
    )  # fmt: skip
    add_formats(OptionGroup(parser), pager_is_rare=False)
    parser.set_defaults(action=reference)


def reference(arguments: argparse.Namespace) -> int:
    name = arguments.study
    requested = list(studies.every().values()) if name is None else [named_study(name)]
    campaigns = load_campaigns(arguments.campaigns)
    suites = []
    for study in requested:
        if study.references is None:
            continue
        suites.append(study.references.suite)
        with analysis():
            answer = study.references.answer(campaigns, arguments.format)
        if answer is not None:
            write_answer(arguments, answer)
            return EXIT_DONE
    raise RejectedError(
        f"{', '.join(arguments.campaigns)}: no application was measured; run `eeio run "
        f"{' or '.join(suites)}`"
    )
