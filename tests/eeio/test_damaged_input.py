"""Users' files that are damaged or hostile: one line that names them, the documented code, and
nothing of a traceback."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.eeio.importing import made
from tests.eeio_results import made as records
from tests.plugin import DATA, Eeio
from tests.processes import ran

from eeio.errors import EeioError
from eeio.files import inputs, typed
from eeio.machine.undo import UndoJournal
from eeio.measure.campaign.invocation import invoke
from eeio.measure.campaign.runner import _storable
from eeio.pts import composite
from eeio.record.store import Store, load
from eeio.traces import darshan

Rejected = Callable[..., str]


@pytest.fixture
def rejected(eeio: Eeio) -> Rejected:
    """Runs a command that must be refused; what it said."""

    def run(*arguments: str, code: int | tuple[int, ...] = 2, **options: object) -> str:
        done = eeio(*arguments, **options, code=None)
        codes = code if isinstance(code, tuple) else (code,)
        assert done.returncode in codes, (done.returncode, done.stderr)
        assert "Traceback" not in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        return done.stderr.strip()

    return run


# --- protocol files -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("repetitions: 2", "repetitions: -3"),
        ("repetitions: 2", "repetitions: .inf"),
        ("repetitions: 2", "repetitions: true"),
        ("repetitions: 2", "repetitions: 100000000000"),
        ("settle_s: 0", "settle_s: -1"),
        ("settle_s: 0", "settle_s: .nan"),
        ("idle_s: 0", "idle_s: 1e+11"),
        ("idle_s: 0", "idle_s: 2001-99-99"),
        ("presets:", "- presets:"),
        ("presets:", "presets: 5 #"),
        ("is_measurement: false", "is_measurement: 5"),
    ],
)
def test_a_protocol_that_cannot_be(home: Path, rejected: Rejected, old: str, new: str) -> None:
    suite = home / "suites/odd"
    shutil.copytree(DATA / "suites/dummy-suite", suite)
    text = (suite / "protocol.yaml").read_text()
    (suite / "protocol.yaml").write_text(text.replace(old, new))
    message = rejected("plan", str(suite), "--directory", str(home / "target"))
    assert str(suite / "protocol.yaml") in message


def test_presets_that_are_no_text(home: Path, rejected: Rejected) -> None:
    profile = home / "profiles/eeio-dummy-1.0.0"
    shutil.copytree(DATA / "profiles/eeio-dummy-1.0.0", profile)
    (profile / "presets.conf").write_bytes(b"quick sleep_s=0.1\nstandard sleep_s=\xff\n")
    message = rejected(
        "plan", "dummy-suite", "--directory", str(home / "target"),
        environment={"EEIO_TEST_PROFILES": str(profile.parent)},
    )  # fmt: skip
    assert "presets.conf: line 2: not UTF-8" in message


@pytest.mark.parametrize(
    "pair",
    ["passes_written=abc", "passes_written=-1", "parallel_pause_s=nan", "memory_multiple=inf",
     "memory_multiple=1e300", "runtime_s=1e300", "runtime_s=nan", "file_size=-1", "file_size=1e9"],
)  # fmt: skip
@pytest.mark.parametrize("command", ["plan", "run"])
def test_presets_that_cannot_be(home: Path, rejected: Rejected, pair: str, command: str) -> None:
    profile = home / "profiles/eeio-dummy-1.0.0"
    shutil.copytree(DATA / "profiles/eeio-dummy-1.0.0", profile)
    (profile / "presets.conf").write_text(f"standard sleep_s=0.1 {pair}\n")
    message = rejected(
        command, "dummy-suite", "--directory", str(home / "target"), "--meter", "none",
        environment={"EEIO_TEST_PROFILES": str(profile.parent)},
    )  # fmt: skip
    assert pair.partition("=")[0] in message


# --- imports --------------------------------------------------------------------------------------


def mapped(home: Path, rejected: Rejected, code: int | tuple[int, ...] = (1, 2)) -> str:
    return rejected(
        "import", "runs", "--map", str(home / "map.yaml"), str(home / "files"), code=code
    )


@pytest.fixture
def folder(home: Path) -> Path:
    (home / "files").mkdir()
    made.write(home / "files").rename(home / "map.yaml")
    return home / "files"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("table: runs.csv", "table: /etc/passwd", "in the folder"),
        ("table: runs.csv", "table: ../runs.csv", "in the folder"),
        ("\n  name: board", "\n  name: ../x", "campaigns/0: campaign name"),
        ("scale: 10", "scale: .inf", "scale"),
        ("divide: 2", "divide: 0", "divide"),
        ("period_s: 0.5", "period_s: 0.5\n    format: " + "%d" * 51, "format"),
        ("title: Made by hand", "title: 2001-99-99", "not YAML"),
        ("title: Made by hand", "title: [[[[[[", "not YAML|nested"),
        ("kernel: '6.1'", "kernel: 6.1", "kernel"),
    ],
)
def test_maps_that_cannot_be(
    home: Path, folder: Path, rejected: Rejected, old: str, new: str, message: str
) -> None:
    text = (home / "map.yaml").read_text()
    assert old in text
    (home / "map.yaml").write_text(text.replace(old, new, 1))
    output = mapped(home, rejected)
    assert "map.yaml" in output
    assert re.search(message, output)


def test_a_map_that_is_no_text(home: Path, folder: Path, rejected: Rejected) -> None:
    (home / "map.yaml").write_bytes(b"title: a\ncampaigns: \xff\n")
    assert "map.yaml: line 2: not UTF-8" in mapped(home, rejected)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"op;kb;cache;rep;rate;bytes;s\n\xff;1;1;1;1;1;1\n", "line 2: not UTF-8"),
        (b"op;kb;cache;rep;rate;bytes;s\n" + b"x" * 140_000 + b";1;1\n", "line 2 is longer"),
        (b'op;kb;cache;rep;rate;bytes;s\n"' + b"x;\n" * 60_000, "runs.csv"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be(
    home: Path, folder: Path, rejected: Rejected, content: bytes, message: str
) -> None:
    (folder / "runs.csv").write_bytes(content)
    output = mapped(home, rejected)
    assert "runs.csv" in output and message in output


@pytest.mark.parametrize(
    "row",
    ["write;32;0;1;1000000;2000000;-2.0", "write;32;0;1;1000000;-5;2.0",
     "write;32;0;1;1e300;5;2.0", "write;32;0;1;inf;5;2.0"],
)  # fmt: skip
def test_a_row_that_cannot_be_is_an_invalid_run(
    home: Path, folder: Path, eeio: Eeio, row: str
) -> None:
    (folder / "runs.csv").write_text(made.RUNS.replace(made.RUNS.splitlines()[1], row))
    done = eeio("import", "runs", "--map", str(home / "map.yaml"), str(folder), "--name", "x")
    runs = load(home / "data/eeio/results/x-board").runs
    bad = next(run for run in runs if run.repetition == 1)
    assert bad.validity and not bad.phases
    assert "the run is invalid" in done.stdout


def test_a_repetition_below_zero_is_left_out(home: Path, folder: Path, eeio: Eeio) -> None:
    (folder / "runs.csv").write_text(made.RUNS + "write;32;0;-1;1000000;2000000;2.0\n")
    done = eeio("import", "runs", "--map", str(home / "map.yaml"), str(folder), "--name", "x")
    assert "runs.csv:4: left out: repetition" in done.stdout
    assert len(load(home / "data/eeio/results/x-board").runs) == 2


@pytest.mark.parametrize("name", ["../../x", "a/b", "", "-x", "a b", os.fsdecode(b"a\xff")])
def test_an_import_stays_in_the_results_folder(
    home: Path, folder: Path, rejected: Rejected, name: str
) -> None:
    if name:
        message = rejected("import", "runs", "--map", str(home / "map.yaml"), str(folder),
                       f"--name={name}")  # fmt: skip
        assert "campaign name" in message
    message = rejected("import", str(DATA / "pts/10.8.6/random.xml"), f"--name={name}")
    assert "campaign name" in message
    assert not list((home / "data").rglob("*.jsonl"))


def test_names_in_invalid_utf8(home: Path, rejected: Rejected) -> None:
    name = os.fsdecode(b"a\xffb")
    run = ("run", "dummy-suite", "--directory", str(home / "target"), "--name", name)
    for arguments in (run, ("resume", name), ("report", name), ("export", "pts", name)):
        assert "campaign name" in rejected(*arguments)


def test_an_export_stays_here(home: Path, eeio: Eeio, tmp_path: Path) -> None:
    eeio("import", str(DATA / "pts/10.8.6/random.xml"), "--name", "mine")
    path = home / "data/eeio/results/mine/campaign.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "name": "../../out"}))
    assert "-o" in eeio("export", "pts", "mine", code=2).stderr
    assert not (tmp_path.parent / "out").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"energy_j":', '"energy_j": -1, "x":'),
        ('"energy_j":', '"energy_j": 1e999, "x":'),
        ('"energy_j":', '"energy_j": NaN, "x":'),
        ("<Result>", '<!DOCTYPE x [<!ENTITY a "b">]><Result>'),
        ('<?xml version="1.0"?>', '<?xml version="1.0" encoding="no-such"?>'),
        ('<?xml version="1.0"?>', '<?xml version="1.0" encoding="gbk"?>'),
    ],
)
def test_a_result_file_of_pts_that_cannot_be(
    home: Path, rejected: Rejected, old: str, new: str
) -> None:
    text = (DATA / "pts/10.8.6/random.xml").read_text()
    text = text.replace("&quot;", '"')
    assert old in text
    (home / "composite.xml").write_text(text.replace(old, new, 1))
    rejected("import", str(home / "composite.xml"), "--name", "x")
    assert not list((home / "data").rglob("*.jsonl"))


# --- several nodes, traces ------------------------------------------------------------------------

NODE = {
    "schema_version": 1, "duration_s": 2.0, "exit_code": 0, "node": "a",
    "readings": [{
        "meter": "rapl", "domain": "package", "kind": "measured", "power_w": 5.0,
        "energy_j": 10.0, "uncertainty_j": 0.5, "coverage": 1.0, "largest_gap_s": 0.1,
        "samples": 20, "lost": 0, "valid": True, "reasons": [],
    }],
}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"duration_s": 2.0', '"duration_s": 0'),
        ('"duration_s": 2.0', '"duration_s": NaN'),
        ('"duration_s": 2.0', '"duration_s": -1'),
        ('"energy_j": 10.0', '"energy_j": NaN'),
        ('"energy_j": 10.0', '"energy_j": 1e999'),
        ('"energy_j": 10.0', '"energy_j": true'),
        ('"readings": [', '"readings": ' + "[" * 5000),
        ('"readings": [', '"readings": 5, "x": ['),
    ],
)
def test_a_node_that_cannot_be(tmp_path: Path, rejected: Rejected, old: str, new: str) -> None:
    text = json.dumps(NODE)
    assert old in text
    (tmp_path / "a.json").write_text(text.replace(old, new, 1))
    assert "a.json" in rejected("meter", "sum", str(tmp_path / "a.json"))


def test_a_suite_that_is_no_text(home: Path, rejected: Rejected) -> None:
    suite = home / "suites/odd"
    shutil.copytree(DATA / "suites/dummy-suite", suite)
    for content in (b"\xff\xfe<", b'<?xml version="1.0" encoding="utf-7"?><x/>', b"<a>" * 5000):
        (suite / "suite-definition.xml").write_bytes(content)
        message = rejected("plan", str(suite), "--directory", str(home / "target"))
        assert "suite-definition.xml" in message


# --- a tool that misbehaves -----------------------------------------------------------------------


def shouting(tmp_path: Path, count: int) -> Path:
    out = tmp_path / "out"
    out.mkdir()
    program = (
        "import sys\n"
        "sys.stdout.write('begin\\n')\n"
        f"sys.stdout.write('x' * {count})\n"
        "sys.stdout.write('\\nend\\n')\n"
    )
    capture = invoke(
        [sys.executable, "-c", program], directory=out, home=tmp_path,
        environment=dict(os.environ), factors={}, timeout_s=60.0,
        journal=UndoJournal(),
    )  # fmt: skip
    assert capture.exit_code == 0
    kept = inputs.KEPT_HEAD_BYTES + inputs.KEPT_TAIL_BYTES
    assert capture.left_out == ({"stdout": count + 11 - kept} if count + 11 > kept else {})
    return out


@pytest.mark.parametrize("count", [0, 10**6, 40 << 20])
def test_of_long_output_both_ends_are_kept(home: Path, tmp_path: Path, count: int) -> None:
    data = (shouting(tmp_path, count) / "stdout.txt").read_bytes()
    assert data.startswith(b"begin\n") and data.endswith(b"\nend\n")
    assert len(data) < inputs.KEPT_HEAD_BYTES + inputs.KEPT_TAIL_BYTES + 100
    assert (b"bytes are left out here" in data) == (count == 40 << 20)


def test_a_campaign_outlives_its_parser(home: Path, tmp_path: Path) -> None:
    """The dummy's parser is `native`; here it fails as none should."""
    program = (
        "import sys; from eeio.record.tools import native\n"
        "def parse(capture): raise ZeroDivisionError('nobody thought of it')\n"
        "native.parse = parse\n"
        "from eeio.cli import main; sys.exit(main(sys.argv[1:]))"
    )

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return ran([sys.executable, "-c", program, *arguments], code=None)

    arguments = ("run", "dummy-suite", "--directory", str(home / "target"), "--meter", "none",
             "--name", "c")  # fmt: skip
    done = run(*arguments)
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    runs = load(home / "data/eeio/results/c").runs
    assert runs and all("ZeroDivisionError" in run.validity[0] for run in runs)
    assert all((home / "data/eeio/results/c" / run.raw / "stdout.txt").exists() for run in runs)
    records = home / "data/eeio/results/c/runs.jsonl"
    records.write_text("".join(records.read_text().splitlines(keepends=True)[:-1]))
    assert run("resume", "c").returncode == 3
    assert len(load(home / "data/eeio/results/c").runs) == len(runs)


