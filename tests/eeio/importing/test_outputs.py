"""The outputs that a map names, one file per run."""

import json
from pathlib import Path

import pytest
from tests.plugin import PARSERS

from eeio.errors import EeioError
from eeio.exchange.importing import outputs, results
from eeio_parsers import formats

REAL = [
    ("fio-json", "fio/3.33/read/fio.json"),
    ("iozone", "iozone/3.489/write/stdout.txt"),
    ("iozone", "iozone/3.489/two-processes/stdout.txt"),
    ("bonnie", "bonnie/2.00a/direct/stdout.txt"),
    *(
        ("ior", f"ior/4.0.0/other/{name}.txt")
        for name in ("collective", "random-direct", "strided")
    ),
    ("fio", "fio/3.33/other/normal.txt"),
]


def _text(name: str) -> str:
    tool, _, output = name.partition("/")
    return (PARSERS / tool / "outputs" / output).read_text(errors="replace")


@pytest.mark.parametrize(("form", "name"), REAL)
def test_real_output_is_read_without_a_window(form: str, name: str) -> None:
    result = outputs.read(form, _text(name), name)
    assert result.phases and result.duration_s > 0
    assert any(phase.bandwidth_bytes_per_s for phase in result.phases)
    for phase in result.phases:
        # Bonnie++ gives no rate (`+++++`) of what was over too soon, and says so.
        assert phase.bytes_moved and (phase.bandwidth_bytes_per_s or phase.validity)
        assert phase.start_s is None and phase.end_s is None and phase.until_durable is None


