"""What others named reaches the screen, files and pages as text alone."""

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.campaigns import records_in
from tests.eeio_results import made
from tests.plugin import Eeio

from eeio.files import documents
from eeio.units.terminal import HarmlessStream, harmless_streams, raw

HOSTILE = "\x1b]0;owned\x07=1+1|<script>alert(1)</script>\u202e"
PROFILE = Path(__file__).parents[1] / "data/profiles"


def test_streams_show_control_characters() -> None:
    behind = io.StringIO()
    stream = HarmlessStream(behind)
    print(HOSTILE, file=stream)
    stream.writelines(["a\n", "\x9b\n"])
    assert behind.getvalue() == (
        "\\x1b]0;owned\\x07=1+1|<script>alert(1)</script>\\u202e\na\n\\x9b\n"
    )
    assert raw(stream) is behind  # type: ignore[arg-type]


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", "5 \\xb1 1"), ("utf-8", "5 ± 1")])
def test_a_terminal_without_a_character_shows_an_escape(encoding: str, shown: str) -> None:
    behind = io.BytesIO()
    stream = HarmlessStream(io.TextIOWrapper(behind, encoding=encoding, write_through=True))
    print("5 ± 1", file=stream)
    stream.writelines(["5 ± 1\n"])
    assert behind.getvalue().decode(encoding) == f"{shown}\n{shown}\n"


def test_only_the_command_writes_through_them(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout
    with harmless_streams():
        print("\x1b")
    assert sys.stdout is before
    assert capsys.readouterr().out == "\\x1b\n"


def test_an_error_with_a_hostile_name(eeio: Eeio) -> None:
    done = eeio("report", f"a{HOSTILE}b", code=(1, 2))
    assert "\x1b" not in done.stderr and "\u202e" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def campaign(home: Path, eeio: Eeio) -> Path:
    """A campaign whose machine, reasons and meters have hostile names."""
    eeio.run(
        "dummy-suite", "--name", "hostile", "--repetitions", "1", "--meter", "none",
        "--allow-memory-filesystem", code=(0, 3),
    )  # fmt: skip
    folder = home / "data/eeio/results/hostile"
    machine = json.loads((folder / "machine.json").read_text())
    machine |= {"hostname": HOSTILE, "cpu_model": HOSTILE, "device_model": f"-{HOSTILE}"}
    (folder / "machine.json").write_text(json.dumps(machine))
    idle = json.loads((folder / "idle.json").read_text())
    (folder / "idle.json").write_text(json.dumps(idle | {"reason": HOSTILE}))
    runs = records_in(folder)
    for run in runs:
        for phase in run["phases"]:
            phase["name"] = f"={HOSTILE}"
    (folder / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    return folder


@pytest.mark.parametrize("form", ["table", "csv", "markdown", "html"])
def test_every_format_is_harmless(campaign: Path, eeio: Eeio, form: str) -> None:
    done = eeio("report", "hostile", "--format", form)
    assert "owned" in done.stdout
    assert "\x1b" not in done.stdout and "\u202e" not in done.stdout
    if form in ("markdown", "html"):
        assert "<script>alert" not in done.stdout
    if form == "csv":
        assert not [line for line in done.stdout.splitlines() if ",=" in line or ",-\\x1b" in line]


def test_a_file_is_as_harmless_as_the_screen(campaign: Path, eeio: Eeio, home: Path) -> None:
    for form in ("table", "csv", "markdown", "html"):
        path = home / f"report.{form}"
        eeio("report", "hostile", "--format", form, "-o", str(path))
        written = path.read_text(encoding="utf-8")
        assert "owned" in written
        assert "\x1b" not in written and "\u202e" not in written


FORMULAS = (r"$\frac{1}{$", r"$ x_{ $ <script>alert(1)</script>[x](javascript:1)")


@pytest.mark.parametrize("name", FORMULAS)
def test_names_are_no_formulas_to_the_figures(home: Path, eeio: Eeio, name: str) -> None:
    """matplotlib takes what stands between dollars for a formula, and refuses a broken one."""
    pytest.importorskip("matplotlib")
    reading = made.energy(5.0)
    experiment = replace(made.EXPERIMENT, tool=name, target=name, api=name)
    phases = (made.phase(1e6, (reading,)),)
    made.stored(
        home / "data/eeio/results/c",
        [replace(made.run(n, phases, experiment), device=name) for n in range(2)],
        replace(made.design("c", 2, experiment), suite_title=name),
        machine=replace(made.MACHINE, hostname=name, device=name, device_model=name),
        idle=[replace(reading, meter=name)],
    )
    eeio("report", "c", "--plots", str(home / "figures"))
    drawn = [path.read_bytes() for path in (home / "figures").iterdir()]
    assert drawn
    for svg in drawn:
        documents.parse_xml(svg)
        assert b"<script" not in svg


def test_warnings_of_a_comparison_are_harmless_in_markdown(home: Path, eeio: Eeio) -> None:
    for name in ("a", "b"):
        harmful = f"{name}<script>alert(1)</script>[x](javascript:1)\n# heading"
        made.stored(
            home / "data/eeio/results" / name,
            [made.run(0, (made.phase(1e6 if name == "a" else 2e6),))],
            made.design(harmful, 1, measurement=False),
            machine=replace(made.MACHINE, hostname=name),
        )  # fmt: skip
    done = eeio("compare", "a", "b", "--format", "markdown")
    assert "alert(1)" in done.stdout
    assert "<script" not in done.stdout and "[x](" not in done.stdout
    assert "\n# heading" not in done.stdout


def test_a_suite_whose_name_no_folder_has(home: Path, eeio: Eeio) -> None:
    plan = replace(made.design("c", 1), suite="a/\0b")
    made.stored(home / "data/eeio/results/c", [made.run(0, (made.phase(1e6),))], plan)
    eeio("export", "c", "--pts", "-o", str(home / "out"))