@pytest.mark.parametrize(
    "change",
    [{"sync_s": float("inf")}, {"prepare_s": -1.0}, {"duration_s": float("nan")}],
)
def test_a_run_with_a_figure_that_cannot_be_is_kept_as_invalid(change: dict[str, float]) -> None:
    run = replace(records.run(0, (records.phase(1e6),)), **change)
    kept = _storable(run)
    typed.check(kept)
    assert not kept.phases and next(iter(change)) in kept.validity[0]
    good = records.run(0, (records.phase(1e6),))
    assert _storable(good) is good


# --- pipes for files, one damaged thing among others ----------------------------------------------


@pytest.mark.parametrize("name", ["campaign.json", "machine.json", "idle.json", "runs.jsonl"])
def test_a_pipe_in_a_campaign(home: Path, eeio: Eeio, rejected: Rejected, name: str) -> None:
    arguments = ("run", "dummy-suite", "--directory", str(home / "target"), "--meter", "none")
    for campaign in ("good", "piped"):
        eeio(*arguments, "--name", campaign)
    damaged = home / "data/eeio/results/piped" / name
    damaged.unlink()
    os.mkfifo(damaged)
    assert f"{damaged}: " in rejected("report", "piped")
    assert f"{damaged}: " in eeio("resume", "piped", code=2).stderr
    assert "  good: dummy-suite, 6 of 6 runs\n" in eeio("list", code=None).stdout


