"""Campaigns that go on until their drive is in its steady state, and what they may write."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import dummy
from tests.campaigns import records
from tests.eeio_results.made import EXPERIMENT, design, phase, run
from tests.plugin import Eeio

from eeio.cli import main
from eeio.machine.filesystem import BlockDevice
from eeio.measure.campaign import runner
from eeio.measure.campaign.planned_campaign import Plan
from eeio.measure.campaign.rounds import WriteBudget
from eeio.measure.profiles import profile as profiles
from eeio.record.design import Wear
from eeio.record.store import load

# 1.8, 1.6, 1.4, 1.2, then 1.0 MB/s: steady over rounds 5 to 9 (tests/eeio_results).
FALLING = """\
count="$HOME/rounds-$(echo "$*" | cksum | cut -d' ' -f1)"
echo x >>"$count"
n=$(wc -l <"$count")
[ "$n" -lt 5 ] && bandwidth=$((2000000 - 200000 * n))
"""


@pytest.fixture
def suite(home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = dummy.profile(home, "")
    program = folder / "eeio-dummy-1.0.0/eeio-dummy.sh"
    program.write_text(
        program.read_text().replace("case $mode in\n", f"{FALLING}case $mode in\n", 1)
    )
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(folder))
    made = dummy.suite(
        home, "level=filesystem operation=write sleep_s=0.02 cell=1",
        "level=filesystem operation=read sleep_s=0.02 cell=2",
    )  # fmt: skip
    protocol = Path(made) / "protocol.yaml"
    body = yaml.safe_load(protocol.read_text())
    body["presets"]["quick"] |= {"repetitions": 5, "settle_s": 0, "idle_s": 0, "steady": {}}
    protocol.write_text(yaml.safe_dump(body))
    return made


def arguments_of(suite: str, home: Path) -> list[str]:
    return ["run", suite, "--preset", "quick", "--directory", str(home / "target"), "--meter",
            "none", "--seed", "3", "--name", "c"]  # fmt: skip


def order(home: Path) -> list[tuple[str, int]]:
    return [(r["experiment_id"], r["repetition"]) for r in records(home)]


def test_rounds_go_on_until_the_drive_is_steady(home: Path, eeio: Eeio, suite: str) -> None:
    done = eeio(*arguments_of(suite, home))
    assert "the drive is in its steady state after 9 rounds" in done.stderr
    made = load(home / "data/eeio/results/c")
    assert made.stored_runs == 18 and {one.repetition for one in made.runs} == {5, 6, 7, 8, 9}
    for first in range(0, 18, 2):
        assert len({repetition for _, repetition in order(home)[first : first + 2]}) == 1
    rows = eeio.json("report", "c")["characterization"]
    write = next(row for row in rows if row["operation"] == "write")
    assert write["n"] == 5 and write["bandwidth_bytes_per_s"]["q3"] == 1e6


def test_killed_at_any_place_it_goes_on_in_the_same_order(
    home: Path, eeio: Eeio, suite: str
) -> None:
    eeio(*arguments_of(suite, home))
    complete = order(home)
    folder = home / "data/eeio/results/c"
    for left in (3, 10, 11, 17):
        design_ = json.loads((folder / "campaign.json").read_text())
        lines = (folder / "runs.jsonl").read_text().splitlines(keepends=True)
        (folder / "runs.jsonl").write_text("".join(lines[:left]))
        # As it was planned when that run ended: whole rounds, five at least.
        planned = max(10, 2 * ((left + 1) // 2))
        (folder / "campaign.json").write_text(
            json.dumps({**design_, "order": design_["order"][:planned]})
        )
        for path in home.rglob("rounds-*"):
            taken = [r for r in lines[:left] if json.loads(r)["experiment"]["operation"] == "write"]
            path.write_text("x\n" * len(taken))
        eeio("resume", "c")
        assert order(home) == complete


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--repetitions", "3"), "leave out --repetitions"),
        (("--adaptive",), "leave out --adaptive"),
        (("--precondition", "200%"), "eeio-drive"),
    ],
)
def test_what_contradicts_its_rule_is_rejected(
    home: Path, eeio: Eeio, suite: str, option: tuple[str, ...], message: str
) -> None:
    done = eeio(*arguments_of(suite, home), *option, code=2)
    assert message in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("rule", "message"),
    [("5", "steady"), ("{rounds: 1}", "steady"), ("{rounds: 4}", "steady"),
     ("{range_share: x}", "range_share")],
)  # fmt: skip
def test_a_rule_that_is_none_is_rejected(
    home: Path, eeio: Eeio, suite: str, rule: str, message: str
) -> None:
    path = Path(suite) / "protocol.yaml"
    body = yaml.safe_load(path.read_text())
    body["presets"]["quick"]["steady"] = yaml.safe_load(rule)
    path.write_text(yaml.safe_dump(body))
    done = eeio.plan(suite, "--preset", "quick", code=2)
    assert message in done.stderr


def plan(eeio: Eeio, home: Path, *further: str) -> Any:
    done = eeio.plan("eeio-drive", *further)
    return json.loads(done.stdout)


def test_a_plan_reports_the_least_and_the_most_rounds(home: Path, eeio: Eeio) -> None:
    found = plan(eeio, home, "--preset", "standard", "--format", "json")
    assert found["runs"] == 100 and found["most_s"] > 4 * found["least_s"]
    twice = plan(eeio, home, "--preset", "quick", "--format", "json")
    once = plan(eeio, home, "--preset", "quick", "--format", "json", "--precondition", "100%")
    assert twice["bytes_written"] - once["bytes_written"] == 256 << 20


def test_a_budget_smaller_than_the_test_files_is_rejected(home: Path, eeio: Eeio) -> None:
    target = str(home / "target")
    done = eeio("run", "eeio-drive", "--preset", "quick", "--directory", target, "--max-written",
                "0.4G", code=2)  # fmt: skip
    assert "0.537 GB are written, more than the 0.4 GB of --max-written" in done.stderr


def test_a_budget_ends_a_campaign_before_it_is_over(
    home: Path, eeio: Eeio, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = dummy.suite(home, "level=filesystem operation=write bytes_moved=500000 sleep_s=0.02")
    done = eeio.run(
        made, "--preset", "quick", "--meter", "none", "--repetitions", "9", "--name", "c",
        "--max-written", "0.000001G", code=(0, 3),
    )  # fmt: skip
    stored = load(home / "data/eeio/results/c")
    written = sum(
        max(0, one.device_after.written_bytes - one.device_before.written_bytes)
        if one.device_before and one.device_after else 500_000
        for one in stored.runs[:-1]
    )  # fmt: skip
    assert stored.planned_runs == stored.stored_runs < 9 and written <= 1000
    assert stored.design.ended is not None and "ended by --max-written" in stored.design.ended
    assert stored.design.ended in done.stdout
    again = eeio("resume", "c", code=(0, 3))
    assert "GB were written" in again.stdout, "and it does not go on"


def test_a_run_begins_where_the_most_that_it_may_write_fits() -> None:
    made = design("c", 3)
    planned = made.experiments[0]
    big = replace(
        planned, experiment=replace(EXPERIMENT, operation="write"), file_bytes=1000,
        factors={"file_size": "1000"},
    )  # fmt: skip
    options = replace(made.options, max_written_bytes=2600)
    complete = replace(made, options=options, experiments=(big,))
    stored = {name: getattr(complete, name) for name in complete.__dataclass_fields__}
    plan_ = Plan(**stored, profiles={big.profile: profiles.find("eeio-fio-1.0.0")})
    budget = WriteBudget(plan_, (), starts=1)  # the test file: 1000
    assert budget.why_not(big) is None, "1000 more at most"
    small = replace(phase(50.0), operation="write", bytes_moved=400)
    ended = replace(run(0, (small,), big.experiment), device_before=None, device_after=None)
    budget.add(ended)
    assert budget.why_not(big) is None, "1400, and 600 more as the largest was 400"
    budget.add(ended)
    budget.add(ended)
    assert "0 GB" not in (why := budget.why_not(big) or "") and "may write 6e-07 GB" in why


def test_wear_is_read_before_the_first_run_and_at_each_end(
    home: Path, monkeypatch: pytest.MonkeyPatch, suite: str
) -> None:
    written = iter(range(10))
    monkeypatch.setattr(
        runner, "wear", lambda disk: Wear("2026-01-01T00:00:00+00:00", next(written), 5)
    )
    drive = BlockDevice("sdx", 8, 0)
    monkeypatch.setattr(runner._Campaign, "_drive", lambda self: drive)
    monkeypatch.setattr(runner._Campaign, "_check_machine", lambda self: None)
    assert main(arguments_of(suite, home)) in (0, 3)
    stored = load(home / "data/eeio/results/c").design.wear
    assert [one.used_percent for one in stored] == [0, 1]


def test_a_campaign_stops_while_its_drive_is_too_hot_and_goes_on_when_it_is_cool(
    home: Path, monkeypatch: pytest.MonkeyPatch, suite: str, capsys: pytest.CaptureFixture[str]
) -> None:
    temperatures_c = iter([None, 86, 85])
    monkeypatch.setattr(
        runner, "temperature_outside_limits_c", lambda disk: next(temperatures_c, None)
    )
    drive = BlockDevice("sdx", 8, 0)
    monkeypatch.setattr(runner._Campaign, "_drive", lambda self: drive)
    monkeypatch.setattr(runner._Campaign, "_check_machine", lambda self: None)
    assert main(arguments_of(suite, home)) == 1
    assert "its temperature, 86 °C, is outside of its limits" in capsys.readouterr().err
    assert len(load(home / "data/eeio/results/c").runs) == 1
    assert main(["resume", "c"]) == 1, "it is still too hot"
    assert "85 °C" in capsys.readouterr().err
    assert main(["resume", "c"]) in (0, 3)
    assert len(load(home / "data/eeio/results/c").runs) > 1


@pytest.mark.root
def test_a_drive_that_is_too_small_is_rejected(home: Path, eeio: Eeio, loop: str) -> None:
    done = eeio.run(
        "eeio-drive", "--preset", "quick", "--device", loop, "--erase", loop, "--lose", "data",
        "--meter", "none", "--sweep", "file_size=64m", code=2,
    )  # fmt: skip
    assert done.stderr.count("\n") == 1
    assert "0.00419 GB, less than the 0.0671 GB that are written over and measured" in done.stderr
