"""IOR 3.3.0, 4.0.0 and, with HDF5, 4.1.0+dev: what they wrote (commands stand beside the files)."""

import re
from pathlib import Path

import pytest

from eeio.record.run import Durable
from eeio.record.tools.capture import Capture, Stamp
from eeio_parsers.ior import run as ior

DATA = Path(__file__).parents[1] / "outputs"
VERSIONS = ("3.3.0", "4.0.0")


def text(version: str, name: str) -> str:
    return (DATA / version / "other" / name).read_text()


def printed(version: str, name: str, operation: str) -> list[list[str]]:
    """Columns of the results as they stand in the file."""
    rows = [line.split() for line in text(version, name).split("Summary")[0].splitlines()]
    return [row for row in rows if row[:1] == [operation] and len(row) == 11]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_window_ends_when_the_line_arrives(version: str, tmp_path: Path) -> None:
    content = text(version, "strided.txt")
    (tmp_path / "stdout.txt").write_text(content)
    end_of_write = content.index("\nread ")
    capture = Capture(
        tmp_path, {}, 0, 100.0, 110.0, 0.0,
        (Stamp("stdout", end_of_write + 1, 105.0), Stamp("stdout", len(content), 109.0)),
    )  # fmt: skip
    write, read = ior.parse(capture).phases
    total_s = float(printed(version, "strided.txt", "write")[0][9])
    assert write.end_s == 5.0
    assert write.start_s == pytest.approx(5.0 - total_s)
    assert read.end_s == 9.0


@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_that_was_flushed_is_durable_when_it_ends(version: str, tmp_path: Path) -> None:
    complete = text(version, "strided.txt")
    (command,) = re.findall(r"^Command line.*", complete, re.M)
    assert " -e " in command and " -Y " not in command
    for word, source in (
        ("-e", "IOR's flush (-e)"),
        ("-Y", "IOR's flush of each request (-Y)"),
        ("-C", None),
    ):
        content = complete.replace(command, command.replace(" -e ", f" {word} "))
        (tmp_path / "stdout.txt").write_text(content)
        stamps = (Stamp("stdout", len(content), 109.0),)
        write, read = ior.parse(Capture(tmp_path, {}, 0, 100.0, 110.0, 0.0, stamps)).phases
        assert (read.includes_flush, read.until_durable, read.durable_reason) == (False, None, None)
        assert write.includes_flush == (source is not None)
        assert write.durable_reason is None
        if source is None:
            assert write.until_durable is None
        else:
            assert write.until_durable == Durable(9.0, write.bandwidth_bytes_per_s or 0, source)