def test_pipes_that_a_user_names(home: Path, rejected: Rejected) -> None:
    os.mkfifo(home / "pipe")
    pipe = str(home / "pipe")
    for arguments in (
        ("import", "runs", "--map", pipe, str(home)),
        ("record", "trace", "--read", pipe),
        ("meter", "sum", pipe),
        ("record", "journal", "--read", pipe),
        ("record", "journal", "--counters", pipe),
    ):
        assert "a pipe or a device" in rejected(*arguments, code=(1, 2))


def test_a_pipe_for_a_definition(tmp_path: Path) -> None:
    for read in (composite.pts_descriptions, composite.pts_app_version):
        for name in ("results-definition.xml", "test-definition.xml"):
            (tmp_path / name).unlink(missing_ok=True)
            os.mkfifo(tmp_path / name)
        with pytest.raises(EeioError, match="a pipe or a device"):
            read(tmp_path)


def test_a_pipe_for_darshan_s_log(tmp_path: Path) -> None:
    pytest.importorskip("darshan", reason="PyDarshan is not installed")
    os.mkfifo(tmp_path / "a.darshan")
    with pytest.raises(EeioError, match="a pipe or a device"):
        darshan.read(tmp_path / "a.darshan")


@pytest.mark.parametrize("kind", ["suites", "test-profiles"])
def test_a_damaged_definition_hides_no_other(home: Path, eeio: Eeio, kind: str) -> None:
    definition = "suite-definition.xml" if kind == "suites" else "test-definition.xml"
    folder = home / kind / "eeio-odd-1.0.0"
    folder.mkdir(parents=True)
    (folder / definition).write_text("<a>")
    variable = "EEIO_" + kind.upper().replace("-", "_")
    added = {variable: f"{folder.parent}:{os.environ[variable]}"}
    listed = eeio("list", environment=added)
    assert f"  eeio-odd-1.0.0: unreadable: {folder / definition}" in listed.stdout
    assert "dummy-suite: Dummy suite" in listed.stdout and "eeio-dummy-1.0.0" in listed.stdout
    assert "there are: dummy-suite" in eeio("plan", "no-such", environment=added, code=2).stderr
    eeio("doctor", environment=added)


