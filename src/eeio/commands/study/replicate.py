"""`eeio study replicate`: papers' printed figures, recomputed from published data or other printed
values."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eeio import studies
from eeio.analysis import printed_figures as printed
from eeio.commands.campaign_folders import analysis, load_campaigns, named_study
from eeio.commands.output_file import document_format, output_file, pager_switch, write_answer
from eeio.commands.plots import write_plots
from eeio.errors import EXIT_DONE, LimitError, RejectedError
from eeio.exchange.importing import mapping, runs
from eeio.measure.power_series import power_series
from eeio.options import Command, argument, option
from eeio.record.run import SCHEMA_VERSION
from eeio.report.document import Document
from eeio.report.documents.printed_figures import Listed, of_all, of_paper
from eeio.report.figures import paper_figures


def _known() -> list[str]:
    return sorted([*studies.offering("published"), *studies.offering("printed")])


def _one_of(names: Sequence[str]) -> str:
    """As argparse shows choices; which it is not given, for then a study that cannot be loaded
    would be told as one that there is not."""
    return f"{{{','.join(names)}}}"


def _data(word: str) -> tuple[str, Path]:
    name, equals, folder = word.partition("=")
    if not (name and equals and folder):
        raise LimitError(f"{word!r} is not STUDY=DIR")
    return name, Path(folder)


@dataclass(frozen=True, kw_only=True)
class ReplicateRequest:
    """`eeio study replicate`."""

    study: str | None = argument(_one_of(_known()), count="?")
    folder: Path | None = argument(
        "DIR|CAMPAIGN",
        help="copy of the paper's published data; of other papers a campaign, to compare with",
        parse=Path,
        count="?",
    )
    data: tuple[tuple[str, Path], ...] = option(
        "--data",
        value="STUDY=DIR",
        help="copy of a study's published data, for the list of all papers",
        parse=_data,
        repeat=True,
    )
    figures: Path | None = option(
        "--figures",
        value="DIR",
        help="also draw the paper's figures from its published data into DIR",
        parse=Path,
    )
    format: str = document_format()
    output: Path | None = output_file()
    no_pager: bool = pager_switch(rare=False)


def replicate(request: ReplicateRequest) -> int:
    if request.study is not None and request.data:
        raise RejectedError(f"--data is for the list of all papers; give {request.study} DIR")
    if request.study is None:
        if request.figures is not None:
            raise RejectedError("--figures draws those of one study; name it, and its data")
        answer: Document | str = of_all(_every(dict(request.data)))
    else:
        answer = _one(request, request.study)
    write_answer(request, answer)
    return EXIT_DONE


def _one(request: ReplicateRequest, name: str) -> "Document | str":
    study = named_study(name)
    if study.published is not None:
        if request.folder is None:
            raise RejectedError(
                f"{name} is recomputed from its published data; give the folder of a copy"
            )
        sources = _sources(study.published, request.folder)
        with analysis():
            if request.figures is not None:
                drawn = study.published.figures(sources)
                write_plots({n: svg.encode() for n, svg in drawn.items()}, request.figures)
            return study.published.answer(sources, request.format)
    if study.printed is None:
        raise RejectedError(f"the study {name!r} has no printed figures to recompute")
    if request.figures is not None:
        raise RejectedError(
            f"{name} has no published data to plot; `eeio study replicate {name}` recomputes its "
            "printed figures"
        )
    if request.folder is not None:
        return _beside(name, study, request.folder)
    return of_paper(name, study.printed.paper, _answers(study.printed))


def _beside(name: str, study: studies.Study, named: Path) -> Document:
    """The paper's figures next to those of a campaign."""
    (campaign,) = load_campaigns([str(named)])
    with analysis():
        chapter = studies.chapter(study, [campaign], power_series)
    if chapter is None or not chapter.beside:
        raise RejectedError(
            f"{named}: a campaign of {campaign.design.suite}, which {name} does not compare with; "
            f"docs/studies names its suite"
        )
    return Document(
        f"{chapter.paper} and {campaign.name}",
        tuple(paper_figures.tables(chapter, paper_figures.stamped(chapter, [campaign]))),
        lambda: {
            "schema_version": SCHEMA_VERSION,
            "beside_papers": paper_figures.to_json(chapter),
        },
        lambda: paper_figures.to_json(chapter),
    )


def _every(data: dict[str, Path]) -> list[Listed]:
    """All papers; those with published data get verdicts if `data` has a copy."""
    every = studies.every()
    for name in data:
        if named_study(name).published is None:
            raise RejectedError(f"--data: the study {name!r} has no published data")
    listed = []
    for name, study in every.items():
        if study.printed is not None:
            answers = _answers(study.printed)
            how = f"its other figures: eeio study replicate {name}"
            listed.append(
                Listed(name, study.printed.paper, len(answers), printed.counts(answers), how)
            )
        elif study.published is not None and study.published.counts is not None:
            listed.append(_published(name, study.published, data.get(name)))
    return listed


def _published(name: str, published: studies.PublishedData, folder: Path | None) -> Listed:
    assert published.counts is not None
    with analysis():
        if folder is None:
            claims = sum(published.counts(()).values())
            return Listed(
                name,
                published.paper,
                claims,
                None,
                f"its published data, not given: eeio study replicate --data {name}=DIR",
            )
        counts = published.counts(_sources(published, folder))
    how = f"its published data: eeio study replicate {name} {folder}"
    return Listed(name, published.paper, sum(counts.values()), counts, how)


def _answers(paper: studies.Printed) -> tuple[printed.Recomputed, ...]:
    return tuple(printed.recompute(statement) for statement in paper.statements())


def _sources(published: studies.PublishedData, folder: Path) -> list[studies.Source]:
    """The campaigns of a copy of published data; remarks on omitted data go to stderr."""
    shipped = mapping.shipped()
    data = mapping.load(shipped.get(str(published.import_map), Path(published.import_map)))
    sources = runs.read(data, folder)
    for remark in sources.remarks:
        print(remark, file=sys.stderr)
    for campaign in sources.campaigns:
        for remark in campaign.remarks:
            print(f"{campaign.name}: {remark}", file=sys.stderr)
    return [studies.Source(source.campaign(), source.idle_watts) for source in sources.campaigns]


COMMAND = Command(
    "replicate",
    ReplicateRequest,
    replicate,
    help="recompute the figures of published papers",
    description="Recomputes each figure that a paper prints. The input is DIR, a copy of "
    "the paper's published data. For papers without published data, it is the other printed "
    "values; with a CAMPAIGN of the study's suite, its figures next to the paper's. Shows printed "
    "and recomputed value, place, verdict and reason. Without a study, lists all papers with the "
    "number of figures per verdict.",
)
