"""lmbench: bare figures, told apart by the command before them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eeio.errors import ToolOutputError
from eeio.record.tools import parse
from eeio.record.tools.capture import Capture, ToolResult

DATA = Path(__file__).parents[1] / "outputs/3.0-a9+debian.1-6"


def kept(case: str) -> Capture:
    return Capture.load(DATA / case)


def of_text(folder: Path, text: str) -> ToolResult:
    (folder / "stderr.txt").write_text(text)
    return parse("lmbench", replace(kept("all"), directory=folder))


def test_every_figure() -> None:
    result = parse("lmbench", kept("all"))
    text = (DATA / "all" / "stderr.txt").read_text()
    values = {c.name: c.value for c in result.context}
    units = {c.name: c.unit for c in result.context}
    for what, name in (("rd", "read"), ("wr", "write"), ("cp", "copy")):
        (rate,) = re.findall(rf"# bw_mem .* {what}\n[\d.]+ ([\d.]+)\n", text)
        assert values[f"memory_{name}_bandwidth"] == pytest.approx(float(rate) * 1e6)
        assert units[f"memory_{name}_bandwidth"] == "B/s"
    (last,) = re.findall(r"^2\.00000 ([\d.]+)$", text, re.M)
    assert values["memory_latency"] == pytest.approx(float(last) * 1e-9)
    (null,) = re.findall(r"Simple syscall: ([\d.]+) micro", text)
    assert values["syscall_null_latency"] == pytest.approx(float(null) * 1e-6)
    ((created, deleted),) = re.findall(r"^10k\t\d+\t(\d+)\t(\d+)$", text, re.M)
    assert values["file_create_rate_10k"] == float(created)
    assert values["file_delete_rate_10k"] == float(deleted)
    assert result.phases == () and result.notes == ()


def test_a_part_that_failed_is_a_note(tmp_path: Path) -> None:
    result = of_text(
        tmp_path,
        "# bw_mem -N 1 64m rd\n67.11 inf\n# lat_syscall -N 1 null\n"
        "Simple syscall: 0.14 microseconds\n# end\n",
    )
    assert [c.name for c in result.context] == ["syscall_null_latency"]
    assert result.notes == ("lmbench: bw_mem -N 1 64m rd: no figure, it said '67.11 inf'",)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("", "empty"),
        ("8.39 23507.10\n", "not the profile's lmbench output"),
        ("# bw_mem -N 1 64m rd\n# end\n", "no program of lmbench gave a figure"),
    ],
)
def test_foreign_output_is_named(tmp_path: Path, content: str, found: str) -> None:
    with pytest.raises(ToolOutputError, match=rf"stderr\.txt: .*{found}"):
        of_text(tmp_path, content)


@given(cut=st.floats(0, 1))
def test_truncated_output_never_gives_a_wrong_number(
    tmp_path_factory: pytest.TempPathFactory, cut: float
) -> None:
    text = (DATA / "all" / "stderr.txt").read_text()
    try:
        result = of_text(tmp_path_factory.mktemp("cut"), text[: int(cut * len(text))])
    except ToolOutputError:
        return
    assert result == parse("lmbench", kept("all"))
