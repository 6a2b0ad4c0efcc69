"""PTS result files: what PTS wrote is read, what we write reads back, attacks are refused."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plugin import InProcess

from eeio import paths
from eeio.analysis.characterization import characterize
from eeio.cli import main
from eeio.errors import SchemaError
from eeio.files import inputs
from eeio.pts import composite
from eeio.pts.composite import Result, ResultEntry, ResultFile, System
from eeio.pts.trial import with_reported
from eeio.pts.write import result_file
from eeio.record import store
from eeio.record.run import Durable

DATA = Path(__file__).parents[2] / "data" / "pts" / "10.8.6"
CAMPAIGNS = Path(__file__).parents[2] / "data" / "campaigns"
PROFILES = Path(__file__).parents[3] / "test-profiles"


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    return tmp_path / "xdg" / "eeio" / "results"


@pytest.mark.parametrize("name", ["native.xml", "random.xml"])
def test_what_pts_wrote_is_read_completely(name: str) -> None:
    file = composite.read(DATA / name)
    assert file.test_client == "Phoronix Test Suite v10.8.6"
    assert file.environment["EEIO_PRESET"] == "quick"
    assert [system.identifier for system in file.systems] == ["eeio quick"]
    scales = {result.scale for result in file.results}
    assert {"MB/s", "W", "J", "MB/J", "IOPS", "us"} == scales
    hashes = {result.comparison_hash for result in file.results}
    for result in file.results:
        if result.scale in ("J", "MB/J"):
            assert result.parent in hashes, "our hash is the one that PTS's module stored"


@pytest.mark.parametrize("name", ["native.xml", "random.xml"])
def test_what_we_write_reads_back(name: str) -> None:
    file = composite.read(DATA / name)
    assert composite.parse(composite.render(file).encode()) == file


def test_values_of_the_trials_in_their_order() -> None:
    file = composite.read(DATA / "random.xml")
    bandwidth = next(r for r in file.results if r.scale == "MB/s")
    entry = bandwidth.entries[0]
    assert len(entry.values) == len(entry.run_times_s) == 3
    assert float(entry.value) == pytest.approx(sum(entry.values) / 3, rel=1e-4)
    assert ResultEntry("x", "12.5").values == (12.5,)
    assert ResultEntry("x", "", "").values == ()
    assert ResultEntry("x", "a", "1:b").values == ()


BOMB = b"""<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>
<PhoronixTestSuite>&c;</PhoronixTestSuite>"""
OUTSIDE = b"""<?xml version="1.0"?>
<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><PhoronixTestSuite>&e;</PhoronixTestSuite>"""
REMOTE = b'<!DOCTYPE x SYSTEM "http://127.0.0.1/x.dtd"><PhoronixTestSuite/>'


@pytest.mark.parametrize("attack", [BOMB, OUTSIDE, REMOTE])
def test_entities_and_document_types_are_rejected(attack: bytes) -> None:
    with pytest.raises(SchemaError, match="document type"):
        composite.parse(attack, "evil.xml")


def test_an_oversized_file_is_rejected_unread(tmp_path: Path) -> None:
    path = tmp_path / "composite.xml"
    with path.open("wb") as file:
        file.truncate(inputs.XML_BYTES + 1)
    with pytest.raises(SchemaError, match="64 MiB"):
        composite.read(path)


def test_a_deep_file_is_rejected() -> None:
    content = b"<PhoronixTestSuite>" + b"<a>" * 100_000
    with pytest.raises(SchemaError, match="deeper"):
        composite.parse(content)


@pytest.mark.parametrize("content", [b"", b"not xml", b"<html><body/></html>", b"\x00\x01"])
def test_other_files_are_rejected_by_name(content: bytes) -> None:
    with pytest.raises(SchemaError, match=r"^other\.xml: not"):
        composite.parse(content, "other.xml")


def test_json_that_is_none_is_rejected() -> None:
    content = (DATA / "native.xml").read_bytes().replace(b'{"test-run', b'{{"test-run', 1)
    with pytest.raises(SchemaError, match="JSON"):
        composite.parse(content)


@given(st.binary(max_size=200), st.integers(0, 5000))
def test_a_damaged_file_is_read_or_rejected(noise: bytes, place: int) -> None:
    content = (DATA / "native.xml").read_bytes()[:6000]
    with pytest.raises(SchemaError):
        composite.parse(content[:place] + noise)


@given(st.text(max_size=40), st.floats(1e-9, 1e12), st.text(max_size=40))
def test_any_text_survives_as_far_as_xml_can_hold_it(text: str, value: float, more: str) -> None:
    entry = composite.entry_of("system", [value, value], {"eeio": {"words": more}})
    result = Result("local/eeio-fio-1.0.0", "t", "1", text, text, "MB/s", "HIB", (entry,))
    system = System("system", text, "", "", "2026-01-01 00:00:00", "10.8.6")
    file = ResultFile("t", "2026-01-01 00:00:00", "c", text, {}, (system,), (result,))
    back = composite.parse(composite.render(file).encode())
    assert back.results[0].entries[0].own["words"] == more
    assert back.results[0].entries[0].values[0] == pytest.approx(value, rel=1e-5)
    kept = re.sub("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text)
    assert back.results[0].description == kept.replace("\r\n", "\n").replace("\r", "\n").strip()


def test_the_descriptions_that_pts_appends_name_the_phases() -> None:
    assert composite.pts_descriptions(PROFILES / "eeio-fio-1.0.0") == {
        "read": "Read Bandwidth",
        "write": "Write Bandwidth",
    }
    descriptions = composite.pts_descriptions(PROFILES / "eeio-iozone-1.0.0")
    assert descriptions["strided read"] == "Strided Read"
    assert composite.pts_descriptions(PROFILES / "eeio-metadata-1.0.0")["utime"] == "Utime"
    assert not any("children" in phase for phase in descriptions)


def rows(folder: Path) -> list[dict[str, object]]:
    """The characterization, without the campaign's name, floats to five digits."""
    body = [row.to_json() | {"campaign": ""} for row in characterize(store.load(folder))]
    text = json.dumps(body)
    return list(json.loads(text, parse_float=lambda word: float(f"{float(word):.4g}")))