@pytest.mark.parametrize("option", ["--repetitions=1000000000", "--seed=" + "9" * 80, "--seed=-5"])
def test_numbers_that_no_campaign_contains(home: Path, eeio: Eeio, option: str) -> None:
    done = eeio.plan("dummy-suite", option, code=2)
    assert "an integer" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("suite_title",), None), (("protocol", "study"), 5),
        (("experiments", 0, "variant"), 1.5), (("experiments", 0, "variants"), "ext4"),
        (("experiments", 0, "description"), None), (("experiments", 0, "profile"), {"a": 1}),
        (("experiments", 0, "experiment_id"), None), (("experiments", 0, "file_bytes"), -1),
        (("experiments", 0, "factors"), {"a": 1}), (("options", "seed"), "x"),
        (("options", "meters"), [5]), (("disks",), [5]),
    ],
)  # fmt: skip
def test_a_campaign_file_of_other_types(
    home: Path, eeio: Eeio, rejected: Rejected, place: tuple[str | int, ...], value: object
) -> None:
    """None: the key is gone. What every command relies on is asked where the file is read."""
    made_complete = Store(home / "data/eeio/results/c")
    made_complete.create(records.design("c", 1))
    made_complete.write_machine(records.MACHINE)
    path = made_complete.folder / "campaign.json"
    body = json.loads(path.read_text())
    part = body
    for key in place[:-1]:
        part = part[key]
    if value is None:
        del part[place[-1]]
    else:
        part[place[-1]] = value
    path.write_text(json.dumps(body))
    for arguments in (("report", "c", "--format", "html"), ("export", "pts", "c"), ("resume", "c")):
        assert f"{path}: not as eeio writes it: " in rejected(*arguments)
    assert "  c: unreadable: " in eeio("list").stdout


def test_a_runtime_in_a_campaign_file_that_is_none(home: Path, rejected: Rejected) -> None:
    place = Store(home / "data/eeio/results/c")
    design = records.design("c", 1)
    planned = replace(
        design.experiments[0], profile="eeio-dummy-1.0.0", factors={"runtime_s": "$x$"}
    )
    place.create(replace(design, experiments=(planned,)))
    assert "runtime_s" in rejected("resume", "c")
