"""The gate for CI tests the hypothesis that it names, and passes nothing that it did not test."""

import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cells import measured
from tests.eeio_results import made
from tests.eeio_results.comparison.test_changes import around, cell
from tests.plugin import InProcess

from eeio.analysis.metrics import gated
from eeio.cli import main
from eeio.comparison.cells import BANDWIDTH, J_PER_GB, UNCERTAINTY, Cell
from eeio.comparison.gate import Gate, Side, gate
from eeio.errors import EeioError
from eeio.record.store import Campaign
from eeio.report.documents import gate as report


def judged(
    before: Sequence[Cell],
    after: Sequence[Cell],
    share: float = 0.05,
    metric: str | None = None,
    detect: float | None = None,
) -> Gate:
    return gate(Side("old", before, []), Side("new", after, []), share, metric, detect=detect)


def verdicts(found: Gate) -> list[str]:
    return [row.verdict for row in found.rows]


def test_worse_by_more_than_the_share_is_found_by_name() -> None:
    before = [cell("a", size, around(100)) for size in ("4 KiB", "1 MiB", "4 MiB")]
    after = [cell("b", "4 KiB", around(97)), cell("b", "1 MiB", around(80)),
             cell("b", "4 MiB", around(130))]  # fmt: skip
    found = judged(before, after)
    assert (found.metric, verdicts(found)) == ("J/GB", ["passed", "worse", "passed"])
    row = found.rows[1]
    assert row.label == "sequential read, 1 MiB, buffer off, filesystem, fio, file"
    assert row.change == pytest.approx(0.25, abs=1e-3) and row.n == (6, 6)
    assert row.p_adjusted is not None and row.p_adjusted < 1e-6
    assert verdicts(judged(before, after, 0.30)) == ["passed"] * 3


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_doubtful_energy_is_not_tested(factor: float) -> None:
    before = [cell("a", "4 KiB", around(100))]
    after = [replace(cell("b", "4 KiB", around(100 * factor)), doubts=("two meters disagree",))]
    for metric in ("J/GB", "MB/J", "W"):
        for row in (*judged(before, after, 0.05, metric).rows, *judged(after, before).rows):
            assert (row.verdict, row.reason) == ("not tested", "doubtful: two meters disagree")
    assert verdicts(judged(before, after, 0.05, "MB/s")) != ["not tested"]


@pytest.mark.parametrize(
    ("metric", "share", "verdict"),
    [
        ("MB/s", 0.05, "worse"), ("MB/s", 0.25, "passed"),
        ("MB/J", 0.05, "worse"), ("J/GB", 0.2, "worse"), ("W", 0.05, "passed"),
    ],
)  # fmt: skip
def test_each_metric_has_its_direction(metric: str, share: float, verdict: str) -> None:
    """20 % fewer MB/s at the same power."""
    found = judged(
        [cell("a", "4 KiB", around(100))], [cell("b", "4 KiB", around(80))], share, metric
    )
    assert verdicts(found) == [verdict]


def test_bandwidth_cannot_become_worse_by_all_of_it() -> None:
    """A gate that cannot fail would pass everything."""
    both = [cell("a", "4 KiB", around(100))], [cell("b", "4 KiB", around(1))]
    with pytest.raises(EeioError, match="MB/s cannot become 100 % worse"):
        judged(*both, 1.0, "MB/s")


def test_more_repetitions_fail_no_change_below_the_share() -> None:
    """It failed in 71 of 100 campaigns with +3 % and 10 repetitions."""
    for n, verdict in ((3, "not decided"), (6, "not decided"), (10, "not decided"), (40, "passed")):
        after = [cell("b", "4 KiB", around(100 / 1.03, 0.1 / n, n))]
        assert verdicts(judged([cell("a", "4 KiB", around(100, 0.1 / n, n))], after)) == [verdict]


def test_what_could_be_anything_is_not_decided() -> None:
    """A comparison of a thing with itself that could have found 262 % was `passed`."""
    noisy = [cell("a", "4 KiB", [100, 180, 60])]
    found = judged(noisy, noisy)
    assert verdicts(found) == ["not decided"]
    assert found.detectable is not None and found.detectable[0] > 2
    quiet = [cell("a", "4 KiB", around(100))]
    assert verdicts(judged(quiet, quiet)) == ["passed"]


def test_passed_is_surely_below_the_change_to_detect() -> None:
    before = [cell("a", "4 KiB", around(100, 0.01))]
    after = [cell("b", "4 KiB", around(100 / 1.03, 0.01))]
    assert verdicts(judged(before, after, 0.03)) == ["not decided"]
    assert verdicts(judged(before, after, 0.03, detect=0.2)) == ["passed"]
    worse = [cell("b", "4 KiB", around(100 / 1.2, 0.01))]
    assert verdicts(judged(before, worse, 0.03, detect=0.2)) == ["worse"]
    with pytest.raises(EeioError, match="a change of 5 % is tolerated"):
        judged(before, after, 0.05, detect=0.05)
    with pytest.raises(EeioError, match="--detect: MB/s cannot become 100 % worse"):
        judged(before, after, 0.05, "MB/s", detect=1.0)


