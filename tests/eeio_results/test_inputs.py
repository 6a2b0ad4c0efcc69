"""Input that was once taken, or brought a traceback or a hang."""

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eeio.analysis.characterization import characterize
from eeio.comparison.cells import POWER, cells_of
from eeio.errors import EeioError, LimitError, SchemaError, ToolOutputError
from eeio.files import documents, inputs, typed
from eeio.pts import composite
from eeio.record import store, tools
from eeio.record.run import EnergyReading
from eeio.record.tools.capture import Capture
from eeio.traces import jbd2, strace
from eeio.units.sizes import parse_size
from eeio_parsers.btio import run as btio
from eeio_parsers.fio import run as fio
from tests.eeio_results import made

DATA = Path(__file__).parents[1] / "data"
PARSERS = DATA.parents[1] / "result-parsers/eeio_parsers"


def copied(tmp_path: Path, folder: str) -> Path:
    return Path(shutil.copytree(PARSERS / folder, tmp_path / "run"))


# --- what tools say -------------------------------------------------------------------------------


def changed_fio(tmp_path: Path, old: str, new: str) -> Path:
    folder = copied(tmp_path, "fio/outputs/3.33/read")
    text = (folder / "fio.json").read_text()
    assert old in text
    (folder / "fio.json").write_text(text.replace(old, new, 1))
    return folder


def fio_job(tmp_path: Path, key: str, value: Any) -> Path:
    folder = copied(tmp_path, "fio/outputs/3.33/read")
    body = json.loads((folder / "fio.json").read_text())
    body["jobs"][0]["read"][key] = value
    (folder / "fio.json").write_text(json.dumps(body))
    return folder


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("runtime", float("nan"), "nan"),
        ("runtime", float("inf"), "inf"),
        ("total_ios", -5, "total_ios"),
        ("io_bytes", True, "io_bytes"),
        ("io_bytes", 10**400, "digits"),
        ("bw", [[[[]]]] , None),
    ],
)  # fmt: skip
def test_fio_that_cannot_be(tmp_path: Path, key: str, value: Any, message: str | None) -> None:
    capture = Capture.load(fio_job(tmp_path, key, value))
    if message is None:
        assert tools.parse("fio", capture).phases
        return
    with pytest.raises(ToolOutputError, match=rf"fio\.json: .*{message}"):
        tools.parse("fio", capture)


def test_deep_json_of_a_tool_is_an_invalid_run(tmp_path: Path) -> None:
    folder = changed_fio(tmp_path, '"jobs" : [', '"jobs" : [' + "[" * 50_000)
    with pytest.raises(ToolOutputError, match="damaged or cut off: maximum recursion depth"):
        tools.parse("fio", Capture.load(folder))


def test_a_parser_that_fails_makes_the_run_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(capture: Capture) -> None:
        raise ZeroDivisionError("nobody thought of it")

    capture = Capture.load(copied(tmp_path, "fio/outputs/3.33/read"))
    monkeypatch.setattr(fio, "parse", fail)
    with pytest.raises(ToolOutputError, match=r"ZeroDivisionError.*nobody thought") as caught:
        tools.parse("fio", capture)
    assert str(capture.directory) in str(caught.value)


@pytest.mark.parametrize("stamp", ["1" * 140_000, ("1" * 12 + ".") * 10_000])
def test_long_digits_among_the_stamps_take_no_time(tmp_path: Path, stamp: str) -> None:
    """Quadratic: minutes."""
    folder = copied(tmp_path, "fio/outputs/3.33/read")
    (folder / "fio-start.txt").write_text(
        "\n".join(stamp[n : n + 60_000] for n in range(0, len(stamp), 60_000))
    )
    with pytest.raises(ToolOutputError, match="time stamps"):
        tools.parse("fio", Capture.load(folder))


def test_a_capture_that_is_none(tmp_path: Path) -> None:
    folder = copied(tmp_path, "fio/outputs/3.33/read")
    body = json.loads((folder / "capture.json").read_text())
    for key, value in (("stamps", [["stdout", 10**400, 1.0]]), ("exit_code", "x"), ("factors", 5)):
        (folder / "capture.json").write_text(json.dumps({**body, key: value}))
        with pytest.raises(ToolOutputError, match=r"capture\.json: not a capture"):
            Capture.load(folder)


def test_output_that_was_not_kept_completely_is_no_result(tmp_path: Path) -> None:
    folder = copied(tmp_path, "iozone/outputs/3.489/read")
    body = json.loads((folder / "capture.json").read_text())
    (folder / "capture.json").write_text(json.dumps({**body, "left_out": {"stdout": 12345}}))
    capture = Capture.load(folder)
    assert any("12345 bytes left out" in note for note in capture.notes)
    with pytest.raises(ToolOutputError, match="12345 bytes were not stored"):
        tools.parse("iozone", capture)