def test_import_and_export_give_the_same_tables(results: Path, tmp_path: Path) -> None:
    assert main(["import", str(DATA / "random.xml"), "--name", "first"]) == 0
    assert main(["export", "first", "--pts", "-o", str(tmp_path / "out")]) == 0
    (system,) = composite.read(tmp_path / "out" / "composite.xml").systems
    assert "one random order of all runs (seed " in system.notes and "Power: " in system.notes
    assert main(["import", str(tmp_path / "out" / "composite.xml"), "--name", "second"]) == 0
    first, second = rows(results / "first"), rows(results / "second")
    assert first == second
    measured = [row for row in first if row["n"]]
    assert len(measured) == 2
    assert all(row["power_domain"] == "package" and row["n"] == 3 for row in measured)


@pytest.mark.parametrize("name", ["filesystems", "frequency", "chang", "mixed", "cluster"])
def test_every_exported_experiment_comes_back(
    results: Path, tmp_path: Path, name: str, in_process: InProcess
) -> None:
    """Of a file system, a frequency, a variant of ext4 each: PTS joins results that have the same
    title, arguments, description and scale."""
    out = tmp_path / "out"
    done = in_process("export", "pts", str(CAMPAIGNS / name), "-o", str(out))
    keys = [
        (result.title, result.arguments, result.description, result.scale)
        for result in composite.read(out / "composite.xml").results
    ]
    assert len(set(keys)) == len(keys)
    assert main(["import", "pts", str(out / "composite.xml"), "--name", "second"]) == 0
    first, second = store.load(CAMPAIGNS / name), store.load(results / "second")
    without_figure = {"lmbench"} if name == "mixed" else set()
    expected = [run for run in first.runs if run.experiment.tool not in without_figure]
    assert Counter(run.experiment for run in second.runs) == Counter(
        run.experiment for run in expected
    )
    assert ("not in the file" in done.err) == (len(expected) < len(first.runs))
    # Once more, with the labels that the import has read.
    again = [(r.arguments, r.description, r.scale) for r in result_file(second).results]
    assert len(set(again)) == len(keys)