def test_a_meter_that_is_known_badly_decides_a_large_change() -> None:
    before = [cell("a", "4 KiB", around(100), known=0.12)]
    assert verdicts(judged(before, [cell("b", "4 KiB", around(50), known=0.12)])) == ["worse"]
    small = judged(before, [cell("b", "4 KiB", around(85), known=0.12)])
    (row,) = small.rows
    assert (row.verdict, row.reason) == ("not tested", "the energy is known only to ±12 %")
    assert verdicts(judged(before, before, 0.05, detect=0.5)) == ["passed"]


def test_what_cannot_be_tested_is_named() -> None:
    sizes = ["missing", "without", "single", "rough", "fine"]
    before = [cell("a", size, around(100)) for size in sizes]
    after = [
        cell("b", "without", around(100), None),
        cell("b", "single", [1.0]),
        cell("b", "rough", around(100), known=0.3),
        cell("b", "fine", around(100)),
    ]
    found = judged(before, after)
    reasons = {row.label.split(", ")[1]: row.reason for row in found.of("not tested")}
    assert reasons == {
        "missing": "new has no result of it: it did not run",
        "without": "new does not have this metric: not measured",
        "single": "a single repetition has no spread to test with",
        "rough": "the energy is known only to ±30 %",
    }
    assert [row.verdict for row in found.rows].count("passed") == 1


def test_an_experiment_that_only_the_later_campaign_has_is_named_and_does_not_fail() -> None:
    before = [cell("a", "4 KiB", around(100))]
    after = [cell("b", "4 KiB", around(100)), cell("b", "1 MiB", around(10))]
    found = judged(before, after)
    assert verdicts(found) == ["passed"]
    text = "\n".join(report.lines(found, False, "pass"))
    assert "not in old, so not in the gate: sequential read, 1 MiB, buffer off" in text
    assert report.to_json([found], "pass")[0]["only_after"] == list(found.only_after)
    assert "not in old" not in "\n".join(report.lines(judged(before, before), False, "pass"))


def test_the_metric_is_that_of_the_campaign_before() -> None:
    """A meter that is gone must not move the gate to MB/s."""
    found = judged([cell("a", "4 KiB", around(100))], [cell("b", "4 KiB", around(100), None)])
    assert (found.metric, verdicts(found)) == ("J/GB", ["not tested"])


def test_runs_that_failed_tell_why() -> None:
    design = made.design("new", 2)
    runs = tuple(made.run(n, validity=("exit code 1: no such device",)) for n in range(2))
    after = Campaign(None, design, made.MACHINE, (), None, runs)  # type: ignore[arg-type]
    one = replace(cell("a", "4 KiB", around(100)), experiment_id=made.EXPERIMENT.id)
    found = gate(Side("old", [one], []), Side("new", [], [after]), 0.05, None)
    assert found.rows[0].reason == (
        "new has no result of it: 2 runs failed: exit code 1: no such device"
    )
    without = replace(cell("b", "4 KiB", around(100), None), experiment_id=made.EXPERIMENT.id)
    found = gate(Side("old", [one], []), Side("new", [without], [after]), 0.05, None)
    assert found.rows[0].reason == (
        "new does not have this metric: 2 runs failed: exit code 1: no such device"
    )


@pytest.mark.parametrize(
    ("failed_before", "failed_after", "verdict"),
    [(0, 1, "not tested"), (0, 4, "not tested"), (2, 2, "passed"), (3, 2, "passed")],
)
def test_runs_that_fail_more_often_than_before_fail_the_gate(
    failed_before: int, failed_after: int, verdict: str
) -> None:
    """The runs that are left may be as fast as before."""

    def campaign(name: str, failed: int) -> Campaign:
        runs = tuple(
            made.run(n, validity=("exit code 1: Input/output error",) if n < failed else ())
            for n in range(6)
        )
        return Campaign(None, made.design(name, 6), made.MACHINE, (), None, runs)  # type: ignore[arg-type]

    one = replace(cell("a", "4 KiB", around(100)), experiment_id=made.EXPERIMENT.id)
    found = gate(
        Side("old", [one], [campaign("old", failed_before)]),
        Side("new", [one], [campaign("new", failed_after)]),
        0.05,
        None,
    )
    assert verdicts(found) == [verdict]
    if verdict == "not tested":
        expected = f"{failed_after} of 6 runs failed: exit code 1: Input/output error"
        assert found.rows[0].reason == f"{expected} (before: {failed_before} of 6)"


