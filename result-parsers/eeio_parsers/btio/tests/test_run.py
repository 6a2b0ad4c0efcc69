"""The output of NPB's own BT-IO (the commands stand beside the files); ours is `eeio.json`."""

from pathlib import Path

import pytest

from eeio.errors import ToolOutputError
from eeio.record import tools
from eeio.record.tools.capture import Capture
from eeio_parsers.btio import run as btio

DATA = Path(__file__).parents[1] / "outputs/3.3.1"


def text(name: str) -> str:
    return (DATA / name).read_text()


@pytest.mark.parametrize(
    ("name", "moved", "rate", "shown_s"),
    [
        ("W-4-full.txt", 22_118_400, 105.37e6, 0.21),
        # 0.00 s are printed: the rate tells 1.8 ms.
        ("S-4-simple.txt", 829_440, 458.15e6, 0.0),
    ],
)
def test_bytes_are_exact_and_time_is_that_of_the_rate(
    name: str, moved: int, rate: float, shown_s: float
) -> None:
    result = btio.parse_text(text(name))
    (phase,) = result.phases
    assert (phase.operation, phase.bytes_moved, phase.invalid) == ("write", moved, ())
    assert phase.bandwidth_bytes_per_s == pytest.approx(rate, rel=1e-9)
    assert phase.metrics["npb_io_time_s"] == pytest.approx(moved / rate, rel=1e-9)
    assert phase.metrics["npb_io_time_s"] == pytest.approx(shown_s, abs=0.005)
    assert (phase.start_s, phase.end_s) == (None, None)
    assert phase.until_durable is None and "does not flush" in (phase.durable_reason or "")
    assert result.notes[0].startswith("the original NPB 3.3, ")


def test_a_failed_verification_is_reported() -> None:
    bad = text("W-4-full.txt").replace(
        "Verification    =               SUCCESSFUL", "Verification    =             UNSUCCESSFUL"
    )
    assert bad != text("W-4-full.txt")
    (phase,) = btio.parse_text(bad).phases
    assert phase.invalid == ("its verification: UNSUCCESSFUL",)


def test_output_that_is_not_complete_is_rejected() -> None:
    complete = text("W-4-full.txt")
    for lines in (0, 5, 40, 100, 110):
        with pytest.raises(ToolOutputError, match="incomplete output"):
            btio.parse_text("".join(complete.splitlines(keepends=True)[:lines]))
    lost = complete.replace(" Writing data set, time step         100\n", "")
    with pytest.raises(ToolOutputError, match=r"39 dumps of 13824 points are not its 22\.12 MB"):
        btio.parse_text(lost)
    with pytest.raises(ToolOutputError, match=r"in 0\.21 s"):
        btio.parse_text(complete.replace("105.37", "205.37"))


def test_the_profile_names_the_program(tmp_path: Path) -> None:
    (tmp_path / "npb.txt").write_text(text("W-4-full.txt"))
    (tmp_path / "npb-program.txt").write_text("bt.W.4.mpi_io_full, sha256 abc\n")
    result = tools.parse("btio", Capture(tmp_path, {}, 0, 0.0, 1.0, 0.0))
    assert result.notes[-1] == "program: bt.W.4.mpi_io_full, sha256 abc"
    (tmp_path / "npb.txt").write_text("")
    with pytest.raises(ToolOutputError, match=r"npb.txt: empty"):
        tools.parse("btio", Capture(tmp_path, {}, 0, 0.0, 1.0, 0.0))
