"""Parsers in folders of a user's own (EEIO_PARSERS)."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.plugin import Eeio

from eeio.errors import EeioError, ToolOutputError
from eeio.measure.profiles import factors
from eeio.record import tools
from eeio.record.run import CacheLayers, Experiment
from eeio.record.tool_label import tool_label
from eeio.record.tools.capture import Capture
from eeio.record.tools.description import FSYNC

ROOT = Path(__file__).parents[3]

PARSER = """
from eeio.record.tools.capture import ToolResult

def parse(capture):
    return ToolResult(phases=(), notes=(capture.directory.name,))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "parsers").mkdir()
    monkeypatch.setenv("EEIO_PARSERS", str(tmp_path / "parsers"))
    before = set(sys.modules)
    yield tmp_path / "parsers"
    for name in set(sys.modules) - before:
        if name.startswith("eeio_parsers."):
            del sys.modules[name]


def _capture(folder: Path) -> Capture:
    return Capture(folder, {}, 0, 0.0, 1.0, 0.0)


def test_a_parser_of_ones_own_reads_its_tool(folder: Path) -> None:
    (folder / "mine.py").write_text(PARSER)
    assert tools.parse("mine", _capture(folder)).notes == ("parsers",)


def test_a_tool_without_a_parser_is_read_as_native(folder: Path) -> None:
    with pytest.raises(ToolOutputError, match=r"eeio\.json"):
        tools.parse("mine", _capture(folder))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("mine", "1 / 0\n", r"'mine' \(.*mine\.py, named by EEIO_PARSERS\) cannot be imported"),
        ("mine", "", r"'mine' \(.*mine\.py\) has no function parse"),
        ("fio", PARSER, "eeio itself has a parser 'fio' already"),
    ],
)
def test_a_broken_parser_is_reported(folder: Path, name: str, text: str, message: str) -> None:
    (folder / f"{name}.py").write_text(text)
    with pytest.raises(EeioError, match=message):
        tools.check("mine")


def test_a_broken_module_is_rejected_before_the_first_run(home: Path, eeio: Eeio) -> None:
    (home / "own").mkdir()
    (home / "own/dummy.py").write_text("import nothing_like_it\n")
    arguments = ["dummy-suite", "--directory", f"{home}/target", "--meter", "none"]
    for variable, own, reported in (
        ("EEIO_PARSERS", home / "own", "cannot be imported"),
        ("EEIO_STUDIES", home / "own", "cannot be imported"),
        ("EEIO_PARSERS", home / "nowhere", "No such file or directory; make the folder"),
    ):
        done = eeio("run", *arguments, environment={variable: str(own)}, code=2)
        assert done.stderr.startswith("eeio: ") and reported in done.stderr
        assert not (home / "target").exists() or not list((home / "target").iterdir())


ABOUT = """
from eeio.record.tools.description import About
from eeio.record.tools.native import parse as parse

ABOUT = About(
    program="fio",
    bytes_of="process",
    words={("file", "shared"): "shared file"},
    named=("depth",),
    layer_rank=7,
    reports_all_bytes=True,
)
"""


def _experiment(**arguments: str) -> Experiment:
    return Experiment(
        "filesystem", "mine", "read", "sequential", 4096, CacheLayers(),
        arguments=tuple(arguments.items()),
    )  # fmt: skip


def test_labels_of_a_tool_that_says_nothing_show_every_argument(folder: Path) -> None:
    assert tool_label(_experiment(depth="4", seed="2")) == "mine depth=4 seed=2"


def test_a_parser_says_how_its_tool_is_reported(folder: Path) -> None:
    (folder / "mine.py").write_text(ABOUT)

    label = tool_label(_experiment(seed="2", depth="4", file="shared"))
    assert label.startswith("mine shared file depth=4")
    assert tool_label(_experiment(seed="2", depth="4")) == "mine depth=4"
    assert tools.about("mine").bytes_of == "process"
    assert tools.about("nobody's") == tools.About()


def test_a_description_of_another_type_is_rejected(folder: Path) -> None:
    (folder / "mine.py").write_text("ABOUT = {}\ndef parse(capture): ...\n")
    with pytest.raises(EeioError, match="ABOUT is no About"):
        tools.about("mine")


@pytest.mark.parametrize("tool", sorted({*tools.names()} - {"capture", "description"}))
def test_what_parsers_say_is_of_factors_of_their_profile(tool: str) -> None:
    """A name that the profile does not accept is a mistake in one of them."""
    known = factors.read(ROOT / f"test-profiles/eeio-{tool}-1.0.0/factors.conf")
    if known is None:
        pytest.skip("the profile has no factors of its own")
    told = tools.about(tool)
    words = told.words.keys() - FSYNC.keys()  # records of former versions have it
    for name in (*(told.named or ()), *(name for name, _ in words)):
        assert name in known.by_name
