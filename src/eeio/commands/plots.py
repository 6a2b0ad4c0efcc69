"""Plots of campaigns as SVG, PDF or PNG files, for `report`, `export bundle` and `study`."""

import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from eeio.commands.campaign_folders import analysis
from eeio.commands.experiments import wanted
from eeio.commands.output_file import write_file
from eeio.errors import RejectedError
from eeio.paths import make_output_folder

if TYPE_CHECKING:
    from eeio.report.campaign.characterized import Report

FORMATS = ("svg", "pdf", "png")
CHARTS = ("latency", "depth", "power")
"""The names of `--chart` (`eeio.report.figures.load_charts`)."""
WIDTHS = ("one", "two")


def plot_files(
    built: "Report", formats: Sequence[str], width: str | None = None, where: Sequence[str] = ()
) -> dict[str, bytes]:
    """File name -> content of all plots of a report. `width` is that of a paper's column, None of a
    screen. `where` selects experiments (FACTOR=LEVEL); plots that need all of them are then left
    out. A plot that exists as SVG only is in no other format, and stderr names it."""
    with analysis():
        from eeio.comparison.campaigns import named_cells
        from eeio.comparison.cells import fits
        from eeio.measure.power_series import power_series
        from eeio.report.campaign.contents import drawings
        from eeio.report.figures import drawing, machines_and_drives
    look = drawing.SCREEN
    if width is not None:
        look = drawing.WIDTHS[width]
    chosen = wanted(where, [cell for of_one in named_cells(built.campaigns) for cell in of_one])
    drawn = machines_and_drives.drawn(
        built.campaigns, look, lambda cell: fits(cell, chosen), power_series
    )
    files: dict[str, bytes] = {}
    for plot in () if where else drawings(built):
        name = Path(plot.name).stem
        if plot.drawing is not None:
            drawn[name] = plot.drawing(look)
        elif "svg" in formats:
            files[plot.name] = plot.draw().encode()
        else:
            print(f"{name}: available as SVG only", file=sys.stderr)
    for name, one in drawn.items():
        files |= {f"{name}.{form}": drawing.file_of(one, form) for form in dict.fromkeys(formats)}
    return files


def chart_files(
    built: "Report", names: Sequence[str], formats: Sequence[str], width: str | None = None
) -> dict[str, bytes]:
    """File name -> content of the charts of these names (`--chart`). stderr names each chart that
    has no data, with the data it lacks. Raises RejectedError if none has."""
    with analysis():
        from eeio.measure.power_series import power_series
        from eeio.report.figures import drawing, load_charts
    look = drawing.SCREEN
    if width is not None:
        look = drawing.WIDTHS[width]
    files: dict[str, bytes] = {}
    lacking = []
    for name in names:
        drawn = load_charts.chart(name, built, power_series, look)
        if isinstance(drawn, load_charts.Lacking):
            lacking.append(f"{name}: {drawn.reason}")
            continue
        for (file, one), form in product(drawn.items(), dict.fromkeys(formats)):
            files[f"{file}.{form}"] = drawing.file_of(one, form)
    if not files:
        raise RejectedError(f"no chart: {'; '.join(lacking)}")
    for text in lacking:
        print(f"eeio: no chart of {text}", file=sys.stderr)
    return files


def write_plots(files: Mapping[str, bytes], folder: Path) -> None:
    """Each into a file of its name, which is printed to stderr. Raises RejectedError if the name of
    `folder` is that of a file."""
    if folder.suffix[1:] in FORMATS:
        raise RejectedError(f"{folder}: name a folder; each plot has a fixed file name")
    make_output_folder(folder)
    for name, content in files.items():
        write_file(folder / name, content)
        print(f"plot: {folder / name}", file=sys.stderr)
    if not files:
        print("no plot: no campaign has a valid result", file=sys.stderr)
