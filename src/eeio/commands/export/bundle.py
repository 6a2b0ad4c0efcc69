"""`eeio export bundle`: campaigns as the artifact of a paper."""

import argparse
import shutil
import sys
from pathlib import Path

from eeio.commands.campaign_folders import load_campaigns
from eeio.commands.export.pages import pages
from eeio.commands.plots import plot_files
from eeio.commands.report import complete_report
from eeio.errors import EXIT_DONE, EeioError, RejectedError
from eeio.exchange import bundle as bundles
from eeio.exchange import signatures
from eeio.report.campaign.characterized import Report
from eeio.report.campaign.contents import document
from eeio.report.campaign.methods import paragraphs
from eeio.report.document import RENDERERS
from eeio.units.external_text import latex, markdown

_WIDTH = "two"
_FIGURES = ("svg", "pdf")
_TABLES = {"csv": "csv", "json": "json", "markdown": "md", "latex": "tex"}


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "bundle",
        help="write a paper artifact: data, tables, figures, checksums",
        description="Writes a folder and its .tar.gz: records and samples, tables (CSV, JSON, "
        "Markdown, LaTeX), figures, a description of the method, BibTeX, SHA-256 checksums, and "
        "the script that remakes tables and figures; of several campaigns also the pages of "
        "`eeio compare` and `eeio cost`. The same campaigns give the same archive.",
    )
    parser.add_argument("campaigns", metavar="NAME|PATH", nargs="+", help="campaign name or folder")
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path,
        help="output folder and archive name (default: ./NAME-bundle)",
    )  # fmt: skip
    parser.add_argument("--raw", action="store_true", help="include the raw output of the tools")
    parser.add_argument(
        "--sign", metavar="KEY", type=Path, help="sign the checksums with this SSH key"
    )
    parser.set_defaults(action=bundle)


def bundle(arguments: argparse.Namespace) -> int:
    if arguments.sign is not None:
        signatures.check_key(arguments.sign)
    campaigns = load_campaigns(arguments.campaigns)
    bundles.check_names(campaigns)
    first = campaigns[0].folder.resolve().name
    folder: Path = arguments.output or Path(f"{first}-bundle")
    packed = folder.with_name(f"{folder.name}.tar.gz")
    for path in (folder, packed):
        if path.exists():
            raise RejectedError(f"{path} exists: choose another with -o")
    report = complete_report(campaigns)
    tables = document(report)
    html = pages(campaigns)
    files = {
        **{
            f"tables/report.{suffix}": RENDERERS[form](tables).encode()
            for form, suffix in _TABLES.items()
        },
        **{f"figures/{n}": body for n, body in plot_files(report, _FIGURES, _WIDTH).items()},
        "methods.md": _methods(report).encode(),
        "methods.tex": _methods_tex(report).encode(),
        "papers.bib": bundles.papers(campaigns).encode(),
        "remake.sh": bundles.remake(campaigns, _WIDTH, tuple(html.made)).encode(),
        "README.md": bundles.readme(
            campaigns, report.warnings, tuple(html.made), html.missing
        ).encode(),
    }
    for command, page in html.made.items():
        files[f"{command}.html"] = page.encode()
    if citation := bundles.citation():
        files["CITATION.cff"] = citation
    data: dict[str, Path] = {}
    for campaign in campaigns:
        data |= bundles.data_files(campaign, arguments.raw)
    bundles.write(folder, data, files)
    if arguments.sign is not None:
        try:
            signatures.sign(folder / bundles.SUMS, arguments.sign)
        except EeioError:
            shutil.rmtree(folder)
            raise
    bundles.archive(folder, packed)
    hosts = ", ".join(dict.fromkeys(campaign.machine.hostname for campaign in campaigns))
    print(f"the records name the machine ({hosts}) and its drives", file=sys.stderr)
    print(folder)
    print(packed)
    return EXIT_DONE


def _methods(report: Report) -> str:
    return "\n\n".join(["# How it was measured", *map(markdown, paragraphs(report))]) + "\n"


def _methods_tex(report: Report) -> str:
    return "\n\n".join(map(latex, paragraphs(report))) + "\n"
