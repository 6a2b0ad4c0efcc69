"""Figures 1 to 3, 7 and 8 of Chang et al. 2014: a column a workload, a row a quantity.

Over the frequency where the campaign has several, else over the variants. Lines carry the standard
deviation as a band, as in the paper; bars the 95 % interval of the mean.
"""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes

from eeio.report.figures.drawing import (
    BLUE,
    GREEN,
    GREY,
    VERMILION,
    Drawing,
    ending,
    foreign,
    set_legend,
    set_title,
    sheet,
    stamp,
    svg_of,
)
from eeio.studies.chang2014.cells import (
    BASELINE,
    CHILDREN,
    CREATES,
    EQUATION_9,
    PARENT,
    VariantCell,
    workload_label,
)
from eeio.units.sizes import MB

_COLOURS = {"ext4": BLUE, "nojc": GREY, "fast_commit": VERMILION, "delayjc": GREEN}
_PANEL_INCHES = (2.9, 1.55)

Value = Callable[[VariantCell], float | None]
_Row = tuple[str, Value, str | None]
"""Label, value, and the figure with the spread of the value."""


def _rows(phase: str) -> list[_Row]:
    """Of panels."""
    speedup = ("speedup", lambda cell: cell.speedup, "relative")
    ratio = ("/ EXT4", lambda cell: cell.ratio_to_ext4, None)
    durable = ("until durable (ms)", _of("until_durable_mean_s", 1e-3), "until_durable_mean_s")
    commits = ("commits of jbd2", _of("commits"), "commits")
    if phase == "write":
        return [
            ("Children (MB/s)", _of(CHILDREN, MB), CHILDREN),
            ("Parent (MB/s)", _of(PARENT, MB), PARENT),
            speedup,
            ratio,
            ("threads not blocked", _of("threads_not_blocked"), "threads_not_blocked"),
            commits,
            durable,
        ]
    return [
        ("equation (9) (1/s)", _of(EQUATION_9), EQUATION_9),
        ("files/s", _of(CREATES), CREATES),
        speedup,
        ratio,
        ("wait for the commit (ms)", _of("commit_wait_mean_s", 1e-3), "commit_wait_mean_s"),
        commits,
        durable,
    ]


def _of(name: str, unit: float = 1.0) -> Value:
    def value(cell: VariantCell) -> float | None:
        mean = cell.mean(name)
        if mean is None:
            return None
        return mean / unit

    return value


def draw(cells: Sequence[VariantCell], title: str, phase: str, stamped: str) -> str:
    """The SVG of one phase's panels, for cells of that phase that were measured."""
    title += ending(stamped)
    by_workload: dict[tuple[object, ...], list[VariantCell]] = {}
    for cell in cells:
        by_workload.setdefault(cell.workload, []).append(cell)
    over_frequency = len({cell.frequency_hz for cell in cells if cell.frequency_hz}) > 1
    shown = _shown(_rows(phase), cells, over_frequency)
    width, height = _PANEL_INCHES
    figure = sheet(width * len(by_workload) + 0.6, height * len(shown) + 0.9)
    axes = figure.subplots(len(shown), len(by_workload), squeeze=False, sharex=True)
    several = len({cell.campaign for cell in cells}) > 1
    for column, of_workload in zip(axes.T, by_workload.values(), strict=True):
        column[0].set_title(_heading(of_workload[0], several), fontsize=8)
        for panel, row in zip(column, shown, strict=True):
            _draw_panel(panel, row, of_workload, over_frequency)
        if over_frequency:
            column[-1].set_xlabel("frequency (GHz)", fontsize=7)
    for panel, (label, _, _) in zip(axes[:, 0], shown, strict=True):
        panel.set_ylabel(label, fontsize=7)
    if over_frequency:
        handles, labels = axes[0, 0].get_legend_handles_labels()
        set_legend(figure, handles, labels)
    if stamped:
        for panel in axes.flat:
            stamp(panel, stamped)
    set_title(figure, title)
    text = "; ".join(label for label, _, _ in shown)
    return svg_of(Drawing(figure, title, f"{text}, for {len(by_workload)} workloads"))


def _shown(rows: Sequence[_Row], cells: Sequence[VariantCell], over_frequency: bool) -> list[_Row]:
    """The rows that some cell has a value for: others (no trace, one frequency) would be empty
    axes."""
    shown = []
    for label, value, spread in rows:
        has_values = any(value(cell) is not None for cell in cells)
        if has_values and (over_frequency or label != "speedup"):
            shown.append((label, value, spread))
    return shown


def _heading(cell: VariantCell, several: bool) -> str:
    """The workload; with several campaigns also the campaign."""
    text = foreign(workload_label(cell))
    if several:
        return f"{foreign(cell.campaign)}\n{text}"
    return text


def _draw_panel(panel: Axes, row: _Row, cells: Sequence[VariantCell], over_frequency: bool) -> None:
    label, value, spread = row
    draw_values = _bars
    if over_frequency:
        draw_values = _lines
    draw_values(panel, cells, value, spread)
    panel.tick_params(labelsize=7)
    panel.grid(axis="y", alpha=0.3)
    panel.set_axisbelow(True)
    if label in ("speedup", "/ EXT4"):
        panel.axhline(1.0, color="#999999", lw=0.8, zorder=0)


def _lines(axis: Axes, cells: Sequence[VariantCell], value: Value, spread: str | None) -> None:
    for variant in dict.fromkeys(cell.variant for cell in cells):
        points = sorted(
            (cell.frequency_hz / 1e9, height, cell)
            for cell in cells
            if cell.variant == variant
            and cell.frequency_hz is not None
            and (height := value(cell)) is not None
        )
        if not points:
            continue
        x = [point[0] for point in points]
        y = [point[1] for point in points]
        colour = _COLOURS.get(variant, "#000000")
        axis.plot(x, y, "o-", ms=3, lw=1.2, color=colour, label=foreign(variant))
        shares = [_share(cell, spread, "rsd") for _, _, cell in points]
        axis.fill_between(
            x,
            [v * (1 - s) for v, s in zip(y, shares, strict=True)],
            [v * (1 + s) for v, s in zip(y, shares, strict=True)],
            color=colour,
            alpha=0.15,
            lw=0,
        )
    axis.set_ylim(bottom=0)


def _bars(axis: Axes, cells: Sequence[VariantCell], value: Value, spread: str | None) -> None:
    names = list(dict.fromkeys(cell.variant for cell in cells))
    for cell in cells:
        height = value(cell)
        if height is None:
            continue
        x = names.index(cell.variant)
        share = _share(cell, spread, "half_width")
        axis.bar(
            x,
            height,
            width=0.6,
            color=_COLOURS.get(cell.variant, "#000000"),
            yerr=height * share if share else None,
            error_kw={"lw": 0.8, "capsize": 2},
        )
    axis.set_xticks(range(len(names)), list(map(_label, names)), fontsize=7)
    axis.set_ylim(bottom=0)


def _label(variant: str) -> str:
    if variant == BASELINE:
        return "EXT4"
    return foreign(variant).replace("_", "\n")


def _share(cell: VariantCell, spread: str | None, which: str) -> float:
    """The spread of a figure as a share of its mean; 0 where there is none to show."""
    if spread is None:
        return 0.0
    spread_of_cell = cell.spread(cell.figure if spread == "relative" else spread)
    value = None
    if spread_of_cell:
        value = getattr(spread_of_cell, which)
    if value is None:
        return 0.0
    return float(value)