def test_no_experiment_with_the_metric_is_an_error() -> None:
    with pytest.raises(EeioError, match="no experiment of old has p99"):
        judged([cell("a", "4 KiB", around(100))], [cell("b", "4 KiB", around(100))], 0.05, "p99")
    assert {"time", "IOPS", "W"} < set(gated())


def test_a_quiet_row_among_noisy_ones_is_no_finding() -> None:
    """Three runs that are all of one mode of a drive, against three of the other."""
    before = [cell("a", f"{k} KiB", [100, 116, 100]) for k in range(1, 20)]
    after = [cell("b", f"{k} KiB", [116, 100, 100]) for k in range(1, 20)]
    before.append(cell("a", "last", [116, 116.1, 115.9]))
    after.append(cell("b", "last", [100, 100.1, 99.9]))
    assert set(verdicts(judged(before, after))) == {"not decided"}
    slow = [*after[:-1], cell("b", "last", [10, 10.1, 9.9])]
    assert verdicts(judged(before, slow))[-1] == "worse"


def test_what_could_have_been_found_is_reported() -> None:
    found = judged([cell("a", "4 KiB", around(100, 0.01))], [cell("b", "4 KiB", around(100, 0.01))])
    assert found.detectable is not None
    median, most = found.detectable
    assert 0.05 < median == most < 0.15
    # As far as that, the gate does find it.
    random.seed(1)
    worse = [cell("b", "4 KiB", [x / (1 + 1.3 * most) for x in around(100, 0.01)])]
    assert verdicts(judged([cell("a", "4 KiB", around(100, 0.01))], worse)) == ["worse"]


def test_the_remedy_of_commands_is_the_number_of_their_runs() -> None:
    found = judged([cell("a", "4 KiB", around(100, 0.05))], [cell("b", "4 KiB", around(100, 0.05))])
    assert any("`eeio plan SUITE --detect 10% " in line for line in report.remarks(found, False))
    of_commands = report.remarks(replace(found, bench_runs=12), False)
    assert any("`eeio bench -r 12` before and after finds 10 %" in line for line in of_commands)


def test_the_change_to_plan_for_exceeds_the_tolerated_one() -> None:
    both = [cell("a", "4 KiB", around(100))], [cell("b", "4 KiB", around(100))]
    for metric, share, wanted in (
        ("J/GB", 1.0, 2.0), ("J/GB", 0.0, 0.05), ("MB/s", 0.05, 0.1), ("MB/s", 0.9, 0.95),
    ):  # fmt: skip
        assert judged(*both, share, metric).to_detect == pytest.approx(wanted)
    assert judged(*both, 0.03, "J/GB", detect=0.2).to_detect == 0.2


def test_no_noise_at_all() -> None:
    same = cell("a", "4 KiB", [100.0] * 3)
    exact = measured({J_PER_GB: (1.0,) * 3, UNCERTAINTY: (0.01,) * 3})
    flat = replace(same, figures={**same.figures, **exact})
    worse = replace(flat, figures={**flat.figures, **measured({J_PER_GB: (1.06,) * 3})})
    assert verdicts(judged([flat], [flat])) == ["passed"]
    assert verdicts(judged([flat], [worse])) == ["worse"]
    assert judged([flat], [worse]).rows[0].change == pytest.approx(0.06)
    assert math.isclose(same.median(BANDWIDTH), 1e8)


def test_the_command_takes_one_gate(in_process: InProcess) -> None:
    arguments = ["compare", "a", "b", "--fail-if", "worse:5%:J/GB", "--fail-if", "worse:5%:MB/s"]
    assert "--fail-if: give it once" in in_process(*arguments, code=2).err


DATA = Path(__file__).parents[2] / "data/campaigns"


def test_every_format_has_the_result_of_the_gate(
    capsys: pytest.CaptureFixture[str], in_process: InProcess
) -> None:
    arguments = ["compare", str(DATA / "quick-before"), str(DATA / "quick-after")]
    arguments += ["--fail-if", "worse:5%:MB/s", "--format"]
    shown = {}
    for form in ("table", "json", "markdown", "html"):
        code = main([*arguments, form])
        shown[form], log = capsys.readouterr()
        assert (code == 0) == (", 0 not tested" in log and " 0 of " in log)
        assert log.startswith("gate worse:5%:MB/s: ")
        assert "gate worse:5%:MB/s" in shown[form] + log
    (gate,) = json.loads(shown["json"])["gate"]
    assert (gate["metric"], gate["share"]) == ("MB/s", 0.05)
    assert f"{gate['worse']} of {len(gate['experiments'])} experiments worse" in shown["html"]
    assert shown["table"].startswith(gate["verdict"])
    rows = [row for row in gate["experiments"] if row["verdict"] == "not decided"]
    assert rows and all(f"{100 * row['change']:+.1f} %" in shown["table"] for row in rows)
    assert "gate" not in json.loads(in_process(*arguments[:3], "--format", "json").out)
