"""An artifact of a paper: campaigns with their tables, figures, methods, papers and checksums, as a
folder and an archive of it.

The same campaigns give the same bytes: files in order, with fixed times, owners and modes.
"""

import gzip
import hashlib
import shlex
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from eeio import __version__
from eeio.errors import EeioError, LimitError, RejectedError
from eeio.files import inputs
from eeio.measure.profiles import suite as suites
from eeio.paths import make_output_folder
from eeio.record import drive_states
from eeio.record.store import Campaign
from eeio.report.campaign.data_source import source_of
from eeio.units.external_text import markdown, shown
from eeio.units.names import campaign_name

SUMS = "SHA256SUMS"
REMADE = "again"
"""The folder into which a bundle's script makes the tables and figures again."""
PAPERS = "papers.bib"
_CITATION = "CITATION.cff"
# Files of a campaign's folder; other files there are derived from these.
_RECORDS = (
    "campaign.json",
    "machine.json",
    "idle.json",
    "load.json",
    drive_states.FILE,
    "runs.jsonl",
)
_OWN = """\
@software{eeio,
  author  = {{the eeio authors}},
  title   = {eeio: energy efficiency of the {I/O} stack, level by level},
  version = {%s},
}
"""


def check_names(campaigns: Sequence[Campaign]) -> None:
    """Rejects campaigns with conflicting names below `data/`."""
    names = [campaign.folder.resolve().name for campaign in campaigns]
    for name in names:
        try:
            campaign_name(name)
        except LimitError as error:
            raise RejectedError(str(error)) from error
        if names.count(name) > 1:
            raise RejectedError(f"two campaigns are in folders called {name}: rename one of them")


def data_files(campaign: Campaign, with_raw: bool) -> dict[str, Path]:
    """Relative path -> file of a campaign: its records, the samples of its meters, and with
    `with_raw` the output of the tools. RejectedError if one of them is, or is behind, a symbolic
    link: its target was not made by the campaign, and would be published."""
    folder = campaign.folder
    places = [folder / name for name in _RECORDS]
    for sub in ("samples", *(("raw",) if with_raw else ())):
        places += [folder / sub, *sorted((folder / sub).rglob("*"))]
    link = next((path for path in places if path.is_symlink()), None)
    if link is not None:
        raise RejectedError(f"{link}: a symbolic link, not a file of the campaign. Remove it")
    name = folder.resolve().name
    return {f"data/{name}/{path.relative_to(folder)}": path for path in places if path.is_file()}


def papers(campaigns: Sequence[Campaign]) -> str:
    """BibTeX of eeio, and of the papers that the suites are after, each once."""
    entries = {"eeio": _OWN % __version__}
    for campaign in campaigns:
        for entry in _papers_of(campaign.design.suite):
            entries.setdefault(entry.partition(",")[0], entry)
    return "\n".join(entries.values())


def _papers_of(suite: str) -> list[str]:
    """The entries of the papers.bib next to a suite; none if the suite is missing here, or has
    none."""
    if not suite:
        return []
    try:
        path = suites.find(suite).folder / PAPERS
        text = ""
        if path.is_file():
            text = inputs.read_text(path, inputs.DEFINITION_BYTES)
    except (EeioError, LimitError, OSError):
        return []
    entries = f"\n{text}".split("\n@")[1:]
    return [f"@{entry.strip()}\n" for entry in entries]


def citation() -> bytes:
    """eeio's CITATION.cff; empty if it was not installed with it."""
    package = Path(__file__).resolve().parents[1]
    for path in (package.parents[1] / _CITATION, package / "share" / _CITATION):
        if path.is_file():
            return path.read_bytes()
    return b""


