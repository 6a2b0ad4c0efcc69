"""SMT and turbo as factors of a campaign: switched between runs, and put back in a safe order."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cpufreq import acpi_tree, bytes_of, pstate_tree
from tests.dummy import suite
from tests.plugin import Eeio

from eeio.errors import RejectedError
from eeio.machine import frequency
from eeio.machine.undo import UndoJournal

ARGUMENTS = "level=filesystem operation=read spatiality=sequential sleep_s=0.1"


@pytest.fixture
def journal(tmp_path: Path) -> UndoJournal:
    return UndoJournal(tmp_path / "journal")


@pytest.mark.parametrize("make", [pstate_tree, acpi_tree])
def test_both_are_switched_again_and_again_and_put_back(
    tmp_path: Path, journal: UndoJournal, make: Callable[[Path], Path]
) -> None:
    root = make(tmp_path / "tree")
    before = bytes_of(root)
    for smt, turbo in (("on", "off"), ("off", "on"), ("off", "off"), ("on", "on"), ("off", "on")):
        frequency.switch_smt_and_turbo(smt, turbo, journal, root)
        assert (frequency.smt_state(root), frequency.turbo_state(root)) == (smt, turbo)
    # The newest is undone first: the processors are back before their own switches and limits.
    assert journal.entries[-1].subject == str(frequency.smt_control(root))
    assert journal.undo_all() == []
    assert bytes_of(root) == before


def test_what_is_not_requested_is_left(tmp_path: Path, journal: UndoJournal) -> None:
    root = pstate_tree(tmp_path / "tree")
    frequency.switch_smt_and_turbo("off", None, journal, root)
    assert [entry.subject for entry in journal.entries] == [str(frequency.smt_control(root))]
    assert frequency.turbo_state(root) == "on"


@pytest.mark.parametrize(
    ("smt", "turbo", "reason"),
    [
        (("on", "maybe"), (), "--smt maybe: on, off, or on,off"),
        (("off",), (), "none to switch .the kernel's word: notsupported"),
        ((), ("off",), "no cpufreq"),
    ],
)
def test_what_cannot_be_switched_is_rejected(
    tmp_path: Path, smt: tuple[str, ...], turbo: tuple[str, ...], reason: str
) -> None:
    control = tmp_path / "sys/devices/system/cpu/smt/control"
    control.parent.mkdir(parents=True)
    control.write_text("notsupported\n")
    with pytest.raises(RejectedError, match=reason):
        frequency.check_smt_and_turbo(smt, turbo, tmp_path)


def test_a_campaign_has_them_as_factors(home: Path, eeio: Eeio) -> None:
    root = pstate_tree(home / "tree")
    before = bytes_of(root)
    eeio.run(
        suite(home, ARGUMENTS), "--name", "c", "--meter", "none", "--sysfs-root", str(root),
        "--smt", "on,off", "--turbo", "off", code=(0, 3),
    )  # fmt: skip
    assert bytes_of(root) == before
    design = json.loads((home / "data/eeio/results/c/campaign.json").read_text())
    found = {(e["smt"], e["turbo"]) for e in design["experiments"]}
    assert found == {("on", "off"), ("off", "off")}
    reported = eeio.json("compare", "c")
    factors = {finding["factor"] for group in reported["groups"] for finding in group["findings"]}
    assert "smt" in factors


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--frequency", "lowest", "--smt", "on"), "requires SMT and turbo off"),
        (("--smt", "sometimes"), "on, off, or on,off"),
    ],
)
def test_wrong_use_touches_nothing(
    home: Path, eeio: Eeio, arguments: tuple[str, ...], reason: str
) -> None:
    root = pstate_tree(home / "tree")
    done = eeio.plan(suite(home, ARGUMENTS), "--sysfs-root", str(root), *arguments, code=2)
    assert reason in done.stderr
