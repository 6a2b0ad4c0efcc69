"""`eeio export bundle`: campaigns as the artifact of a paper."""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from eeio import paths
from eeio.commands.campaign_folders import load_campaigns
from eeio.commands.export.pages import pages
from eeio.commands.plots import plot_files
from eeio.commands.report import complete_report
from eeio.errors import EXIT_DONE, EeioError, RejectedError
from eeio.exchange import bundle as bundles
from eeio.exchange import signatures
from eeio.options import Command, argument, option, switch
from eeio.report.campaign.characterized import Report
from eeio.report.campaign.contents import document
from eeio.report.campaign.methods import paragraphs
from eeio.report.document import RENDERERS
from eeio.units.external_text import latex, markdown

_WIDTH = "two"
_FIGURES = ("svg", "pdf")
_TABLES = {"csv": "csv", "json": "json", "markdown": "md", "latex": "tex"}


@dataclass(frozen=True, kw_only=True)
class BundleRequest:
    """`eeio export bundle`."""

    campaigns: tuple[str, ...] = argument(
        "NAME|PATH",
        help="campaign name or folder",
        count="+",
    )
    output: Path | None = option(
        "-o",
        "--output",
        value="DIR",
        help="output folder and archive name (default: ./NAME-bundle)",
        parse=Path,
    )
    raw: bool = switch(
        "--raw",
        help="include the raw output of the tools",
    )
    sign: Path | None = option(
        "--sign",
        value="KEY",
        help="sign the checksums with this SSH key",
        parse=Path,
    )


def bundle(request: BundleRequest) -> int:
    if request.sign is not None:
        signatures.check_key(request.sign)
    campaigns = load_campaigns(request.campaigns)
    for campaign in campaigns:
        # A folder of it could become a link between the check of its files and their copy.
        paths.check_campaign_to_change(campaign.folder, "bundled")
    bundles.check_names(campaigns)
    first = campaigns[0].folder.resolve().name
    folder: Path = request.output or Path(f"{first}-bundle")
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
        data |= bundles.data_files(campaign, request.raw)
    bundles.write(folder, data, files)
    if request.sign is not None:
        try:
            signatures.sign(folder / bundles.SUMS, request.sign)
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


COMMAND = Command(
    "bundle",
    BundleRequest,
    bundle,
    help="write a paper artifact: data, tables, figures, checksums",
    description="Writes a folder and its .tar.gz: records and samples, tables (CSV, JSON, "
    "Markdown, LaTeX), figures, a description of the method, BibTeX, SHA-256 checksums, and "
    "the script that remakes tables and figures; of several campaigns also the pages of "
    "`eeio compare` and `eeio cost`. The same campaigns give the same archive.",
)