def test_an_original_btio_that_cannot_be() -> None:
    text = (PARSERS / "btio/outputs/3.3.1/S-4-simple.txt").read_text()
    with pytest.raises(ToolOutputError, match=r"BT-IO: |dumps of"):
        btio.parse_text(text.replace("(MB/sec) :         458.15", "(MB/sec) : 99999999999"))


@pytest.mark.parametrize("text", ["9" * 19, "9999999999g", "9" * 5000])
def test_a_size_that_cannot_be(text: str) -> None:
    with pytest.raises(EeioError, match="not a size"):
        parse_size(text)


# --- records --------------------------------------------------------------------------------------


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    runs = [made.run(number, (made.phase(1e6, (made.energy(12.5),)),)) for number in range(2)]
    made.stored(tmp_path / "c", runs, idle=[made.energy(5.0)])
    assert len(store.load(tmp_path / "c").runs) == 2
    return tmp_path / "c"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("experiment_id", "0123456789ab"),
        ("experiment", {**made.EXPERIMENT.to_json(), "processes": 64}),
        ("repetition", 2),
        ("order_index", 2),
        ("order_index", 0.0),
    ],
)
def test_a_record_of_another_run_than_the_planned_one(
    campaign: Path, key: str, value: object
) -> None:
    """Its bandwidth would stand in a row of other factors."""
    path = campaign / "runs.jsonl"
    first, second = path.read_text().splitlines()
    path.write_text(f"{json.dumps({**json.loads(first), key: value})}\n{second}\n")
    with pytest.raises(SchemaError, match=rf"runs\.jsonl:1: .*{key}.*campaign\.json"):
        store.load(campaign)


def test_an_order_of_experiments_that_are_not_there(campaign: Path) -> None:
    body = json.loads((campaign / "campaign.json").read_text())
    for place in (1, "0123456789ab"):
        (campaign / "campaign.json").write_text(json.dumps({**body, "order": [[place, 1, 0]]}))
        with pytest.raises(SchemaError, match=f"there is no experiment '{place}'"):
            store.load(campaign)
    (campaign / "campaign.json").write_text(json.dumps({**body, "order": [[0.0, 1, 0]]}))
    with pytest.raises(SchemaError, match=r"order/0/0: 0\.0 is not an integer"):
        store.load(campaign)


@pytest.mark.parametrize("value", ["NaN", "-5", "1e999", "true", "1" + "0" * 400, "[" * 5000])
def test_a_bandwidth_of_a_record_that_cannot_be(campaign: Path, value: str) -> None:
    path = campaign / "runs.jsonl"
    first, second = path.read_text().splitlines()
    wrong = second.replace('"bandwidth_bytes_per_s":1000000.0', f'"bandwidth_bytes_per_s":{value}')
    assert wrong != second
    path.write_text(f"{first}\n{wrong}\n")
    with pytest.raises(SchemaError, match=r"runs\.jsonl:[12]: not a run record"):
        store.load(campaign)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("machine.json", "hostname", 5),
        ("machine.json", "memory_bytes", "much"),
        ("machine.json", "missing", [1]),
        ("machine.json", "tools", [{}]),
        ("idle.json", "readings", [5]),
        ("idle.json", "readings", "x"),
        ("idle.json", "reason", 5),
        ("campaign.json", "options", 5),
        ("campaign.json", "experiments", [5]),
        ("campaign.json", "experiments", [{"experiment": {"level": "x"}}]),
        ("campaign.json", "order", [[1]]),
        ("campaign.json", "created_utc", "2001-99-99"),
        ("campaign.json", "name", None),
        ("campaign.json", "schema_version", True),
    ],
)
def test_a_file_of_a_campaign_with_wrong_types(
    campaign: Path, name: str, key: str, value: Any
) -> None:
    path = campaign / name
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(SchemaError, match=name):
        store.load(campaign)


def test_a_run_that_cannot_be_is_not_stored(campaign: Path) -> None:
    before = (campaign / "runs.jsonl").read_bytes()
    with pytest.raises(SchemaError, match="power_w"):
        store.Store(campaign).append(made.run(2, (made.phase(1e6, (made.energy(float("inf")),)),)))
    assert (campaign / "runs.jsonl").read_bytes() == before


# --- coverage -------------------------------------------------------------------------------------


def covered(coverage: float) -> EnergyReading:
    return replace(made.energy(10.0), coverage=coverage)


@pytest.mark.parametrize(("coverage", "ranked"), [(0.5, True), (0.49, False), (1.0, True)])
def test_a_window_of_which_little_was_observed_is_not_ranked(
    tmp_path: Path, coverage: float, ranked: bool
) -> None:
    made.stored(tmp_path / "c", [made.run(0, (made.phase(1e6, (covered(coverage),)),))])
    found = store.load(tmp_path / "c")
    row = next(row for row in characterize(found) if row.experiment is not None)
    (figures,) = row.domains
    assert figures["power_w"] is not None and figures["power_w"].median == 10.0
    assert (figures["efficiency_bytes_per_j"] is not None) == ranked
    assert ("49% of the window" in str(row.why("efficiency_bytes_per_j"))) == (not ranked)
    (cell,) = cells_of(found)
    assert bool(cell.n(POWER["system"])) == ranked
    assert ("49% of the window" in str(cell.why(POWER["system"]))) == (not ranked)