def test_results_that_eeio_cannot_tell_apart_are_rejected_by_their_description(
    tmp_path: Path, in_process: InProcess
) -> None:
    file = composite.read(DATA / "random.xml")
    twice = replace(file, results=(*file.results, *file.results))
    path = tmp_path / "composite.xml"
    path.write_text(composite.render(twice))
    failed = in_process("import", "pts", str(path), "--name", "x", code=2)
    assert "two results of eeio quick are" in failed.err


def test_tests_with_the_same_factors_are_kept_apart_by_their_description(
    results: Path, tmp_path: Path
) -> None:
    description = "Type: Random Read - Block Size: 4KB - Disk Target: /mnt/{}"
    first, second = (
        composite.parse(upstream("pts/fio-2.1.0", description.format(drive), "100"))
        for drive in "ab"
    )
    other = replace(second.results[0], arguments="/mnt/b")
    path = tmp_path / "composite.xml"
    path.write_text(composite.render(replace(first, results=(*first.results, other))))
    assert main(["import", "pts", str(path), "--name", "x"]) == 0
    ids = Counter(run.experiment.id for run in store.load(results / "x").runs)
    assert len(ids) == 2 and len(set(ids.values())) == 1


def test_an_imported_campaign_keeps_order_and_idle_baseline(results: Path) -> None:
    assert main(["import", str(DATA / "random.xml"), "--name", "x"]) == 0
    campaign = store.load(results / "x")
    assert [run.order_index for run in campaign.runs] == list(range(6))
    starts = [run.started_monotonic_s for run in campaign.runs]
    assert starts == sorted(starts)
    assert {reading.domain for reading in campaign.idle} == {"package", "dram"}


def without_ours(folder: Path) -> Path:
    """The result file as plain PTS would have written it, without what our module adds."""
    text = (DATA / "metadata.xml").read_text()
    file = composite.parse(text.encode())
    results = tuple(
        replace(r, entries=tuple(
            replace(e, json={k: v for k, v in e.json.items() if k != "eeio"}) for e in r.entries
        ))
        for r in file.results if r.scale == "Files/s"
    )  # fmt: skip
    path = folder / "composite.xml"
    path.write_text(composite.render(replace(file, results=results)))
    return path


@pytest.mark.parametrize("plain", [False, True])
def test_rates_of_files_are_phases(results: Path, tmp_path: Path, plain: bool) -> None:
    """As `eeio run` records them: a rate, no bandwidth, and why; both ways."""
    source = without_ours(tmp_path) if plain else DATA / "metadata.xml"
    assert main(["import", str(source), "--name", "first"]) == 0
    assert main(["export", "first", "--pts", "-o", str(tmp_path / "out")]) == 0
    assert main(["import", str(tmp_path / "out" / "composite.xml"), "--name", "second"]) == 0
    assert rows(results / "first") == rows(results / "second")
    for run in store.load(results / "first").runs:
        assert [phase.name for phase in run.phases] == ["create", "stat", "utime", "delete"]
        for phase in run.phases:
            assert (phase.operation, phase.spatiality) == ("metadata", "none")
            assert phase.bandwidth_bytes_per_s is None
            assert phase.metrics["operations_per_s"] > 0.0
            # Of a trial with several phases plain PTS tells neither windows nor energy.
            assert (phase.start_s is None) == plain
    measured = [row for row in characterize(store.load(results / "first")) if row.experiment]
    assert len(measured) == 4
    for row in measured:
        assert row.n == 2 and row["bandwidth_bytes_per_s"] is None
        assert row.why("bandwidth_bytes_per_s") == "metadata operations move no data"
    out = composite.read(tmp_path / "out" / "composite.xml")
    theirs = composite.read(DATA / "metadata.xml")
    named = [[(r.description, r.scale) for r in f.results if r.scale == "Files/s"]
             for f in (out, theirs)]  # fmt: skip
    assert named[0] == named[1] and len(named[0]) == 4
    assert not any(result.scale == "MB/J" for result in out.results)


