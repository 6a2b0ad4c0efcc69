"""The page of a guideline: the answer, its map in words and marks, and its tables."""

import re
from dataclasses import replace

import pytest

from eeio.guideline.replacement_rule import guideline
from eeio.guideline.servers import CellValues, Server
from eeio.guideline.workload import CellKey, WorkloadEntry, make_workload
from eeio.report.page import guideline as page

READ = CellKey("read", "sequential", 32768, "off")
WRITE = CellKey("write", "sequential", 32768, "on")
MIX = make_workload("mix", [WorkloadEntry(READ, 1.0)])


def _server(name: str, bandwidth: float, power: float, *keys: CellKey) -> Server:
    values = tuple(bandwidth * (1 + n / 100) for n in range(8))
    return Server(name, tuple(CellValues(key, values, (power,) * 8) for key in keys))


PC, BOARD = _server("PC", 100e6, 40.0, READ, WRITE), _server("board", 50e6, 10.0, READ, WRITE)


def test_the_answer_stands_first_and_every_point_is_drawn_and_reported() -> None:
    text = page.render(guideline(MIX, PC, BOARD, counts=[3.0]), ())
    answer = "Replacing one PC by 2 "
    assert answer in text and text.index(answer) < text.index("<figure")
    assert text.count('<g class="mark') == 3  # a read, a write that is not in the mix, the mix
    assert len(re.findall('<g class="mark [a-z]+ other"', text)) == 1
    # Of a power that never changes there is no width; of the bandwidth there is.
    assert len(re.findall(r'class="whisker" d="M[0-9. ]+H', text)) == 3
    assert re.search(r"<title>1: sequential read 32 KiB, buffer off; B_ts / B_lp 2 \(", text)
    assert text.count('<tr id="p') == 3
    for title in ("Experiment by experiment", "With 3 board", "saves power"):
        assert title in text


def test_quick_is_a_mark_and_stands_in_the_map_itself() -> None:
    made = guideline(MIX, PC, BOARD)
    text = page.render(made, ("a", "b"))
    assert "not a measurement: a, b only checked the set-up" in text
    assert re.search('<text [^>]*class="stamp">QUICK</text>', text)
    assert 'class="stamp"' not in page.render(made, ())


def test_without_a_common_experiment_the_page_reports_why_and_draws_nothing() -> None:
    made = guideline(MIX, PC, _server("board", 50e6, 10.0, WRITE))
    assert made.reason is not None
    text = page.render(made, ())
    assert made.reason in text and 'class="tiles"' not in text
    apart = guideline(MIX, _server("PC", 1e6, 4.0, READ), _server("board", 1e6, 4.0, WRITE))
    assert "there is nothing to draw" in page.render(apart, ())


@pytest.mark.parametrize(
    "name", ['</script><img src="x">', "a\u202eb\x1b[31m", "'\"><!--", "{{ 7*7 }}", "\ud800"]
)
def test_no_name_breaks_the_page(name: str) -> None:
    workload = replace(MIX, name=name)
    traditional, low_power = replace(PC, name=name), replace(BOARD, name=f"{name}2")
    text = page.render(guideline(workload, traditional, low_power), (name,))
    text.encode()
    assert text.count("<script") == 1 and text.count("</script>") == 1
    assert "<img" not in text and "<!--" not in text and ">49<" not in text
    assert "\u202e" not in text and "\x1b" not in text
