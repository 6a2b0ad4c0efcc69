"""The work of a campaign, as a pilot sizes it."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.campaigns import records_in
from tests.plugin import Eeio
from tests.simulators import FakeRapl, FakeZone, ScriptedMeter

from eeio.measure.campaign import forecast, pilots
from eeio.measure.profiles.profile import Profile
from eeio.record.design import NotMeasured, Options, PlannedExperiment, Protocol
from eeio.record.run import CacheLayers, Durable, Experiment, Phase, Run
from eeio_power.delay import Delay
from eeio_power.meters import Channel

PRESETS = {
    "quick": {"file_size": "128m", "runtime_s": "2"},
    "standard": {"file_size": "1g", "grows": "file_size", "runtime_s": "20"},
}
PROFILE = Profile(Path("eeio-x-1.0.0"), "", "1.0.0", PRESETS)
PROTOCOL = Protocol(2, 0.0, 0.0, True, min_phase_s=2.0)
GIB = 1 << 30


def planned(volume: str = "", **factors: str) -> PlannedExperiment:
    experiment = Experiment(
        "filesystem", "x", "read", "sequential", 4096, CacheLayers("off"), "posix", 1, "file",
        tuple(sorted(factors.items())),
    )  # fmt: skip
    return PlannedExperiment(experiment, "eeio-x-1.0.0", factors, "x", volume, GIB)


def run(*lasted_s: float, validity: Sequence[str] = (), durable_s: float | None = None) -> Run:
    phases = tuple(
        Phase(
            name=f"p{k}", operation="read", spatiality="sequential", request_size_bytes=4096,
            bytes_moved=1, bandwidth_bytes_per_s=1.0, start_s=1.0, end_s=1.0 + s,
            window_source="test",
            until_durable=None if durable_s is None else Durable(1.0 + durable_s, 1.0, "test"),
        )
        for k, s in enumerate(lasted_s)
    )  # fmt: skip
    return Run(
        planned(file_size="1g").experiment, 0, 0, "standard", "", 0.0, sum(lasted_s) + 0.5, 0,
        phases, validity=tuple(validity), raw="",
    )  # fmt: skip


def sized(found: Run, what: PlannedExperiment | None = None, **changed: Any) -> pilots.Sized:
    what = what or planned(file_size="1g")
    tried = pilots.at_pilot_size(what, PROFILE, "standard")
    limits = {"least_s": 2.0, "most_bytes": 64 * GIB, "timeout_s": 1000.0, **changed}
    return pilots.sized(what, found, tried, "file_size", PROFILE, **limits)


def test_a_pilot_has_the_work_of_quick_and_the_factors_of_the_experiment() -> None:
    tried = pilots.at_pilot_size(
        planned(file_size="1g", runtime_s="20", x="1"), PROFILE, "standard"
    )
    assert tried.factors == {"file_size": "128m", "runtime_s": "2", "x": "1"}


@pytest.mark.parametrize(
    ("lasted_s", "size"),
    [
        ((0.25, 0.4), "1g"),  # 2 s at 1 GiB: enough
        ((0.125, 0.4), str(4 * GIB)),  # the shortest phase counts: 1 s, and half as much for luck
        ((0.01,), str(64 * GIB)),
    ],
)
def test_the_shortest_phase_sizes_the_work(lasted_s: tuple[float, ...], size: str) -> None:
    found = sized(run(*lasted_s))
    assert found.planned.factors["file_size"] == size
    assert found.short is None and found.too_slow is None
    assert dict(found.planned.experiment.arguments)["file_size"] == size, "another experiment"
    assert found.planned.file_bytes == (GIB if size == "1g" else int(size))
    assert found.planned.pilot is not None and "128m took" in found.planned.pilot


def test_a_write_lasts_until_it_is_durable() -> None:
    assert sized(run(0.01, durable_s=0.3)).planned.factors["file_size"] == "1g"


def test_room_bounds_the_work_and_the_line_is_reported() -> None:
    found = sized(run(0.01), most_bytes=3 * GIB)
    assert found.planned.factors["file_size"] == str(2 * GIB)
    assert found.short is not None and "less than 2 s" in found.short
    assert found.planned.experiment.id not in found.short, "it is named as it was planned"


def test_a_long_phase_next_to_a_short_one_does_not_grow_without_end() -> None:
    """As of metadata, whose files are created in a hundred times the time of a stat."""
    found = sized(run(0.01, 1.0))
    assert found.planned.factors["file_size"] == str(4 * GIB), "32 s of I/O a run, not 1000 s"
    assert found.short is not None and "60 s a run" in found.short


def test_where_nothing_more_fits_the_work_and_the_experiment_stay() -> None:
    found = sized(run(0.01), most_bytes=0)
    assert found.planned.experiment == planned(file_size="1g").experiment
    assert found.short is not None


def test_a_disk_that_is_too_slow_for_the_preset_is_one_line() -> None:
    found = sized(run(200.0))
    assert found.too_slow is not None and "\n" not in found.too_slow
    assert "file_size=1g would take 1600 s" in found.too_slow
    assert "take preset quick" in found.too_slow


def test_a_run_time_ends_what_a_slow_disk_does_not() -> None:
    assert sized(run(200.0), planned(file_size="1g", runtime_s="20")).too_slow is None


@pytest.mark.parametrize("found", [run(0.1, validity=["it failed"]), run()])
def test_a_pilot_of_no_use_leaves_the_work_and_is_reported(found: Run) -> None:
    left = sized(found)
    assert left.planned.factors["file_size"] == "1g"
    assert left.short is not None and left.planned.pilot is not None


def test_what_a_run_time_ends_shares_the_largest_file() -> None:
    """A file of another size would be written anew whenever they alternate."""
    timed = [planned(file_size="1g", runtime_s="20", x=str(k)) for k in range(3)]
    made = [sized(run(s), what).planned for s, what in zip((0.01, 1.0, 0.5), timed, strict=True)]
    untimed = sized(run(1.0), planned(file_size="1g")).planned
    left_out = NotMeasured(timed[0].experiment, "x")
    all_found = {str(n): one for n, one in enumerate([*made, untimed, left_out])}
    found = list(pilots.on_one_file(all_found).values())
    size = str(64 * GIB)
    for one in found[:3]:
        assert isinstance(one, PlannedExperiment)
        assert one.factors["file_size"] == dict(one.experiment.arguments)["file_size"] == size
        assert one.file_bytes == 64 * GIB
    assert found[3:] == [untimed, left_out]


def test_classes_grow_by_the_presets_steps() -> None:
    presets = {
        "quick": {"class": "W", "footprint": "22118400"},
        "standard": {"class": "A", "footprint": "419430400", "grows": "class"},
        "paper": {"class": "C", "footprint": "6802444800", "grows": "class"},
    }
    profile = replace(PROFILE, presets=presets)
    what = planned(**{"class": "A"})
    tried = pilots.at_pilot_size(what, profile, "standard")
    assert tried.factors["class"] == "W"
    limits = {"least_s": 2.0, "most_bytes": 64 * GIB, "timeout_s": 1000.0}
    found = pilots.sized(what, run(0.05), tried, "class", profile, **limits)  # type: ignore[arg-type]
    assert found.planned.factors["class"] == "C"
    assert found.planned.file_bytes == 6802444800


def test_what_is_fixed_does_not_grow() -> None:
    assert pilots.growing_factor(planned(file_size="1g"), PROFILE, "standard") == "file_size"
    assert pilots.growing_factor(planned(file_size="1073741824"), PROFILE, "standard") is None
    assert pilots.growing_factor(planned("ext4", file_size="1g"), PROFILE, "standard") is None
    assert pilots.growing_factor(planned(file_size="128m"), PROFILE, "quick") is None


def meter(quantity: str, period_s: float, accuracy: float = 0.05) -> ScriptedMeter:
    channel = Channel("c", "system", quantity, accuracy_relative=accuracy)  # type: ignore[arg-type]
    return ScriptedMeter((channel,), lambda: (1.0,), native_period_s=period_s, name=quantity)


def test_twenty_readings_of_the_slowest_meter_make_a_phase_longer() -> None:
    options = Options(preset="standard", device=None, seed=0, counter_rate_hz=100.0)
    assert pilots.least_phase_s(PROTOCOL, options, [meter("energy_j", 0.001)]) == 2.0
    slow = [meter("energy_j", 0.001), meter("power_w", 1.0)]
    assert pilots.least_phase_s(PROTOCOL, options, slow) == 20.0
    assert pilots.least_phase_s(replace(PROTOCOL, min_phase_s=None), options, slow) is None


def test_a_meter_resolves_twenty_readings_and_what_a_ranking_takes() -> None:
    rates_hz = (10.0, 100.0)
    assert forecast.resolvable_s(meter("energy_j", 0.001), rates_hz) == pytest.approx(0.2)
    assert forecast.resolvable_s(meter("power_w", 1.0), rates_hz) == pytest.approx(20.0)
    assert forecast.resolvable_s(meter("power_w", 1.0, 0.099), rates_hz) > 60.0
    assert forecast.resolvable_s(meter("power_w", 1.0, 0.2), rates_hz) == float("inf")


def test_a_meter_whose_means_hide_changes_needs_longer_phases() -> None:
    channel = Channel("c", "system", "power_w", accuracy_relative=0.01, delay=Delay(0.0, 10.0))
    long_mean = ScriptedMeter((channel,), lambda: (1.0,), native_period_s=1.0)
    assert forecast.resolvable_s(long_mean, (10.0, 100.0)) == pytest.approx(51.2, abs=0.1)


# --- a campaign --------------------------------------------------------------------------------


def _suite(home: Path, least_s: float) -> str:
    """A dummy whose work is the time that it sleeps: rounds of 0.1 s."""
    profile = home / "profiles/eeio-dummy-1.0.0"
    source = Path(__file__).parents[1] / "data"
    profile.mkdir(parents=True)
    for file in (source / "profiles/eeio-dummy-1.0.0").iterdir():
        text = file.read_text()
        if file.name == "eeio-dummy.sh":
            text = text.replace("cell=*)", "cell=* | rounds=*)")
            text = text.replace('sleep "$sleep_s"', 'for word; do case $word in rounds=*) '
                                'sleep_s=$(awk "BEGIN { print ${word#*=} / 10 }") ;; esac; done\n'
                                'sleep "$sleep_s"')  # fmt: skip
        if file.name == "presets.conf":
            text = "quick rounds=1\nstandard rounds=1 grows=rounds\n"
        (profile / file.name).write_text(text)
    suite = home / "suites/made"
    suite.mkdir(parents=True)
    definition = (source / "suites/dummy-suite/suite-definition.xml").read_text()
    head = definition.partition("  <Execute>")[0]
    entries = "".join(
        f"<Execute><Test>local/eeio-dummy-1.0.0</Test><Arguments>level=filesystem cell={cell}"
        f"{more}</Arguments><Description>{cell}</Description></Execute>"
        for cell, more in (("grows", ""), ("fixed", " rounds=2"))
    )
    (suite / "suite-definition.xml").write_text(f"{head}{entries}</PhoronixTestSuite>")
    (suite / "protocol.yaml").write_text(
        "presets:\n  standard: {repetitions: 2, settle_s: 0, idle_s: 0, is_measurement: true, "
        f"min_phase_s: {least_s}}}\n"
    )
    return str(suite)


def test_all_repetitions_have_the_work_of_the_pilot_and_the_fixed_stays(
    home: Path, eeio: Eeio, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = _suite(home, 0.3)
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(home / "profiles"))
    powercap = home / "powercap"
    where = ("--directory", str(home / "target"), "--meter", f"rapl,root={powercap},reader=no")
    with FakeRapl(powercap, [FakeZone("intel-rapl:0", "package-0", 1.0)], lambda _: 20.0):
        planned_ = eeio("plan", suite, *where, "--preset", "standard")
        done = eeio("run", suite, *where, "--name", "c", "--preset", "standard")
    assert "power by rapl: resolves phases of 0.2 s and more" in planned_.stdout
    assert "phases of 0.3 s and more, by a pilot" in planned_.stdout
    assert "phases of unknown length" in planned_.stdout
    (took,) = re.findall(r"a pilot of 1 took ([\d.]+) s", done.stderr)
    least = 0.3 * pilots._MARGIN / float(took)
    # A busy machine may take 0.3 s for the work of 0.1 s.
    rounds = 1 if float(took) >= 0.3 else 2 ** math.ceil(math.log2(least))
    folder = home / "data/eeio/results/c"
    design = json.loads((folder / "campaign.json").read_text())
    by_cell = {e["factors"]["cell"]: e for e in design["experiments"]}
    assert by_cell["fixed"]["factors"]["rounds"] == "2" and "pilot" not in by_cell["fixed"]
    assert by_cell["grows"]["factors"]["rounds"] == str(rounds) and "pilot" in by_cell["grows"]
    stored = records_in(folder)
    assert len(stored) == 4, "a pilot is no run"
    assert {r["experiment"]["arguments"]["rounds"] for r in stored} == {
        "2", by_cell["grows"]["factors"]["rounds"],
    }  # fmt: skip
    assert not (folder / "raw" / "pilot").exists()
    assert "pilot:" not in eeio("resume", "c").stderr
    report = eeio.json("report", "c")
    rows = [row for row in report["characterization"] if row["tool"]]
    # On a busy machine the fixed work lasts long enough, too.
    assert len(rows) == 2 and max(row["duration_s"]["median"] for row in rows) >= 0.3
    for row in rows:
        if "doubtful" in (row["ranked_reason"] or ""):
            continue  # the simulated counters were late: a busy machine
        is_short = "shorter than the requested 0.3 s" in (row["ranked_reason"] or "")
        assert is_short == (row["duration_s"]["median"] < 0.3), row["ranked_reason"]


def test_min_phase_overrides_the_suite(
    home: Path, eeio: Eeio, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = _suite(home, 0.3)
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(home / "profiles"))
    where = ("--directory", str(home / "target"), "--meter", "none", "--min-phase", "5")
    planned_ = eeio("plan", suite, *where, "--preset", "standard")
    assert "phases of 5 s and more, by a pilot" in planned_.stdout


@pytest.mark.slow
def test_an_adaptive_campaign_uses_the_work_that_an_earlier_pilot_found(
    home: Path, eeio: Eeio, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = _suite(home, 0.3)
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(home / "profiles"))
    arguments = (
        "run", suite, "--preset", "standard", "--adaptive", "--repetitions", "3", "--directory",
        str(home / "target"), "--meter", "none", "--precision", "30%", "--indifference", "40%",
    )  # fmt: skip
    first = eeio(*arguments, "--name", "a")
    assert "pilot: grows" in first.stderr, first.stderr
    again = eeio(*arguments, "--name", "b")
    assert "pilot: grows" not in again.stderr and "grows: as a pilot of" in again.stderr
    works = [
        {e["factors"]["rounds"] for e in json.loads(path.read_text())["experiments"]}
        for path in sorted((home / "data/eeio/results").glob("*/campaign.json"))
    ]
    assert works[0] == works[1], "the same work in both"
    longer = eeio(*arguments, "--name", "c", "--min-phase", "0.5", "--pilot", "stored", code=2)
    assert "least length of a phase was 0.3, is 0.5" in longer.stderr
    assert not (home / "data/eeio/results/c").exists(), "nothing was begun"