@pytest.mark.parametrize(("form", "name"), REAL)
def test_cut_off_output_is_rejected_by_its_name(form: str, name: str) -> None:
    text = _text(name)
    with pytest.raises(EeioError, match=r"there\.txt"):
        outputs.read(form, text[: len(text) // 3], "there.txt")


def test_json_in_one_long_line_is_read() -> None:
    text = json.dumps(json.loads(_text("fio/3.33/read/fio.json")) | {"note": "x" * (1 << 16)})
    complete = outputs.read("fio-json", _text("fio/3.33/read/fio.json"), "a.json")
    assert outputs.read("fio-json", text, "a.json") == complete


@pytest.mark.parametrize("form", formats.names())
def test_another_tools_output_is_rejected(form: str) -> None:
    with pytest.raises(EeioError) as caught:
        outputs.read(form, "hello\n", "here.txt")
    assert "here.txt" in str(caught.value) and "/tmp/" not in str(caught.value)


def test_a_folder_of_fio_json_becomes_a_campaign(tmp_path: Path) -> None:
    from eeio.exchange.importing import mapping, runs

    for number in (1, 2):
        (tmp_path / f"seq-{number}.json").write_text(_text("fio/3.33/read/fio.json"))
    (tmp_path / "map.yaml").write_text(
        "title: t\nwords: {operation: {seq: {operation: read, spatiality: sequential}}}\n"
        "campaigns:\n- name: c\n  machine: {hostname: h, architecture: a, kernel: k}\n  tool: fio\n"
        "  factors: {level: filesystem}\n"
        "  runs: {outputs: '*.json', format: fio-json, name: '(?P<operation>\\w+)-"
        "(?P<repetition>\\d+)'}\n"
    )
    (campaign,) = runs.read(mapping.load(tmp_path / "map.yaml"), tmp_path).campaigns
    assert [run.valid for run in campaign.runs] == [True, True]
    assert campaign.runs[0].phases[0].bandwidth_bytes_per_s


# As mdtest 4.0.0 prints it (src/mdtest.c of IOR); the figures are made up.
MDTEST = """\
-- started at 01/02/2026 03:04:05 --

mdtest-4.0.0 was launched with 4 total task(s) on 1 node(s)
Command line used: mdtest '-n' '100' '-F' '-C' '-T'
4 tasks, 400 files

SUMMARY rate: (of 3 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation               2568.636       2500.000       2534.318         10.000
   File stat               :   9000.000       8000.000       8500.000        100.000
   File removal                   0.000          0.000          0.000          0.000
-- finished at 01/02/2026 03:04:09 --
"""


def test_mdtest_reports_the_mean_rate_of_what_it_tried() -> None:
    result = outputs.read("mdtest", MDTEST, "m.txt")
    assert {p.name: p.metrics["operations_per_s"] for p in result.phases} == {
        "file creation": 2534.318, "file stat": 8500.0,
    }  # fmt: skip
    assert {(p.operation, p.spatiality, p.bytes_moved) for p in result.phases} == {
        ("metadata", "none", 0)
    }


@pytest.mark.parametrize("end", ["-- finished", "   File creation", "SUMMARY"])
def test_mdtest_that_was_cut_off_is_rejected(end: str) -> None:
    with pytest.raises(EeioError, match=r"m\.txt: mdtest: (cut off before|no summary)"):
        outputs.read("mdtest", MDTEST[: MDTEST.index(end)], "m.txt")


def test_a_run_of_mdtest_that_failed_does_not_hide_the_others(tmp_path: Path) -> None:
    """As in the log of a script."""
    failed = (
        "-- started at 01/02/2026 03:05:00 --\n\n"
        "mdtest-4.0.0 was launched with 2 total task(s) on 1 node(s)\n"
        "Command line used: mdtest '-np' '2'\n"
        "01/02/2026 03:05:00: Process 0: FAILED in valid_tests, only specify the number of items\n"
    )
    path = tmp_path / "mdtest.txt"
    path.write_text(MDTEST + failed + MDTEST.replace("2534.318", "2600.5"))
    (one,) = results.found([path])
    assert one.rejected is None
    assert [report.phases[0].iops for report in one.reports] == [2534.318, 2600.5]
    assert all("1 other reports of the file are not read" in r.notes[0] for r in one.reports)


def test_summaries_of_mdtest_without_its_first_lines(tmp_path: Path) -> None:
    """As notes quote them. Their settings are unknown, so they are no repetitions."""
    table = MDTEST[MDTEST.index("SUMMARY") : MDTEST.index("-- finished")]
    table += "   Tree removal              9.889      9.889      9.889      0.000\n"
    path = tmp_path / "notes.md"
    path.write_text(f"It printed:\n```\n{table}```\nand later\n```\n{table}```\n{MDTEST}")
    (one,) = results.found([path])
    assert [(r.version, r.phases[0].iops, r.phases[0].jobs) for r in one.reports] == [
        (None, 2534.318, None), (None, 2534.318, None), ("4.0.0", 2534.318, 4),
    ]  # fmt: skip
    (campaign,) = results.campaigns([one], "x")
    assert {run.repetition for run in campaign.runs} == {1}


IO500 = PARSERS / "io500/outputs/02091cf"


def test_mdtest_without_its_last_line_is_complete_with_its_last_operation() -> None:
    """As notes quote it."""
    text = MDTEST[: MDTEST.index("-- finished")]
    if "Tree removal" not in text:
        text += "   Tree removal              9.889      9.889      9.889      0.000\n"
    quoted, complete = outputs.read("mdtest", text, "m.txt"), outputs.read("mdtest", MDTEST, "m")
    assert [p.metrics for p in quoted.phases[:2]] == [p.metrics for p in complete.phases[:2]]


def test_rates_of_mdtest_4_1_are_not_its_times() -> None:
    """It prints the time of each operation below, in rows of the same names."""
    text = (IO500 / "mdtest-easy-write.txt").read_text()
    for form in ("mdtest", "io500"):
        result = outputs.read(form, text, "m.txt")
        assert {p.name: p.metrics["operations_per_s"] for p in result.phases} == {
            "file creation": 20743.446, "tree creation": 6413.309,
        }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "operation", "spatiality", "size", "moved", "mib_per_s"),
    [
        ("ior-easy-write", "write", "sequential", 1 << 20, 128 << 20, 1660.35),
        ("ior-hard-read", "read", "strided", 47008, 2 * 200 * 47008, 5821),
        # Ended by a stonewall: not the 76 GiB that it was asked for.
        ("ior-rnd4K-easy-read", "read", "random", 4096, 10596728832, 10057),
    ],
)
def test_iors_reports_within_io500_have_no_summary(
    name: str, operation: str, spatiality: str, size: int, moved: int, mib_per_s: float
) -> None:
    result = outputs.read("io500", (IO500 / f"{name}.txt").read_text(), "i.txt")
    (phase,) = result.phases
    assert (phase.operation, phase.spatiality) == (operation, spatiality)
    assert (phase.request_size_bytes, phase.bytes_moved) == (size, moved)
    assert phase.bandwidth_bytes_per_s == pytest.approx(mib_per_s * 2**20)
    assert phase.includes_flush is (operation == "write")  # -e


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("blocksize", "no table"), ("\nResults:", "no table"), ("read      5821", "has no row"),
        ("0.003063", "of 10 figures in"),
    ],
)  # fmt: skip
def test_a_report_within_io500_that_was_cut_off_is_rejected(end: str, message: str) -> None:
    text = (IO500 / "ior-hard-read.txt").read_text()
    with pytest.raises(EeioError, match=rf"i\.txt: IOR: .*{message}"):
        outputs.read("io500", text[: text.index(end)], "i.txt")