# --- traces, YAML, XML ----------------------------------------------------------------------------


def test_a_comma_in_a_name_that_strace_quotes(tmp_path: Path) -> None:
    path = tmp_path / "t.7"
    path.write_text(
        '1.000001 openat(AT_FDCWD</tmp>, "/tmp/a, b", O_RDWR) = 3</tmp/a, b> <0.1>\n'
        '1.500000 pwrite64(3</tmp/a, b>, "x, y"..., 4, 8) = 4 <0.1>\n'
        '1.600000 pwrite64(3</tmp/a, b>, "x"..., 4, {offset}) = 4 <0.1>\n'
        "1.700000 +++ exited with 0 +++\n".replace("{offset}", "12")
    )
    assert [event.offset for event in strace.read([path])] == [8, 12]
    path.write_text(path.read_text().replace("4, 12)", '"a, b")'))
    with pytest.raises(ToolOutputError, match=r"t\.7: .*no offset"):
        strace.read([path])


@pytest.mark.parametrize("damage", ["cut", "bits", "none"])
def test_a_damaged_gz(tmp_path: Path, damage: str) -> None:
    packed = (DATA / "journal/6.18/metadata-8/journal.gz").read_bytes()
    wrong = {
        "cut": packed[: len(packed) // 2],
        "bits": packed[:200] + b"\xff" * 100 + packed[300:],
        "none": b"no gzip",
    }[damage]
    (tmp_path / "journal.gz").write_bytes(wrong)
    with pytest.raises(ToolOutputError, match=r"journal\.gz"):
        jbd2.load(tmp_path / "journal.gz")


def test_a_long_line_in_a_packed_trace(tmp_path: Path) -> None:
    (tmp_path / "journal.gz").write_bytes(gzip.compress(bytes(10**7)))
    with pytest.raises(ToolOutputError, match="line 1 is longer"):
        jbd2.load(tmp_path / "journal.gz")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 2001-99-99", "not YAML"),
        ("[" * 100_000, "nested deeper"),
        ("a: &a [x, x]\nb: &b [" + ", ".join(["*a"] * 20_000) + "]\nc: [*b, *b, *b, *b]", "values"),
        ("{[a]: 1}", "not YAML"),
        ("a: !!python/object:os.system {}", "not YAML"),
        ("x" * (inputs.DEFINITION_BYTES + 1), "longer than"),
        ("a: \x07", "not YAML"),
        ("- " * 3000, "nested deeper"),
    ],
)
def test_yaml_that_is_rejected(text: str, message: str) -> None:
    with pytest.raises(LimitError, match=message):
        documents.parse_yaml(text)


@pytest.mark.parametrize("encoding", ["no-such", "gbk", "utf-7", "idna", "punycode", "rot13"])
def test_xml_in_an_encoding_that_none_is_in(encoding: str) -> None:
    content = f'<?xml version="1.0" encoding="{encoding}"?><PhoronixTestSuite/>'.encode()
    with pytest.raises(SchemaError, match=r"composite\.xml"):
        composite.parse(content)


def test_millions_of_results_are_rejected_soon() -> None:
    content = b"<PhoronixTestSuite>" + b"<Result/>" * 1_000_000 + b"</PhoronixTestSuite>"
    with pytest.raises(SchemaError, match="more than 500000 elements"):
        composite.parse(content)


@pytest.mark.parametrize(
    "change",
    [
        {"energy_j": -1e11},
        {"power_w": -101.0},
        {"uncertainty_j": -1.0},
        {"energy_j": float("inf")},
        {"coverage": 1.5},
        {"domain": "x"},
        {"samples": True},
        {"reasons": ("x", 5)},
        {"meter": None},
    ],
)
def test_what_is_no_reading_is_rejected(change: dict[str, Any]) -> None:
    with pytest.raises(LimitError):
        typed.check(replace(made.energy(5.0), **change))


def test_messages_about_long_input_have_an_end() -> None:
    assert len(str(EeioError("x" * 10**6 + " do this"))) < 2000
    assert str(EeioError("x" * 10**6 + " do this")).endswith("do this")


def test_keys_that_are_no_text() -> None:
    """An empty key is one, too."""
    body = documents.parse_yaml("a: {~: 1, b: [{5: x}, {true: y}]}\nc: d")
    assert list(documents.keys_of_no_text(body)) == [None, 5, True]
    assert list(documents.keys_of_no_text({"a": [{"b": 1}]})) == []
