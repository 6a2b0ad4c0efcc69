"""`--sweep`: values of a factor in the place of a suite's, each combination an experiment."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.plugin import Eeio
from tests.suites import written

from eeio.errors import RejectedError
from eeio.measure.campaign import plan as plans
from eeio.measure.campaign import sweep
from eeio.measure.profiles import suite as suites
from eeio.record.design import Options


def plan(home: Path, suite: str, *sweeps: str, preset: str = "paper", **more: object) -> plans.Plan:
    options = Options(
        suite=suite, preset=preset, directory=str(home), meters=("none",), device=None, seed=1,
        variants=("ext4",) if suite == "eeio-chang2014" else (), sweeps=sweeps, **more,  # type: ignore[arg-type]
    )  # fmt: skip
    return plans.make(options, suites.find(suite))


def factor(made: plans.Plan, tool: str, name: str) -> list[str]:
    return [p.factors[name] for p in made.experiments if p.experiment.tool == tool]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("threads=1..256", "1 2 4 8 16 32 64 128 256"),
        ("threads=3..24", "3 6 12 24"),
        ("threads=1,2,4", "1 2 4"),
        ("threads=2..8+2", "2 4 6 8"),
        ("threads=1..4,6,8..32", "1 2 4 6 8 16 32"),
        ("file_size=512k..4m", "512k 1m 2m 4m"),
        ("file_size=1m..9m+2m", "1m 3m 5m 7m 9m"),
        ("btio:class=A,B", "A B"),
        ("threads=8", "8"),
    ],
)
def test_values(text: str, values: str) -> None:
    assert " ".join(sweep.parse(text).values) == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("threads", "give FACTOR=VALUES"),
        ("=1", "give FACTOR=VALUES"),
        ("threads=", "give FACTOR=VALUES"),
        ("threads=1..6", "doubling from 1 does not meet 6"),
        ("threads=1..6+2", "steps of 2 from 1 does not meet 6"),
        ("threads=8..1", "must start above 0 and increase"),
        ("threads=0..8", "must start above 0 and increase"),
        ("threads=1..8+0", "must start above 0 and increase"),
        ("threads=1..many", "not a size"),
        ("threads=1,,2", "not a value"),
        ("threads=1,2,1", "repeated value"),
        ("threads=1..999999999+1", "more than 256 values"),
        ("threads=$(reboot)", "not a value"),
        ("threads=../..", "not a value"),
    ],
)
def test_what_is_no_sweep_is_rejected(text: str, message: str, eeio: Eeio) -> None:
    with pytest.raises(RejectedError, match="--sweep") as caught:
        sweep.parse(text)
    assert message in str(caught.value)


def test_threads_are_iozones_and_each_keeps_its_share_of_the_file(home: Path) -> None:
    made = plan(home, "eeio-chang2014", "threads=1..256")
    of = [p for p in made.experiments if p.experiment.tool == "iozone"]
    assert {p.experiment.processes for p in of} == {1, 2, 4, 8, 16, 32, 64, 128, 256}
    shares = {(p.experiment.request_size_bytes, p.file_bytes // p.experiment.processes) for p in of}
    # The paper's three: 128, 256 and 512 KiB a thread in 32, 64 and 128 KiB records.
    assert shares == {(32 << 10, 128 << 10), (64 << 10, 256 << 10), (128 << 10, 512 << 10)}
    # 3 shapes x 2 flushes x 9 numbers of threads, and none twice.
    assert len(of) == len({p.experiment.id for p in of}) == 54
    assert factor(made, "metadata", "processes") == ["4", "16", "32"]


def test_ranks_and_files_are_those_of_mpi_programs(home: Path) -> None:
    made = plan(home, "eeio-chang2014", "ranks=4,8", "files=1..4")
    of = [
        (p.factors["processes"], p.factors["files"])
        for p in made.experiments
        if p.experiment.tool == "metadata"
    ]
    assert of == [(ranks, files) for ranks in ("4", "8") for files in ("1", "2", "4")]
    assert set(factor(made, "iozone", "processes")) == {"16", "64", "256"}


def test_record_size_and_the_size_of_each_file(home: Path) -> None:
    made = plan(
        home, "eeio-chang2014", "record_size=32k,64k", "file_size_each=128k,512k", "threads=16"
    )
    of = {
        (p.experiment.request_size_bytes, p.factors["file_size"], p.factors["flush"])
        for p in made.experiments
        if p.experiment.tool == "iozone"
    }
    sizes = {(record, size) for record, size, _ in of}
    assert sizes == {(r << 10, s) for r in (32, 64) for s in ("2m", "8m")}
    assert len(of) == 8


def test_what_is_requested_is_run_though_the_preset_leaves_it_out(home: Path) -> None:
    assert "256" not in factor(plan(home, "eeio-chang2014", preset="quick"), "iozone", "processes")
    made = plan(home, "eeio-chang2014", "threads=256", preset="quick")
    assert set(factor(made, "iozone", "processes")) == {"256"}
    # What was not asked for is still left out: the flush, and 32 ranks.
    assert set(factor(made, "iozone", "flush")) == {"end"}
    assert factor(made, "metadata", "processes") == ["4", "16"]


def test_classes_and_ranks_of_bt_io_as_the_paper_ran_them(home: Path) -> None:
    made = plan(home, "eeio-panadero2012", "btio:class=B")
    (one,) = [p for p in made.experiments if p.experiment.tool == "btio"]
    assert (one.factors["class"], one.experiment.processes) == ("B", 4)
    assert one.file_bytes >= 1_697_932_800
    made = plan(home, "eeio-panadero2012", "btio:ranks=16")
    (one,) = [p for p in made.experiments if p.experiment.tool == "btio"]
    assert (one.factors["class"], one.experiment.processes) == ("C", 16)
    assert one.file_bytes == 6_802_444_800


def test_it_reports_the_hours_and_its_text_stands_in_the_campaign(home: Path, eeio: Eeio) -> None:
    def seconds(*arguments: str) -> float:
        done = eeio(
            "plan", "eeio-chang2014", "--directory", str(home), "--meter", "none", "--variant",
            "ext4", "--format", "json", *arguments,
        )  # fmt: skip
        assert done.stdout, done.stderr
        return float(json.loads(done.stdout)["expected_s"])

    assert seconds("--sweep", "threads=1..256") > 2 * seconds()


@pytest.mark.parametrize(
    ("sweeps", "message"),
    [
        (("clients=1..8",), "no experiment of this suite has clients; they have iozone:buffer"),
        (("fio:threads=1..8",), "no experiment of this suite has threads with fio"),
        (("threads=1..8", "processes=4"), "of one factor of iozone"),
        (("file_size=1g", "file_size_each=1m"), "of one factor of iozone"),
        (("threads=512",), "processes=512: give a whole number from 1 to 256"),
        (("record_size=1k",), "request_size=1k: give a multiple of 4k"),
        (("threads=1..256+1", "record_size=4k..256k"), "more than 4096 experiments"),
        (("buffer=off,maybe",), "buffer=maybe: give one of: on off"),
    ],
)
def test_what_cannot_be_swept_is_rejected_with_the_reason(
    home: Path, sweeps: tuple[str, ...], message: str
) -> None:
    with pytest.raises(RejectedError) as caught:
        plan(home, "eeio-chang2014", *sweeps)
    assert message in str(caught.value)


def test_a_sweep_of_4096_combinations_starts_no_program(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It started a shell for each of them."""
    arguments = (
        "level=filesystem operation=read spatiality=strided request_size=4k buffer=off "
        "processes=1 engine=libaio iodepth=1 stride=2"
    )
    suite = str(written(home / "suites/one", [("fio", arguments, "one")]))

    def started(*arguments: object, **_: object) -> None:
        raise AssertionError(f"started: {arguments}")

    monkeypatch.setattr(subprocess, "Popen", started)
    sweeps = ("processes=1..16+1", "iodepth=1..16+1", "stride=2..17+1")
    assert len(plan(home, suite, *sweeps, preset="quick").experiments) == 4096


def test_combinations_that_a_profile_rejects_are_left_out_with_its_message(home: Path) -> None:
    made = plan(home, "eeio-engines", "iodepth=1,4", preset="quick")
    reasons = {one.reason for one in made.not_measured}
    assert "eeio-fio: iodepth=4: engine=psync has one request at a time" in "\n".join(reasons)


def test_the_hold_of_another_preset(home: Path) -> None:
    protocol = plan(home, "eeio-chang2014", preset="standard", windows_of="paper").protocol
    assert protocol.study is not None
    assert protocol.study.window_us["iozone"] == 16_000 and not protocol.study.flush_first
    assert protocol.study.most_repetitions == 300  # standard's own
    with pytest.raises(RejectedError, match="--windows-of belongs to"):
        plan(home, "eeio-panadero2012", windows_of="quick")
