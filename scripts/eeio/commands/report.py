"""`eeio report`: the tables of one or several campaigns, in every format."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from eeio import paths
from eeio.errors import EXIT_DONE, RefusedError
from eeio_results import store
from eeio_results.errors import EeioError
from eeio_results.report import csv, markdown, text
from eeio_results.report.model import Report, build, to_json

_PAGE = "report.html"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "report",
        help="tables, CSV, JSON, Markdown or an HTML page of stored campaigns",
        description="Characterizes stored campaigns: bandwidth, power, energy, efficiency.",
    )
    parser.add_argument("campaigns", metavar="NAME|PATH", nargs="+", help="name, or its folder")
    parser.add_argument(
        "--format", choices=tuple(_FORMATS), default="table", help="(default: table)"
    )
    parser.add_argument("-o", "--output", metavar="PATH", type=Path, help="(default: stdout)")
    parser.add_argument(
        "--plots", metavar="DIR", type=Path, help="also write the plots as SVG files into DIR"
    )
    parser.set_defaults(action=report)


def report(arguments: argparse.Namespace) -> int:
    folders = [_folder(name) for name in arguments.campaigns]
    built = build([store.load(folder) for folder in folders])
    if arguments.plots is not None:
        _write_plots(built, arguments.plots)
    content = _FORMATS[arguments.format](built)
    if arguments.output is None:
        sys.stdout.write(content)
    else:
        _write(arguments.output, content)
        print(arguments.output)
    return EXIT_DONE


def print_campaign(folder: Path) -> None:
    """Tables on stdout, the page into the campaign's folder, its path as the last line."""
    built = build([store.load(folder)])
    sys.stdout.write(text.render(built))
    try:
        content = _render_html(built)
    except EeioError as error:
        print(f"HTML report not written: {error}", file=sys.stderr)
        return
    _write(folder / _PAGE, content)
    print(f"\nHTML report: {folder / _PAGE}")


def _folder(name: str) -> Path:
    if "/" in name or Path(name).is_dir():
        return Path(name)
    folder = paths.results_root() / name
    if not folder.is_dir():
        raise RefusedError(
            f"no campaign {name!r} in {paths.results_root()}; `eeio list` shows them"
        )
    return folder


def _write(path: Path, content: str) -> None:
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise EeioError(f"{path}: {error.strerror}") from error


def _render_html(built: Report) -> str:
    # Boards that only measure have neither Jinja2 nor matplotlib.
    try:
        from eeio_results.report import html
    except ImportError as error:
        raise EeioError(
            f"{error.name} is not installed here; copy the campaign's folder to a machine that "
            "has it and give its path to `eeio report --format html`"
        ) from error
    return html.render(built)


def _write_plots(built: Report, folder: Path) -> None:
    try:
        from eeio_results.report import plots
    except ImportError as error:
        raise EeioError(f"{error.name} is not installed here, so no plot can be drawn") from error
    drawn = {"bandwidth.svg": plots.bandwidth(built)}
    efficiency = plots.efficiency(built)
    if efficiency is not None:
        drawn["efficiency.svg"] = efficiency[1]
    for name, svg in drawn.items():
        _write(folder / name, svg)
        print(f"plot: {folder / name}", file=sys.stderr)


def _render_json(built: Report) -> str:
    return json.dumps(to_json(built), indent=1) + "\n"


_FORMATS: dict[str, Callable[[Report], str]] = {
    "table": text.render,
    "json": _render_json,
    "csv": csv.render,
    "markdown": markdown.render,
    "html": _render_html,
}
