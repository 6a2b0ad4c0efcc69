"""Reference values of an application: which experiment stands for a phase, and how far it lies."""

from dataclasses import replace

import pytest
from tests.cells import measured

from eeio.analysis.observation import Missing
from eeio.comparison.cells import BANDWIDTH, POWER, Cell, Measured
from eeio.report.document import render_terminal
from eeio.studies.panadero2012 import references as report
from eeio.studies.panadero2012.references import references
from eeio.units.sizes import parse_size

SYSTEM = POWER["system"]


def cell(bandwidth: float, watts: float | None = 10.0, **levels: str) -> Cell:
    factors = {
        "machine": "A", "device": "sda", "type": "SSD", "level": "library", "tool": "dataserver",
        "target": "file", "operation": "write", "spatiality": "sequential", "size": "128 KiB",
        "buffer": "on", "disk": "as found", "api": "mpiio", "processes": "1", "phase": "write",
        "arguments": "",
    }  # fmt: skip
    figures: dict[str, Measured | Missing] = {SYSTEM: Missing("no meter")}
    figures |= measured({BANDWIDTH: (bandwidth,) * 3})
    figures |= measured({SYSTEM: (watts,) * 3} if watts is not None else {})
    factors |= levels
    size = None if factors["size"] == "any" else parse_size(factors["size"])
    return Cell(factors, figures, request_size_bytes=size)


APPLICATION = cell(
    90.0, 10.3, level="application", tool="btio", spatiality="strided", processes="4"
)


def test_the_deviation_is_in_percent_of_the_reference() -> None:
    (found,) = references([APPLICATION, cell(100.0, 10.0)])
    assert found.deviation_percent(BANDWIDTH) == pytest.approx(-10.0)
    assert found.deviation_percent(SYSTEM) == pytest.approx(3.0)
    assert found.differs == ("spatiality: sequential for strided", "processes: 1 for 4")


def test_a_write_is_compared_with_one_of_the_same_flush_alone() -> None:
    ours = {"flush": "end", "durable": "yes"}
    application = replace(APPLICATION, factors={**APPLICATION.factors, **ours})
    others = [cell(1.0, flush="none", durable="yes"), cell(2.0, flush="end", durable="no")]
    (found,) = references([application, *others])
    assert found.reference is None and found.reason is not None
    assert found.reason.endswith("no write of the same flush: end (durable: yes)")
    (found,) = references([application, *others, cell(3.0, size="1 MiB", **ours)])
    assert found.reference is not None and found.reference.values(BANDWIDTH)[0] == 3.0


def test_the_nearest_request_size_with_the_same_cache_is_taken() -> None:
    cells = [
        APPLICATION,
        cell(1.0, size="128 KiB", buffer="off"),
        cell(2.0, size="16 KiB"),
        cell(3.0, size="64 KiB"),
        cell(4.0, size="1 MiB"),
        cell(5.0, size="128 KiB", operation="read"),
    ]
    (found,) = references(cells)
    assert found.reference is not None
    assert found.reference.values(BANDWIDTH)[0] == 3.0


def test_the_pattern_and_the_library_decide_between_equal_sizes() -> None:
    cells = [
        APPLICATION, cell(1.0, api="posix"), cell(2.0), cell(3.0, spatiality="strided"),
    ]  # fmt: skip
    (found,) = references(cells)
    assert found.reference is not None
    assert found.reference.values(BANDWIDTH)[0] == 3.0


def test_the_drives_write_cache_is_the_same() -> None:
    cells = [
        APPLICATION,
        cell(90.0, level="application", tool="btio", disk="on"),
        cell(1.0, disk="off"),
        cell(2.0, disk="on"),
    ]
    _, found = references(cells)
    assert found.reference is not None
    assert found.reference.factors["disk"] == "on"
    (found,) = references([cells[1], cells[2]])
    assert found.differs == ("disk: off for on",)


def test_another_drive_stands_only_where_the_own_has_nothing() -> None:
    other = cell(1.0, device="sdb", spatiality="strided", processes="4")
    own = cell(2.0, level="filesystem", size="1 MiB", buffer="off")
    (found,) = references([other, own, APPLICATION])
    assert found.reference is own
    (found,) = references([other, APPLICATION])
    assert found.differs == ("device: sdb for sda",)


def test_without_the_library_level_the_file_system_stands() -> None:
    (found,) = references([APPLICATION, cell(7.0, level="filesystem", tool="fio", api="posix")])
    assert found.reference is not None
    assert found.reference.factors["level"] == "filesystem"


def test_nothing_to_compare_with_is_reported() -> None:
    (found,) = references([APPLICATION, cell(5.0, operation="read")])
    assert found.reference is None
    assert found.reason is not None and "no write" in found.reason
    assert found.deviation_percent(SYSTEM) is None
    assert "none: the characterization has no write" in render_terminal(report.document([found]))


def test_power_that_was_not_measured_is_missing_with_its_reason() -> None:
    (found,) = references([APPLICATION, cell(100.0, None)])
    assert found.deviation_percent(SYSTEM) is None
    text = render_terminal(report.document([found]))
    assert "power_system_w: no meter" in text
    assert "-10.0 %" in text
    body = report.document([found]).data()
    assert body["references"][0]["values"][SYSTEM]["deviation_percent"] is None


def test_another_machine_is_no_reference() -> None:
    (found,) = references([APPLICATION, cell(100.0, machine="B")])
    assert found.reference is None