def test_bytes_that_ior_reports_rounded_are_not_taken() -> None:
    text = (IO500 / "ior-hard-read.txt").read_text()
    rounded = text.replace("blocksize           : 47008 bytes", "blocksize           : 45.91 KiB")
    assert rounded != text
    (phase,) = outputs.read("io500", rounded, "i.txt").phases
    assert phase.bytes_moved is None and phase.bandwidth_bytes_per_s

    with pytest.raises(EeioError, match="the map says io500, but this is an output of fio"):
        outputs.read("io500", _text("fio/3.33/other/normal.txt"), "i.txt")


ELBENCHO = PARSERS / "elbencho/outputs/3.1-10"


@pytest.mark.parametrize(
    ("name", "phases"),
    [
        ("sequential", [("write", "write", "sequential", 1 << 20, 67108864, 934663844.0),
                        ("read", "read", "sequential", 1 << 20, 67108864, 1490281450.0)]),
        ("random-read", [("read", "read", "random", 4096, 33554432, 47952987.0)]),
        # What was written and what was read, together.
        ("mixed", [("mixed", "mixed", "random", 4096, 2457600 + 5931008, 28182193.0 + 68013026)]),
        ("files", [("mkdirs", "metadata", "none", None, 0, None),
                   ("write", "write", "sequential", 16384, 3276800, 502422569.0),
                   ("read", "read", "sequential", 16384, 3276800, 1882136703.0),
                   ("rmfiles", "metadata", "none", None, 0, None),
                   ("rmdirs", "metadata", "none", None, 0, None)]),
    ],
)  # fmt: skip
def test_elbenchos_phases_are_those_when_the_last_worker_was_done(
    name: str, phases: list[tuple[object, ...]]
) -> None:
    result = outputs.read("elbencho", (ELBENCHO / f"{name}.json").read_text(), "e.json")
    assert [
        (p.name, p.operation, p.spatiality, p.request_size_bytes, p.bytes_moved,
         p.bandwidth_bytes_per_s)
        for p in result.phases
    ] == phases  # fmt: skip


def test_repeated_phases_of_elbencho_are_numbered_and_rates_of_files_kept() -> None:
    text = (ELBENCHO / "files.json").read_text()
    result = outputs.read("elbencho", text * 2, "e.json")
    assert [phase.name for phase in result.phases][:2] == ["mkdirs 0", "write 0"]
    assert result.phases[-1].name == "rmdirs 1"
    assert result.phases[0].metrics == {"runtime_s": 0.001, "operations_per_s": 3384.0}
    assert result.phases[1].metrics["operations_per_s"] == 30665.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"phase_type": "WRITE"', "no result of a known tool"),
        ('{"phase_type": "WRITE", "last_done": {', "line 1: damaged or cut off"),
        (
            '{"phase_type": "SYNC", "config": {}, "last_done": {"elapsed_time_ms": "1"}}',
            "no result",
        ),
        ('{"phase_type": "S3ACL", "config": {}, "last_done": {"elapsed_time_ms": "1"}}', "S3ACL"),
        ('{"phase_type": "READ", "config": {}, "last_done": {"elapsed_time_ms": "-1"}}', "-1"),
        ('{"phase_type": "READ", "config": [], "last_done": []}', "line 1: damaged"),
    ],
)
def test_what_is_not_elbenchos_is_rejected(text: str, message: str) -> None:
    with pytest.raises(EeioError, match=f"e.json: .*{message}"):
        outputs.read("elbencho", text, "e.json")


def test_a_map_cannot_contradict_the_file(tmp_path: Path) -> None:
    """The file read sequentially; the map calls it a random read."""
    from eeio.exchange.importing import mapping, runs

    (tmp_path / "seq-1.json").write_text(_text("fio/3.33/read/fio.json"))
    (tmp_path / "map.yaml").write_text(
        "title: t\nwords: {operation: {seq: {operation: read, spatiality: random}}}\n"
        "campaigns:\n- name: c\n  machine: {hostname: h, architecture: a, kernel: k}\n  tool: fio\n"
        "  factors: {level: filesystem}\n"
        "  runs: {outputs: '*.json', format: fio-json,"
        " name: '(?P<operation>seq)-(?P<repetition>.)'}\n"
    )
    (campaign,) = runs.read(mapping.load(tmp_path / "map.yaml"), tmp_path).campaigns
    (run,) = campaign.runs
    assert "spatiality is random in the map and sequential in the file" in run.validity[0]