def test_experiments_of_pts_and_of_our_runner_have_the_same_ids(results: Path) -> None:
    """The ids hold the preset's sizes: what `eeio run` would give the same experiment."""
    from eeio.measure.profiles.suite import experiment_of

    assert main(["import", str(DATA / "native.xml"), "--name", "x"]) == 0
    factors = {
        "level": "filesystem", "operation": "read", "spatiality": "sequential",
        "request_size": "4m", "buffer": "off", "file_size": "256m", "runtime_s": "2",
    }  # fmt: skip
    ids = {run.experiment.id for run in store.load(results / "x").runs}
    assert experiment_of("fio", factors, "file", None).id in ids


def upstream(identifier: str, description: str, value: str) -> bytes:
    """A result file as plain PTS writes one, for upstream's own profiles."""
    hardware = "Processor: X (8 Cores / 16 Threads), Memory: 32GB"
    software = "OS: Debian 12, Kernel: 6.1 (x86_64)"
    system = System("pc", hardware, software, "", "2026-01-01 00:00:00", "10.8.6")
    entry = ResultEntry("pc", value, f"{value}:{value}", {"test-run-times": "60.1:60.2"})
    result = Result(identifier, "t", "3", "args", description, "MB/s", "HIB", (entry,))
    file = ResultFile("plain", "2026-01-01 00:00:00", "c", "", {}, (system,), (result,))
    return composite.render(file).encode()


def test_upstreams_fio_is_in_mib(results: Path, tmp_path: Path) -> None:
    description = (
        "Type: Random Read - Engine: Linux AIO - Direct: Yes - Block Size: 4KB - Job Count: 1 - "
        "Disk Target: Default Test Directory"
    )
    path = tmp_path / "composite.xml"
    path.write_bytes(upstream("pts/fio-2.1.0", description, "100"))
    assert main(["import", str(path)]) == 0
    campaign = store.load(results / "plain")
    run = campaign.runs[0]
    assert (run.experiment.tool, run.experiment.operation) == ("fio", "read")
    assert run.experiment.spatiality == "random"
    assert run.experiment.request_size_bytes == 4096
    assert run.experiment.cache.buffer == "off"
    assert run.phases[0].bandwidth_bytes_per_s == 100 * 2**20
    assert run.phases[0].energy == ()
    row = next(row for row in characterize(campaign) if row.n)
    assert row.measured is None
    assert row.why("power_w") is not None
    assert campaign.machine.logical_cpus == 16


def test_a_file_is_imported_once_and_its_phases_are_in_the_json(
    results: Path, in_process: InProcess
) -> None:
    arguments = ["import", str(DATA / "native.xml"), "--format", "json"]
    dry = json.loads(in_process(*arguments, "--dry-run", "--name", "x").out)
    assert dry["campaigns"] == ["x"] and not results.exists()
    assert json.loads(in_process(*arguments, "--name", "x").out) == dry
    stored = [phase for run in store.load(results / "x").runs for phase in run.phases]
    (report,) = dry["files"][0]["reports"]
    found = report["phases"]
    assert [one["bandwidth_bytes_per_s"] for one in found] == [
        phase.bandwidth_bytes_per_s for phase in stored
    ]
    assert [len(one["energy"]) for one in found] == [len(phase.energy) for phase in stored]
    assert json.loads(in_process(*arguments).out)["campaigns"] == ["x"]
    assert [path.name for path in results.iterdir()] == ["x"]


def test_upstreams_iozone(results: Path, tmp_path: Path) -> None:
    path = tmp_path / "composite.xml"
    description = "Record Size: 1MB - File Size: 8GB - Disk Test: Write Performance"
    path.write_bytes(upstream("pts/iozone-1.9.6", description, "50"))
    assert main(["import", str(path)]) == 0
    run = store.load(results / "plain").runs[1]
    assert (run.experiment.tool, run.experiment.operation) == ("iozone", "write")
    assert dict(run.experiment.arguments)["file_size"] == "8g"


