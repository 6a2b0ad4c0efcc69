"""Figures 6 to 9 and 14 of Panadero et al. 2012: which cells they are of, and what they say."""

from dataclasses import replace

import pytest
from tests.cells import measured

from eeio.comparison.cells import BANDWIDTH, EFFICIENCY, J_PER_GB, POWER, UNCERTAINTY, Cell
from eeio.report.figures.drawing import SCREEN, WIDTHS, Look
from eeio.report.table_and_plot import Plot
from eeio.studies.panadero2012.plots import plots
from eeio.units.sizes import format_size

SYSTEM = POWER["system"]
KIB = 1 << 10


def cell(size_bytes: int, bandwidth: float, watts: float | None = None, **levels: str) -> Cell:
    factors = {
        "machine": "A", "device": "sda", "type": "SSD", "level": "device", "tool": "fio",
        "target": "device", "operation": "write", "spatiality": "sequential",
        "size": format_size(size_bytes), "buffer": "off", "disk": "as found", "api": "posix",
        "processes": "1", "phase": "write", "arguments": "", "flush": "end", "durable": "yes",
        **levels,
    }  # fmt: skip
    values = {BANDWIDTH: (bandwidth, 1.1 * bandwidth)}
    if watts is not None:
        values |= {SYSTEM: (watts,) * 2, J_PER_GB: (1e9 * watts / bandwidth,) * 2,
                   EFFICIENCY: (bandwidth / watts,) * 2}  # fmt: skip
    return Cell(factors, measured(values), request_size_bytes=size_bytes)


def _uncertain(cell: Cell, share: float) -> Cell:
    return replace(cell, figures={**cell.figures, **measured({UNCERTAINTY: (share,) * 2})})


def curve(watts: float | None = None, **levels: str) -> list[Cell]:
    return [cell(n * 16 * KIB, 1e6 * n, watts, **levels) for n in (1, 8, 64)]


def named(found: list[Plot]) -> dict[str, Plot]:
    return {plot.name: plot for plot in found}


def test_each_figure_is_drawn_of_the_experiments_that_it_is_about() -> None:
    found = named(
        plots(
            [
                *curve(), *curve(spatiality="random"), *curve(spatiality="strided"),
                *curve(level="filesystem", target="file", buffer="on"),
                *curve(level="filesystem", target="file", tool="iozone"),
                *curve(level="filesystem", target="file", tool="iozone", spatiality="strided"),
                *curve(level="library", tool="ior", api="mpiio", operation="read"),
                *curve(level="library", tool="dataserver"),
            ],
            "", False,
        )
    )  # fmt: skip
    assert list(found) == [
        "request-size-sequential.svg", "request-size-random.svg", "request-size-strided.svg",
        "caches-sequential.svg", "caches-sequential-fio.svg", "caches-strided.svg",
        "library.svg", "library-servers.svg",
    ]  # fmt: skip
    assert "figure 6" in found["request-size-sequential.svg"].title
    for plot in found.values():
        assert plot.draw().startswith("<svg")


def test_one_request_size_is_no_curve() -> None:
    assert plots([cell(16 * KIB, 1e6), cell(16 * KIB, 2e6, operation="read")], "", False) == []


@pytest.mark.parametrize("look", [SCREEN, *WIDTHS.values()])
def test_energy_is_drawn_where_it_was_measured_and_only_there(look: Look) -> None:
    (without,) = plots(curve(), "", False)
    assert without.drawing is not None
    reported = without.drawing(look).description
    assert "Bandwidth (MB/s)" in reported and "Power" not in reported and "J/GB" not in reported
    (measured,) = plots(curve(watts=20.0), "", False)
    assert measured.drawing is not None
    reported = measured.drawing(look).description
    for message in ("Power of the system (W)", "Energy (J/GB)", "Energy efficiency (MB/J)"):
        assert message in reported
    assert "from 16 KiB to 1 MiB" in reported


def test_energy_that_is_hardly_known_is_marked() -> None:
    cells = curve(watts=20.0)
    (known,) = plots([_uncertain(each, 0.1) for each in cells], "", False)
    (hardly,) = plots([_uncertain(each, 2.0) for each in cells], "", False)
    assert known.drawing is not None and hardly.drawing is not None
    assert "hollow" not in known.drawing(SCREEN).description
    assert "hollow: its energy is known to no better than" in hardly.drawing(SCREEN).description


def test_the_states_of_the_caches_are_lines() -> None:
    levels = {"level": "filesystem", "target": "file"}
    cells = [
        *curve(**levels, buffer="on", disk="on"), *curve(**levels, buffer="off", disk="off"),
        *curve(**levels, buffer="off", operation="read"),
    ]  # fmt: skip
    (found,) = plots(cells, "", False)
    svg = found.draw()
    for line in (
        "write, disk cache on, buffer cache on",
        "write, disk cache off, buffer cache off",
        "read, buffer cache off",
    ):
        assert line in svg


def test_an_application_stands_next_to_its_reference_with_the_share_that_it_uses() -> None:
    application = cell(
        128 * KIB, 45e6, 21.0, level="application", tool="btio", api="mpiio", phase="dumps"
    )
    reference = cell(128 * KIB, 90e6, 20.0, level="library", tool="ior", api="mpiio")
    (found,) = plots([application, reference], "", False)
    assert found.name == "reference.svg" and found.drawing is not None
    drawn = found.drawing(SCREEN)
    assert "btio dumps, A: 50 % of the reference" in drawn.description
    assert "105 % of the reference" in found.draw()


def test_a_quick_campaign_is_marked_and_several_are_distinguished() -> None:
    (found,) = plots(curve(), "raid5", "QUICK: not a measurement")
    assert found.name == "request-size-sequential-raid5.svg"
    assert "QUICK" in found.draw() and "raid5" in found.title
