"""docs/studies/README.md: every command of its table is one that eeio understands, and plans."""

import re
import shlex
from pathlib import Path

import pytest

from eeio.cli import parser
from eeio.commands import parsers, run
from eeio.measure.campaign import exclusions
from eeio.measure.campaign import plan as plans
from eeio.measure.profiles import suite as suites
from tests import cpufreq

PAGE = (Path(__file__).parents[1] / "docs/studies/README.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| place")
]
COMMANDS = sorted({row[2].strip("`") for row in ROWS if row[2] != "-"})
RUNS = [command for command in COMMANDS if command.startswith("eeio run ")]


def test_every_row_has_a_place_and_a_command_or_a_reason() -> None:
    assert 60 <= len(ROWS) <= 90
    for place, shows, command, verdict in ROWS:
        assert place and shows
        if verdict and not verdict.startswith("with a stand-in: "):
            assert re.match(r"no: .{20}", verdict), place
        else:
            assert command.startswith("`eeio "), place


def test_the_counts_in_its_text_are_those_of_its_rows() -> None:
    verdicts = [row[3] for row in ROWS]
    one, no = verdicts.count(""), sum(v.startswith("no: ") for v in verdicts)
    reported = re.search(r"Of (\d+) rows (\d+) .* (\d+) with a stand-in, and\s(\d+) are not", PAGE)
    assert reported is not None
    assert [int(n) for n in reported.groups()] == [len(ROWS), one, len(ROWS) - one - no, no]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_understood(command: str) -> None:
    fields = shlex.split(command)[1:]
    parser(fields[0]).parse_args(fields)


@pytest.mark.fast_variants(4)
@pytest.mark.parametrize("command", RUNS)
def test_a_campaign_is_planned(command: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine whose frequencies can be set."""
    monkeypatch.setattr(exclusions, "_why_cache_stays", lambda *_: None)
    tree = cpufreq.pstate_tree(home / "tree")
    fields = shlex.split(re.sub(r"/mnt/\w+", str(home), command))[1:]
    fields += ["--meter", "none", "--sysfs-root", str(tree)]
    options = parsers.parsed(run.COMMAND, fields[1:]).options()
    plan = plans.make(options, suites.find(options.suite))
    assert plan.runs and plan.expected_s > 0
