"""Adaptive campaigns: who is repeated, when the machine has settled, the same after any kill."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.campaigns import killed, records
from tests.eeio_results.made import MACHINE, WRITE, design, energy, run, written
from tests.plugin import DATA, Eeio
from tests.simulators import FakeRapl

from eeio.comparison.precision import half_width
from eeio.machine.filesystem import BlockDevice
from eeio.measure.campaign import rounds, settling
from eeio.measure.campaign.runner import store_lock
from eeio.record.design import AdaptiveProtocol, PlannedExperiment
from eeio.record.run import CacheLayers, Experiment, Phase, Run
from eeio.record.store import Campaign, load
from eeio_power.monitor import PowerMonitor
from eeio_power.reading import EnergyReading

RULE = AdaptiveProtocol(most_repetitions=10, most_whole=6, precision=0.03)
OTHER = replace(WRITE, request_size_bytes=1 << 20)
THIRD = replace(WRITE, request_size_bytes=1 << 22)


def phase(mb_per_s: float, watts: float) -> Phase:
    """Of a write whose bandwidth until durable is that."""
    found = written(watts)
    durable = found.until_durable
    assert durable is not None
    return replace(
        found,
        until_durable=replace(durable, bandwidth_bytes_per_s=1e6 * mb_per_s),
    )


def campaign(
    values: dict[Experiment, Sequence[tuple[float, float]]], broken: Sequence[Experiment] = ()
) -> Campaign:
    """Repetitions as (MB/s, W), in rounds."""
    runs: list[Run] = []
    for n in range(max(len(v) for v in values.values())):
        for experiment, of_one in values.items():
            if n < len(of_one):
                validity = ("it failed",) if experiment in broken else ()
                runs.append(
                    run(len(runs), (phase(*of_one[n]),), experiment, validity)
                    if not validity
                    else run(len(runs), (), experiment, validity)
                )
    made = design("c", len(runs), *values)
    timed = tuple(replace(p, factors={"runtime_s": "20"}) for p in made.experiments)
    made = replace(made, experiments=timed)
    return Campaign(Path("c"), made, MACHINE, (energy(30.0),), None, tuple(runs))


def sizes(experiments: Sequence[PlannedExperiment]) -> list[int | None]:
    return [planned.experiment.request_size_bytes for planned in experiments]


STEADY = [(100.0, 50.0), (100.5, 50.1), (99.5, 49.9), (100.2, 50.0)]
SCATTERED = [(100.0, 60.0), (120.0, 60.0), (90.0, 60.0), (110.0, 60.0)]


def test_what_is_not_known_well_enough_goes_on_with_the_anchors() -> None:
    cold = [(mb, 40.0) for mb, _ in STEADY]
    found = rounds.next_round(campaign({WRITE: STEADY, OTHER: SCATTERED, THIRD: cold}), RULE)
    assert found.anchors == (OTHER.id, THIRD.id), "the highest and the lowest power"
    assert sizes(found.experiments) == [OTHER.request_size_bytes, THIRD.request_size_bytes]
    assert set(found.stopped) == {WRITE.id, THIRD.id}
    assert found.stopped[WRITE.id].startswith("precise enough after 4: ")


def test_anchors_are_short_runs_where_there_are_any() -> None:
    """A whole run has the highest power; it costs three short ones."""
    short, other = (replace(e, cache=CacheLayers("off")) for e in (OTHER, THIRD))
    hot = [(mb, 90.0) for mb, _ in STEADY]
    cold = [(mb, 40.0) for mb, _ in STEADY]
    found = rounds.next_round(campaign({WRITE: hot, short: SCATTERED, other: cold}), RULE)
    assert found.anchors == (short.id, other.id)


def test_all_known_is_the_end() -> None:
    found = rounds.next_round(campaign({WRITE: STEADY, OTHER: STEADY}), RULE)
    assert found.experiments == () and set(found.stopped) == {WRITE.id, OTHER.id}


@pytest.mark.parametrize("failed", [0, 1])
def test_three_values_are_too_few_however_well_they_agree(failed: int) -> None:
    """Of four repetitions where one failed, and of three."""
    made = campaign({WRITE: STEADY[: 3 + failed]})
    runs = tuple(
        replace(one, validity=("it failed",)) if place < failed else one
        for place, one in enumerate(made.runs)
    )
    found = rounds.next_round(replace(made, runs=runs), RULE)
    assert sizes(found.experiments) == [WRITE.request_size_bytes] and found.stopped == {}


def test_power_counts_as_well_as_bandwidth() -> None:
    drifting = [(100.0 + 0.1 * k, 50.0 * (1 + 0.08 * k)) for k in range(4)]
    assert rounds.next_round(campaign({WRITE: drifting}), RULE).experiments


@pytest.mark.parametrize(("cache", "most"), [(CacheLayers("off"), 10), (CacheLayers("on"), 6)])
def test_the_most_repetitions_end_it(cache: CacheLayers, most: int) -> None:
    experiment = replace(WRITE, cache=cache)
    values = (SCATTERED * 3)[:most]
    before = rounds.next_round(campaign({experiment: values[:-1]}), RULE)
    assert before.experiments
    after = rounds.next_round(campaign({experiment: values}), RULE)
    assert after.experiments == ()
    assert after.stopped[experiment.id].startswith(f"the most repetitions, {most}: ")


def test_a_broken_experiment_is_not_tried_without_end() -> None:
    found = rounds.next_round(campaign({WRITE: STEADY}, broken=[WRITE]), RULE)
    assert found.experiments == () and found.stopped[WRITE.id] == "no figure of 4 runs"


def test_what_has_stopped_is_not_requested_again() -> None:
    """An anchor runs on; what it gives must not bring it back by chance."""
    made = campaign({WRITE: SCATTERED})
    made = replace(made, design=replace(made.design, stopped={WRITE.id: "precise enough"}))
    assert rounds.next_round(made, RULE).experiments == ()


def test_the_half_width_is_that_of_the_mean_logarithm() -> None:
    assert half_width([1.0]) is None and half_width([1.0, 0.0]) is None
    # sd of the logs 0.0953, t(0.975, 1) = 12.706
    assert half_width([1.0, 1.1]) == pytest.approx(12.706 * 0.09531 / 2, rel=1e-3)


class _Power(PowerMonitor):
    """A power that falls to idle after some time."""

    def __init__(self, idle_at_s: float | None) -> None:
        self.now_s = 0.0
        self._idle_at_s = idle_at_s

    def energy(
        self, start_s: float, end_s: float, *, wait: bool = True
    ) -> tuple[EnergyReading, ...]:
        if self._idle_at_s is None:
            return ()
        watts = 10.1 if end_s - 2.0 >= self._idle_at_s else 20.0
        return (
            EnergyReading(
                domain="system", meter="m", kind="measured", power_w=watts, energy_j=2 * watts,
                uncertainty_j=0.0, coverage=1.0, largest_gap_s=0.1, samples=20, lost=0,
                valid=True, reasons=(),
            ),
        )  # fmt: skip

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.mark.parametrize(
    ("idle_at_s", "idle_w", "after_s", "message"),
    [
        (0.5, 10.0, 3.0, "power is back at idle and the drive does no I/O"),
        (6.0, 10.0, 8.0, "power is back at idle and the drive does no I/O"),
        (99.0, 10.0, 20.0, "not settled after the most there is: power is 2.00 of idle"),
        (None, 10.0, 7.0, "a fixed pause: no meter shows when it is idle"),
        (0.5, None, 7.0, "a fixed pause: no meter shows when it is idle"),
    ],
)
def test_a_pause_ends_when_the_machine_has_settled(
    idle_at_s: float | None, idle_w: float | None, after_s: float, message: str
) -> None:
    power = _Power(idle_at_s)
    known = {} if idle_w is None else {("m", "system"): idle_w}
    found = settling.settle(
        RULE, power, known, (), 7.0, sleep=power.sleep, clock=lambda: power.now_s
    )
    assert found.after_s == pytest.approx(after_s, abs=0.15) and found.reason == message


def test_a_drive_that_moves_is_waited_for(tmp_path: Path) -> None:
    sysfs = tmp_path / "sys/class/block/sdx"
    sysfs.mkdir(parents=True)
    power = _Power(0.0)

    def write_for_five_seconds(seconds: float) -> None:
        power.sleep(seconds)
        sectors = int(min(power.now_s, 5.0) * 1e5)
        (sysfs / "stat").write_text(f"0 0 0 0 0 0 {sectors} 0 0 0 0\n")

    write_for_five_seconds(0.0)
    device = BlockDevice("sdx", 8, 0, root=tmp_path)
    found = settling.settle(
        RULE, power, {("m", "system"): 10.0}, [device], 0.0,
        sleep=write_for_five_seconds, clock=lambda: power.now_s,
    )  # fmt: skip
    assert found.after_s == pytest.approx(6.0, abs=0.3)


# --- campaigns ------------------------------------------------------------------------------------


def _adaptive(home: Path, meter: str = "none") -> tuple[str, ...]:
    """A campaign of three steady experiments and a noisy one, which waits for nobody: what else the
    machine's drive does is not the test's."""
    suite = home / "own"
    if not suite.exists():
        shutil.copytree(DATA / "suites/dummy-suite", suite)
        definition = suite / "suite-definition.xml"
        entry = "<Execute><Test>local/eeio-dummy-1.0.0</Test><Arguments>level=filesystem cell=3 "
        entry += "mode=noisy</Arguments><Description>noisy</Description></Execute>"
        end = "</PhoronixTestSuite>"
        definition.write_text(definition.read_text().replace(end, f"{entry}{end}"))
        protocol = yaml.safe_load((suite / "protocol.yaml").read_text())
        protocol["presets"]["adaptive"] = {
            **protocol["presets"]["quick"],
            "like": "quick", "repetitions": 3, "settle_s": 0, "idle_s": 0.5,
            "adaptive": {"settle_least_s": 0, "settle_most_s": 0.1, "most_whole": 6},
        }  # fmt: skip
        (suite / "protocol.yaml").write_text(yaml.safe_dump(protocol))
    return (
        "run", str(suite), "--preset", "adaptive", "--directory", str(home / "target"),
        "--meter", meter, "--seed", "2", "--name",
    )  # fmt: skip


def _order(home: Path, name: str) -> list[tuple[str, int]]:
    return [(r["experiment_id"], r["repetition"]) for r in records(home, name)]


def test_a_campaign_reports_why_each_experiment_was_repeated_no_further(
    home: Path, eeio: Eeio
) -> None:
    done = eeio(*_adaptive(home), "c")
    made = load(home / "data/eeio/results/c")
    ids = {planned.experiment.id for planned in made.design.experiments}
    assert set(made.design.stopped) == ids and len(made.design.anchors) in (1, 2)
    noisy = next(p for p in made.design.experiments if p.description == "noisy").experiment.id
    why = made.design.stopped
    assert all(why[id].startswith("precise enough after 4") for id in ids - {noisy})
    assert why[noisy].startswith("the most repetitions, 6")
    precise = f"precision: {len(ids) - 1} of {len(ids)} experiments known to ±5 %"
    assert precise in done.stdout
    assert all(one.settled_reason is not None for one in made.runs)
    order = _order(home, "c")
    for start in range(0, 16, 4):
        assert {id for id, _ in order[start : start + 4]} == ids, "a round has each once"
    for start in range(16, len(order), len({noisy, *made.design.anchors})):
        one = order[start : start + len({noisy, *made.design.anchors})]
        assert {id for id, _ in one} == {noisy, *made.design.anchors}


@pytest.mark.slow
def test_a_campaign_that_ended_with_a_round_settles_by_its_power_again(
    home: Path, eeio: Eeio
) -> None:
    """Killed after the last of a round, when nothing was planned: the idle baseline is known."""
    with FakeRapl(home / "powercap", power_w=lambda time_s: 40.0):
        meter = f"rapl,root={home / 'powercap'}"
        eeio(*_adaptive(home, meter), "c", code=(0, 3))
        folder = home / "data/eeio/results/c"
        records = (folder / "runs.jsonl").read_text().splitlines(keepends=True)
        (folder / "runs.jsonl").write_text("".join(records[:12]))
        design = json.loads((folder / "campaign.json").read_text())
        design |= {"order": design["order"][:12], "stopped": {}, "anchors": []}
        design["protocol"]["adaptive"]["settle_most_s"] = 2.0  # enough for the drive to stand still
        (folder / "campaign.json").write_text(json.dumps(design))
        eeio("resume", "c", code=(0, 3))
    again = load(folder).runs[12:]
    assert again and not any("no meter shows" in (one.settled_reason or "") for one in again)


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize("after", [1, 8, 12, 13])
def test_a_killed_campaign_goes_on_in_the_same_order(home: Path, eeio: Eeio, after: int) -> None:
    eeio(*_adaptive(home), "whole")
    killed(f"[{after}/", *_adaptive(home), "c")
    eeio("resume", "c")
    assert _order(home, "c") == _order(home, "whole")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--adaptive", "--precision", "0"), "precision 0: a share above 0"),
        (("--adaptive", "--precision", "1"), "a share below 1"),
        (("--adaptive", "--floor", "6%"), "0 <= floor < indifference < 1"),
        (("--adaptive", "--repetitions", "2"), "give 3 or more"),
        (("--precision", "3%"), "give --adaptive, or --preset adaptive"),
    ],
)
def test_a_rule_that_makes_no_sense_is_rejected(
    home: Path, eeio: Eeio, arguments: tuple[str, ...], message: str
) -> None:
    done = eeio.plan("dummy-suite", *arguments, code=2)
    assert message in done.stderr


def test_run_times_are_whole_seconds_as_profiles_take_them() -> None:
    assert replace(RULE, lengths_s=(1.0, 20.0)).impossible() is None
    assert "integer seconds" in str(replace(RULE, lengths_s=(0.5,)).impossible())


def test_plan_as_json_has_the_least_and_the_most(home: Path, eeio: Eeio) -> None:
    arguments = ("plan", "dummy-suite", "--directory", str(home / "target"), "--format", "json")
    fixed = json.loads(eeio(*arguments).stdout)
    assert fixed["least_s"] == fixed["most_s"] == fixed["expected_s"] == fixed["fixed_s"]
    body = json.loads(eeio(*arguments, "--adaptive", "--repetitions", "3").stdout)
    assert set(body) == {
        "schema_version", "runs", "expected_s", "least_s", "most_s", "fixed_s", "bytes_written",
        "experiments",
    }  # fmt: skip
    assert [one["profile"] for one in body["experiments"]] == ["eeio-dummy-1.0.0"] * 3
    assert body["runs"] == 9 and body["least_s"] < body["expected_s"] < body["most_s"]


def test_every_suite_that_repeats_by_no_rule_of_its_own_has_the_preset(
    eeio: Eeio, home: Path
) -> None:
    for suite in sorted((DATA.parents[1] / "suites").glob("eeio-*")):
        protocol = yaml.safe_load((suite / "protocol.yaml").read_text())
        done = eeio.plan(str(suite), "--preset", "adaptive", "--format", "json", code=(0, 2))
        is_over_time = "fill=each" in (suite / "suite-definition.xml").read_text()
        if "study" in protocol or "steady" in protocol["presets"]["standard"] or is_over_time:
            assert "no preset 'adaptive'" in done.stderr
        else:
            body = json.loads(done.stdout)
            assert body["least_s"] < body["expected_s"] < body["most_s"]


def _noisy_pair(home: Path) -> tuple[str, ...]:
    """Beside them two noisy experiments that differ in one factor: a question."""
    made = _adaptive(home)
    definition = home / "own/suite-definition.xml"
    entries = "".join(
        "<Execute><Test>local/eeio-dummy-1.0.0</Test><Arguments>level=filesystem operation=read "
        f"spatiality={way} cell=9 mode=noisy</Arguments><Description>noisy {way}</Description>"
        "</Execute>"
        for way in ("sequential", "random")
    )
    end = "</PhoronixTestSuite>"
    definition.write_text(definition.read_text().replace(end, f"{entries}{end}"))
    return made


def test_plan_and_extend_repeat_what_it_takes_to_see_a_difference(home: Path, eeio: Eeio) -> None:
    eeio(*_noisy_pair(home), "c")
    _plan_reports(home, eeio)
    _extend_repeats(home, eeio)


def _plan_reports(home: Path, eeio: Eeio) -> None:
    arguments = (
        "plan",
        str(home / "own"),
        "--preset",
        "adaptive",
        "--directory",
        str(home / "target"),
    )
    body = eeio.json(*arguments, "--detect", "5%")
    requested = body["detect"]
    assert (
        requested["earlier"] == "c" and requested["share"] == 0.05 and requested["expected_s"] > 0
    )
    assert len(requested["repetitions"]) == 6 and min(requested["repetitions"].values()) >= 3
    assert {one["metric"] for one in requested["questions"]} == {"bandwidth_bytes_per_s"}
    # The others differ in more than one factor.
    later = "against itself later"
    (pair,) = [q for q in requested["questions"] if not q["experiment"].endswith(later)]
    assert "random" in pair["experiment"] and len(requested["questions"]) == 5
    assert 10 < pair["repetitions"] < 200, "5 % of a spread of 5 %"
    table = eeio(*arguments, "--detect", "5%", "--from", "c")
    assert "to see 5.0% in 9 of 10 campaigns, by the spread of c" in table.stdout
    gate = ("--detect", "10%", "--fail-if", "worse:5%:MB/s", "--from", "c")
    planned = eeio.json(*arguments, *gate)["gate"]
    assert (planned["detect"], planned["share"], planned["metric"]) == (0.1, 0.05, "MB/s")
    assert planned["experiments"] == 6 and not planned["without_answer"]
    assert planned["repetitions"] > 6 and planned["seconds"] > 0
    first = eeio(*arguments, *gate).stdout.splitlines()[0]
    assert first.startswith(f"--repetitions {planned['repetitions']}, about "), first
    for wrong, message in (
        (("--detect", "5%", "--fail-if", "worse:5%"), "a change of 5 % is tolerated"),
        (("--fail-if", "worse:5%"), "--fail-if requires --detect"),
        (("--detect", "0.5%"), "is below the minimum effect"),
        (("--from", "c"), "--from requires --detect"),
        (("--detect", "5%", "--from", "nobody"), "nobody"),
    ):
        rejected = eeio(*arguments, *wrong, code=2)
        assert message in rejected.stderr, rejected.stderr
    other = eeio.plan("eeio-load", "--detect", "5%", "--from", "c", code=2)
    assert "it is a campaign of own, not of eeio-load" in other.stderr


def _extend_repeats(home: Path, eeio: Eeio) -> None:
    folder = home / "data/eeio/results/c"
    before = load(folder)
    report = eeio.json("report", "c")["adaptive"][0]
    assert [q["answer"] for q in report["questions"]] == ["open"] and report["alpha"] == 0.05
    assert report["time_s"] > 0 and report["fixed_s"] > 0
    dry = eeio("resume", "--extend", "c", "--dry-run")
    assert "1 of 1 questions are open" in dry.stderr, dry.stderr
    assert load(folder).design == before.design
    with store_lock(folder):
        eeio("resume", "--extend", "c", "--most", "500", code=2)
    assert load(folder).design == before.design, "nothing is stored of an extension that cannot run"
    eeio("resume", "--extend", "c", "--most", "500")
    after = load(folder)
    count = [run.experiment.id for run in after.runs].count
    assert after.design.extensions == 1 and len(after.design.targets) == 2
    assert all(count(id) >= many > 6 for id, many in after.design.targets.items())
    assert [r.experiment.id for r in after.runs[: len(before.runs)]] == [
        r.experiment.id for r in before.runs
    ]
    report = eeio.json("report", "c")["adaptive"][0]
    assert report["extensions"] == 1 and report["alpha"] == 0.025, "two looks share the level"


def test_extend_rejects_a_fixed_campaign(home: Path, eeio: Eeio) -> None:
    arguments = (
        "run", "dummy-suite", "--preset", "quick", "--directory", str(home / "target"),
        "--meter", "none", "--settle", "0", "--idle", "0", "--name", "fixed",
    )  # fmt: skip
    eeio(*arguments, code=(0, 3))
    done = eeio("resume", "--extend", "fixed", code=2)
    assert "a fixed number and one random order" in done.stderr
    assert "plan --detect 5% --from fixed" in done.stderr
