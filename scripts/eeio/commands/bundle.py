"""`eeio bundle`: campaigns as the artifact of a paper."""

import argparse
import sys
from pathlib import Path

from eeio import bundle as bundles
from eeio.commands.campaign_folders import analysis, load_campaigns
from eeio.commands.figures import look_of
from eeio.commands.report import FORMATS, complete_report
from eeio.errors import EXIT_DONE, RefusedError
from eeio_limits.text import latex, markdown
from eeio_results.report.contents import drawings
from eeio_results.report.methods import paragraphs
from eeio_results.report.model import Report

_WIDTH = "two"
_FIGURES = ("svg", "pdf")
_TABLES = {"csv": "csv", "json": "json", "markdown": "md", "latex": "tex"}


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "bundle",
        help="pack campaigns as the artifact of a paper",
        description="Writes a folder and a .tar.gz of it: records and samples, tables (CSV, JSON, "
        "Markdown, LaTeX), figures, how it was measured, BibTeX, SHA-256 checksums, and the script "
        "that makes tables and figures again. The same campaigns give the same archive.",
    )
    parser.add_argument("campaigns", metavar="NAME|PATH", nargs="+", help="name, or its folder")
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path,
        help="the folder; the archive gets its name (default: NAME-bundle, here)",
    )  # fmt: skip
    parser.add_argument(
        "--raw", action="store_true", help="also all that the tools said, which may be much"
    )
    parser.set_defaults(action=bundle)


def bundle(arguments: argparse.Namespace) -> int:
    campaigns = load_campaigns(arguments.campaigns)
    bundles.check_names(campaigns)
    first = campaigns[0].folder.resolve().name
    folder: Path = arguments.output or Path(f"{first}-bundle")
    packed = folder.with_name(f"{folder.name}.tar.gz")
    for path in (folder, packed):
        if path.exists():
            raise RefusedError(f"{path} is there already: name another with -o")
    report = complete_report(campaigns)
    files = {
        **{
            f"tables/report.{suffix}": FORMATS[form](report).encode()
            for form, suffix in _TABLES.items()
        },
        **_figures(report),
        "methods.md": _methods(report).encode(),
        "methods.tex": _methods_tex(report).encode(),
        "papers.bib": bundles.papers(campaigns).encode(),
        "remake.sh": bundles.remake(campaigns, _WIDTH).encode(),
        "README.md": bundles.readme(campaigns, report.warnings).encode(),
    }
    if citation := bundles.citation():
        files["CITATION.cff"] = citation
    data: dict[str, Path] = {}
    for campaign in campaigns:
        data |= bundles.data_files(campaign, arguments.raw)
    bundles.write(folder, data, files)
    bundles.archive(folder, packed)
    hosts = ", ".join(dict.fromkeys(campaign.machine.hostname for campaign in campaigns))
    print(f"the records name the machine ({hosts}) and its drives", file=sys.stderr)
    print(folder)
    print(packed)
    return EXIT_DONE


def _figures(report: Report) -> dict[str, bytes]:
    """Those of the report in a folder of their own, and those of machines and drives."""
    with analysis():
        from eeio_results.report import figures
        from eeio_results.report.drawing import file_of
    look = look_of(_WIDTH)
    found: dict[str, bytes] = {}
    for name, drawing in figures.drawn(report.campaigns, look).items():
        found |= {f"figures/{name}.{form}": file_of(drawing, form) for form in _FIGURES}
    for plot in drawings(report):
        path = f"figures/report/{Path(plot.name).stem}"
        if plot.drawing is None:
            found[f"{path}.svg"] = plot.draw().encode()
            continue
        drawing = plot.drawing(look)
        found |= {f"{path}.{form}": file_of(drawing, form) for form in _FIGURES}
    return found


def _methods(report: Report) -> str:
    return "\n\n".join(["# How it was measured", *map(markdown, paragraphs(report))]) + "\n"


def _methods_tex(report: Report) -> str:
    return "\n\n".join(map(latex, paragraphs(report))) + "\n"
