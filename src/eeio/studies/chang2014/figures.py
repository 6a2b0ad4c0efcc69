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


def _rows(phase: str) -> list[tuple[str, Value, str | None]]:
    """(label, value, the figure whose spread is shown) of each row of panels."""
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
        ]  # fmt: skip
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
        return None if mean is None else mean / unit

    return value


def draw(cells: Sequence[VariantCell], title: str, phase: str, stamped: str) -> str:
    """The SVG of one phase's panels, for cells of that phase that were measured."""
    title += ending(stamped)
    rows = _rows(phase)
    several = len({cell.campaign for cell in cells}) > 1
    workloads = list(dict.fromkeys(cell.workload for cell in cells))
    over_frequency = len({cell.frequency_hz for cell in cells if cell.frequency_hz}) > 1
    # A row that no cell has a value for (no trace, one frequency) would be empty axes.
    shown = [row for row in rows if any(row[1](cell) is not None for cell in cells)]
    if not over_frequency:
        shown = [row for row in shown if row[0] != "speedup"]
    width, height = _PANEL_INCHES
    figure = sheet(width * len(workloads) + 0.6, height * len(shown) + 0.9)
    axes = figure.subplots(len(shown), len(workloads), squeeze=False, sharex=True)
    for column, workload in enumerate(workloads):
        mine = [cell for cell in cells if cell.workload == workload]
        text = foreign(workload_label(mine[0]))
        if several:
            text = f"{foreign(mine[0].campaign)}\n{text}"
        axes[0, column].set_title(text, fontsize=8)
        for line, (label, value, spread) in zip(axes[:, column], shown, strict=True):
            if over_frequency:
                _lines(line, mine, value, spread)
            else:
                _bars(line, mine, value, spread)
            line.tick_params(labelsize=7)
            line.grid(axis="y", alpha=0.3)
            line.set_axisbelow(True)
            if label in ("speedup", "/ EXT4"):
                line.axhline(1.0, color="#999999", lw=0.8, zorder=0)
            if column == 0:
                line.set_ylabel(label, fontsize=7)
        if over_frequency:
            axes[-1, column].set_xlabel("frequency (GHz)", fontsize=7)
    if over_frequency:
        handles, labels = axes[0, 0].get_legend_handles_labels()
        set_legend(figure, handles, labels)
    if stamped:
        for panel in axes.flat:
            stamp(panel, stamped)
    set_title(figure, title)
    text = "; ".join(label for label, _, _ in shown)
    return svg_of(Drawing(figure, title, f"{text}, for {len(workloads)} workloads"))


def _lines(axis: Axes, cells: Sequence[VariantCell], value: Value, spread: str | None) -> None:
    for variant in dict.fromkeys(cell.variant for cell in cells):
        points = sorted(
            (cell.frequency_hz / 1e9, found, cell)
            for cell in cells
            if cell.variant == variant
            and cell.frequency_hz is not None
            and (found := value(cell)) is not None
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
        found = value(cell)
        if found is None:
            continue
        x = names.index(cell.variant)
        share = _share(cell, spread, "half_width")
        axis.bar(
            x,
            found,
            width=0.6,
            color=_COLOURS.get(cell.variant, "#000000"),
            yerr=found * share if share else None,
            error_kw={"lw": 0.8, "capsize": 2},
        )
    axis.set_xticks(range(len(names)), [_label(name) for name in names], fontsize=7)
    axis.set_ylim(bottom=0)


def _label(variant: str) -> str:
    return "EXT4" if variant == BASELINE else foreign(variant).replace("_", "\n")


def _share(cell: VariantCell, spread: str | None, which: str) -> float:
    """The spread of a figure as a share of its mean; 0 where there is none to show."""
    if spread is None:
        return 0.0
    found = cell.spread(cell.figure if spread == "relative" else spread)
    value = getattr(found, which) if found else None
    return 0.0 if value is None else float(value)
