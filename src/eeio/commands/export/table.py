"""`eeio export table`, also called as `eeio table`: a page that compares bundles."""

import math
import sys
from dataclasses import dataclass
from pathlib import Path

from eeio import __version__
from eeio.commands.campaign_folders import analysis
from eeio.commands.output_file import write_file
from eeio.errors import EXIT_DONE, EXIT_DONE_WITH_INVALID_RUNS, LimitError, RejectedError
from eeio.exchange.validation import Examined, examine
from eeio.options import Command, argument, option
from eeio.units.external_text import shown
from eeio.units.names import similar
from eeio.units.quantities import PRICE

_PAGE = "index.html"
_OURS = '<main id="site">'


def _price(text: str) -> tuple[str, float]:
    drive, equals, amount = text.rpartition("=")
    try:
        price = float(amount)
    except ValueError:
        price = math.nan
    if not (equals and drive and PRICE.contains(price)):
        raise LimitError(f"{text!r} is not DRIVE=N")
    return drive, price


@dataclass(frozen=True, kw_only=True)
class TableRequest:
    """`eeio export table`."""

    bundles: tuple[Path, ...] = argument(
        "BUNDLE",
        help="folder or .tar.gz",
        parse=Path,
        count="+",
    )
    output: Path = option(
        "-o",
        "--output",
        value="FOLDER",
        help="output folder (default: ./table)",
        parse=Path,
        default=Path("table"),
    )
    price: tuple[tuple[str, float], ...] = option(
        "--price",
        value="DRIVE=N",
        help="price of a drive, named as on the page; repeatable",
        parse=_price,
        repeat=True,
    )


def table(request: TableRequest) -> int:
    page = request.output / _PAGE
    if page.exists() and _OURS not in page.read_text("utf-8", "replace"):
        raise RejectedError(f"{page} exists and is no page of `eeio table`; choose another -o")
    with analysis():
        from eeio.report.page import site
    bundle_of: dict[str, site.Bundle] = {}
    known_runs: set[str] = set()
    rejected = 0
    for path in request.bundles:
        name = path.resolve().name.removesuffix(".tar.gz")
        try:
            if name in bundle_of:
                raise RejectedError(f"{path}: another bundle is also called {name}; rename one")
            examined = examine(path)
            _check(path, examined)
            if examined.runs and examined.runs <= known_runs:
                raise RejectedError(f"{path}: all its campaigns are in the other bundles, too")
        except RejectedError as error:
            print(f"eeio: rejected: {shown(str(error))}", file=sys.stderr)
            rejected += 1
            continue
        known_runs |= examined.runs
        why_not = tuple(problem.what for problem in examined.problems)
        bundle_of[name] = site.Bundle(name, examined.campaigns, why_not, examined.signer)
    if not bundle_of:
        raise RejectedError("no bundle is usable; no page was written")
    known = site.drives(bundle_of.values())
    for drive, _ in request.price:
        if drive not in known:
            hint = similar(drive, known) or f"; there are {', '.join(known)}"
            raise RejectedError(f"--price: no drive is called {drive!r}{shown(hint)}")
    write_file(page, site.render(list(bundle_of.values()), dict(request.price), __version__))
    print(page)
    if rejected:
        return EXIT_DONE_WITH_INVALID_RUNS
    return EXIT_DONE


def _check(path: Path, examined: Examined) -> None:
    """Raises RejectedError for a bundle that was changed or cannot be read."""
    broken = [problem for problem in examined.problems if problem.kind != "rule"]
    if broken:
        more = ""
        if len(broken) > 1:
            more = f"; `eeio validate` lists all {len(broken)} problems"
        raise RejectedError(f"{path}: {broken[0].where}: {broken[0].what}{more}")


COMMAND = Command(
    "table",
    TableRequest,
    table,
    help="make a web page that compares bundles",
    description="Writes FOLDER/index.html, a page without external resources: the results of "
    "all bundles, to sort and to filter by drive, level, domain and price. Checks each bundle "
    "as `eeio validate` does. Bundles that were changed or cannot be read are rejected, with "
    "exit status 3. `eeio table` is the same.",
)
