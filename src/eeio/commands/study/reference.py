"""`eeio study reference`: deviation of an application from its characterization."""

from dataclasses import dataclass
from pathlib import Path

from eeio import studies
from eeio.commands.campaign_folders import analysis, load_campaigns, named_study
from eeio.commands.output_file import document_format, output_file, pager_switch, write_answer
from eeio.errors import EXIT_DONE, RejectedError
from eeio.options import Command, argument, option


@dataclass(frozen=True, kw_only=True)
class ReferenceRequest:
    """`eeio study reference`."""

    campaigns: tuple[str, ...] = argument(
        "NAME|PATH",
        help="campaign of the application; also the characterization if separate",
        count="+",
    )
    study: str | None = option(
        "--study",
        value="STUDY",
        help="study with the matching rule (default: the first that has one)",
    )
    format: str = document_format()
    output: Path | None = output_file()
    no_pager: bool = pager_switch(rare=False)


def reference(request: ReferenceRequest) -> int:
    name = request.study
    requested = list(studies.every().values()) if name is None else [named_study(name)]
    campaigns = load_campaigns(request.campaigns)
    suites = []
    for study in requested:
        if study.references is None:
            continue
        suites.append(study.references.suite)
        with analysis():
            answer = study.references.answer(campaigns, request.format)
        if answer is not None:
            write_answer(request, answer)
            return EXIT_DONE
    raise RejectedError(
        f"{', '.join(request.campaigns)}: no application was measured; run `eeio run "
        f"{' or '.join(suites)}`"
    )


COMMAND = Command(
    "reference",
    ReferenceRequest,
    reference,
    help="compare an application's phases with measured values",
    description="Compares each phase of an application (BT-IO) with the most similar "
    "experiment of the library or file-system level. Shows the deviation of bandwidth and "
    "power in percent (docs/studies/).",
)