def test_upstreams_tiobench(results: Path, tmp_path: Path) -> None:
    path = tmp_path / "composite.xml"
    description = "Test: Random Read - Size Per Thread: 32MB - Thread Count: 4"
    path.write_bytes(upstream("pts/tiobench-1.2.0", description, "50"))
    assert main(["import", str(path)]) == 0
    run = store.load(results / "plain").runs[0]
    assert (run.experiment.tool, run.experiment.operation) == ("tiobench", "read")
    assert (run.experiment.spatiality, run.experiment.processes) == ("random", 4)
    assert run.phases[0].bandwidth_bytes_per_s == 50 << 20


def test_files_without_our_results_and_names_that_exist_are_rejected(
    tmp_path: Path, in_process: InProcess
) -> None:
    path = tmp_path / "composite.xml"
    path.write_bytes(upstream("pts/compress-7zip-1.0.0", "", "1"))
    assert "pts/fio" in in_process("import", str(path), code=2).err
    assert main(["import", str(DATA / "native.xml"), "--name", "x"]) == 0
    assert "--name" in in_process("import", str(DATA / "random.xml"), "--name", "x", code=2).err
    assert main(["import", str(tmp_path / "none.xml")]) == 2
    assert main(["import", "pts", str(tmp_path / "none.xml")]) == 2
    assert main(["export", "x", "--pts", "-o", str(tmp_path / "o")]) == 0
    assert main(["export", "x", "--pts", "-o", str(tmp_path / "o")]) == 2
    assert main(["export", "nobody", "--pts"]) == 2


def test_a_write_is_exported_until_durable_and_comes_back_complete(
    results: Path, tmp_path: Path
) -> None:
    assert main(["import", str(DATA / "random.xml"), "--name", "first"]) == 0
    first = store.load(results / "first")
    lasts_s = 1000.0
    changed = []
    for old in first.runs:
        (phase,) = old.phases
        reading = replace(phase.energy[0], power_w=8.0, energy_j=8.0 * lasts_s)
        durable = Durable(lasts_s, 5e6, "syncfs", (reading,))
        written = replace(
            phase, name="write", operation="write", start_s=0.0, end_s=500.0, until_durable=durable
        )
        changed.append(replace(old, phases=(written,)))
    exported = result_file(replace(first, runs=tuple(changed)))
    for scale, value in (("MB/s", 5.0), ("W", 8.0), ("J", 8000.0), ("MB/J", 0.625)):
        shown = [
            observed
            for result in exported.results
            for entry in result.entries
            if result.scale == scale and "idle" not in result.title
            for observed in entry.values
        ]
        assert shown and set(shown) == {value}
    reported = next(
        entry.own["told"]
        for result in exported.results
        for entry in result.entries
        if "told" in entry.own
    )
    back = with_reported(replace(changed[0], phases=()), json.loads(json.dumps(reported[0])))
    assert back.phases[0].until_durable in [run.phases[0].until_durable for run in changed]


def test_several_results_of_one_title_are_all_imported(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], in_process: InProcess
) -> None:
    """As a cloud's sizes have it: large/threaded/composite.xml, small/threaded/composite.xml."""
    folder = tmp_path / "cloud"
    text = (DATA / "native.xml").read_text()
    for size in ("large", "medium", "small"):
        (folder / size).mkdir(parents=True)
        (folder / size / "composite.xml").write_text(text + f"<!-- {size} -->\n")
    done = in_process("import", str(folder), "--name", "cloud", "--dry-run", "--format", "json")
    planned = json.loads(done.out)["campaigns"]
    assert planned == ["cloud", "cloud-2", "cloud-3"]
    assert main(["import", str(folder), "--name", "cloud"]) == 0
    assert {"cloud", "cloud-2", "cloud-3"} <= set(paths.campaigns())
    capsys.readouterr()
    assert main(["import", str(folder), "--name", "cloud"]) == 0
    assert len(paths.campaigns()) == 3, "a second import adds nothing"