def remake(campaigns: Sequence[Campaign], width: str, pages: Sequence[str] = ()) -> str:
    """The script that remakes tables, figures and the pages of these commands from the bundle's
    data, into folders next to it; at its top the commands of the measurement."""
    names = " ".join(
        shlex.quote(f"data/{campaign.folder.resolve().name}") for campaign in campaigns
    )
    measured = "\n".join(f"#   {shown(source_of(campaign))}" for campaign in campaigns)
    commands = ""
    for command in pages:
        commands += f"eeio {command} {names} -o {REMADE}/{command}.html\n"
    return f"""\
#!/bin/sh
# Makes the tables and figures of this bundle again, with eeio {__version__}, in {REMADE}/.
# Where the data are from:
{measured}
set -eu
cd "$(dirname "$0")"
for format in json:json markdown:md latex:tex; do
	eeio report {names} --format "${{format%:*}}" -o "{REMADE}/tables/report.${{format#*:}}"
done
eeio report {names} --format csv -o {REMADE}/tables/report.csv \\
	--plots {REMADE}/figures --plot-format svg --plot-format pdf --width {width}
{commands}"""


_PAGES = {
    "compare": "page: what changed between the campaigns",
    "cost": "page: J, money and carbon of a TB on each",
}


def readme(
    campaigns: Sequence[Campaign],
    warnings: Sequence[str],
    pages: Sequence[str] = (),
    missing: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The bundle's index, and how to check and remake it. `pages` are the commands with a page,
    `missing` the reasons of others that have none."""
    names = ", ".join(markdown(campaign.name) for campaign in campaigns)
    hosts = ", ".join(dict.fromkeys(markdown(c.machine.hostname) for c in campaigns))
    hosts = "an unknown machine" if hosts == "unknown" else hosts
    lines = [f"# Measurements with eeio: {names}", ""]
    lines += [f"> **{markdown(warning)}**\n" for warning in warnings]
    lines += [
        f"Made by eeio {__version__} of records that were measured on {hosts}. They name the "
        "machine and its drives.",
        "",
        "| content | place |",
        "|---|---|",
        "| records (one a run), design, machine, idle power, samples of the meters | `data/` |",
        "| tables: CSV (SI units), JSON, Markdown, LaTeX (booktabs) | `tables/` |",
        "| figures, SVG and PDF, for two columns | `figures/` |",
        "| how it was measured, for the paper's text | `methods.md`, `methods.tex` |",
        f"| papers to cite | `{PAPERS}`, `{_CITATION}` |",
    ]
    for command in pages:
        lines.append(f"| {_PAGES[command]} | [{command}.html]({command}.html) |")
    lines += [f"| checksums of all else | `{SUMS}` |", ""]
    for command, reason in missing.items():
        lines.append(f"There is no {command}.html: {markdown(reason)}\n")
    lines += [
        f"Check it: `sha256sum -c {SUMS}`. Make tables and figures again: `sh remake.sh`, with "
        "eeio in PATH; the tables are then the same, byte by byte. Its first lines contain the "
        "commands that measured the data.",
        "",
    ]
    return "\n".join(lines)


def write(folder: Path, data: Mapping[str, Path], made: Mapping[str, bytes]) -> None:
    """The folder of files that are copied and of those that were made, by their paths in it, with
    its checksums. Raises RejectedError where it exists."""
    if folder.exists():
        raise RejectedError(f"{folder} exists: choose another with -o")
    make_output_folder(folder)
    sums = {}
    for name in sorted({*data, *made}):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in made:
            path.write_bytes(made[name])
        else:
            shutil.copyfile(data[name], path, follow_symlinks=False)
        with path.open("rb") as file:
            sums[name] = hashlib.file_digest(file, "sha256").hexdigest()
    text = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
    (folder / SUMS).write_text(text, encoding="utf-8")


def archive(folder: Path, path: Path) -> None:
    """The folder as a .tar.gz with bytes that depend only on its files' names and contents. Raises
    RejectedError if it already exists."""
    try:
        out = path.open("xb")
    except FileExistsError:
        raise RejectedError(f"{path} exists: choose another with -o") from None
    with (
        out,
        gzip.GzipFile("", "wb", fileobj=out, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for file in sorted(folder.rglob("*")):
            if not file.is_file():
                continue
            info = tarfile.TarInfo(f"{folder.name}/{file.relative_to(folder)}")
            info.size = file.stat().st_size
            info.mode = 0o755 if file.suffix == ".sh" else 0o644
            with file.open("rb") as content:
                tar.addfile(info, content)
