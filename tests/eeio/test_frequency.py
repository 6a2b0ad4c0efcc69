"""The processors' frequency on made-up sysfs trees, as acpi-cpufreq and intel_pstate show them."""

import errno
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cpufreq import acpi_tree, bytes_of, pstate_tree, write
from tests.executables import executable
from tests.plugin import Eeio
from tests.processes import ran

from eeio.errors import EeioError, RejectedError
from eeio.machine import frequency, undo
from eeio.machine.frequency import ordered_limits, parse_hz
from eeio.machine.undo import UndoEntry, UndoJournal

TIMEOUT_S = 60

# `eeio` with every write to the tree noted in a log, so that a test can replay them.
LOGGED = textwrap.dedent("""
    import pathlib, sys
    log, write = sys.argv[1], pathlib.Path.write_text
    def logged(path, text, *words, **options):
        with open(log, "a") as file:
            print(path, text.strip(), file=file)
        return write(path, text, *words, **options)
    pathlib.Path.write_text = logged
    from eeio.cli import main
    sys.exit(main(sys.argv[2:]))
""")


TREES: dict[str, Callable[[Path], Path]] = {
    "pstate": pstate_tree,
    "acpi": acpi_tree,
    "acpi-userspace": lambda root: acpi_tree(root, "userspace"),
}


@pytest.fixture(params=list(TREES))
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return TREES[request.param](tmp_path / "tree")


@pytest.fixture
def pstate(tmp_path: Path) -> Path:
    return pstate_tree(tmp_path / "tree")


@pytest.fixture
def acpi(tmp_path: Path) -> Path:
    return acpi_tree(tmp_path / "tree")


@pytest.fixture
def journal(tmp_path: Path) -> UndoJournal:
    return UndoJournal(tmp_path / "journal.json")


def _limits(root: Path) -> dict[Path, int]:
    return {p: int(p.read_text()) for p in root.rglob("scaling_m??_freq")}


def _check_order(limits: dict[Path, int], path: Path, text: str) -> None:
    """Replays one write on `limits`: the lower one may never pass the upper one."""
    if path not in limits:
        return
    limits[path] = int(text)
    low, high = (limits[path.with_name(f"scaling_{end}_freq")] for end in ("min", "max"))
    assert low <= high, f"{path.parent.name}: {low} > {high}"


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch, tree: Path) -> Iterator[list[tuple[Path, str]]]:
    """All writes of this process, each checked as it is made."""
    limits, writes, write = _limits(tree), [], Path.write_text

    def checked(path: Path, text: str, **options: str) -> int:
        _check_order(limits, path, text)
        writes.append((path, text.strip()))
        return write(path, text, **options)

    monkeypatch.setattr(Path, "write_text", checked)
    yield writes
    assert writes


# ---- the order of writes ----

_limit = st.integers(1, 40).map(lambda step: step * 100_000)
_pair = st.tuples(_limit, _limit).map(lambda two: (min(two), max(two)))


@given(_pair, _pair)
def test_limits_never_cross(before: tuple[int, int], after: tuple[int, int]) -> None:
    now = {"scaling_min_freq": before[0], "scaling_max_freq": before[1]}
    for name, value in ordered_limits(before, after):
        assert now[name] != value
        now[name] = value
        assert now["scaling_min_freq"] <= now["scaling_max_freq"]
    assert tuple(now.values()) == after


@given(_pair, _pair, st.integers(0, 3))
def test_notes_bring_limits_back_from_any_state(
    before: tuple[int, int], now: tuple[int, int], repeated: int
) -> None:
    """Also where an undo was killed after some steps, and all are taken again."""
    notes = [("min", before[0]), ("max", before[1]), ("min", 100_000)]
    limits = {"min": now[0], "max": now[1]}
    steps = notes[::-1]
    for name, value in steps[:repeated] + steps:
        limits[name] = value
        assert limits["min"] <= limits["max"]
    assert (limits["min"], limits["max"]) == before


# ---- what there is ----


def test_steps(tmp_path: Path) -> None:
    acpi, pstate = acpi_tree(tmp_path / "a"), pstate_tree(tmp_path / "p")
    assert frequency.steps_hz(acpi) == (1_200_000_000, 1_600_000_000, 2_400_000_000)
    assert frequency.steps_hz(pstate) == tuple(range(800_000_000, 2_400_000_001, 100_000_000))
    for path in pstate.rglob("base_frequency"):
        path.unlink()
    (pstate / "sys/devices/system/cpu/cpufreq/policy1/cpuinfo_max_freq").write_text("2450000\n")
    assert frequency.steps_hz(pstate)[-3:] == (2_300_000_000, 2_400_000_000, 2_450_000_000)


def test_clusters_have_their_common_steps(acpi: Path) -> None:
    policies = acpi / "sys/devices/system/cpu/cpufreq"
    (policies / "policy1/scaling_available_frequencies").write_text("1600000 2400000 3000000\n")
    assert frequency.steps_hz(acpi) == (1_600_000_000, 2_400_000_000)
    (policies / "policy1/scaling_available_frequencies").unlink()
    (policies / "policy1/cpuinfo_max_freq").write_text("2000000\n")
    assert frequency.steps_hz(acpi) == (1_200_000_000, 1_600_000_000)
    (policies / "policy2/scaling_available_frequencies").write_text("1300000\n")
    with pytest.raises(EeioError, match="no frequency in common"):
        frequency.steps_hz(acpi)


def test_no_cpufreq_is_reported(tmp_path: Path, eeio: Eeio) -> None:
    with pytest.raises(EeioError, match=r"this machine shows no cpufreq .* so no frequency"):
        frequency.steps_hz(tmp_path)
    for arguments in (
        (),
        (
            "--format",
            "json",
        ),
        ("--set", "lowest", "--", "true"),
    ):
        done = eeio("record", "frequency", "--sysfs-root", str(tmp_path), *arguments, code=1)
        assert done.stdout == ""
        assert "this machine shows no cpufreq" in done.stderr


def test_a_policy_of_an_offline_processor_is_passed_over(
    pstate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Path.read_text

    def busy(path: Path, **options: str) -> str:
        if path.parent.name == "policy2":
            raise OSError(errno.EBUSY, "busy", str(path))
        return read(path, **options)

    monkeypatch.setattr(Path, "read_text", busy)
    assert frequency.describe(pstate).policies == 2


def test_what_there_is_is_listed(pstate: Path, eeio: Eeio) -> None:
    done = eeio("record", "frequency", "--sysfs-root", str(pstate), "--format", "json")
    body = json.loads(done.stdout)
    assert body["driver"] == "intel_pstate"
    assert (body["turbo"], body["smt"], body["policies"]) == ("on", "on", 3)
    assert body["steps_hz"][0] == 800_000_000
    text = eeio("record", "frequency", "--sysfs-root", str(pstate)).stdout
    assert "governor:  powersave" in text and "0.8 0.9" in text


@pytest.mark.parametrize(
    ("text", "hz"),
    [("1.6GHz", 1_600_000_000), ("1600MHz", 1_600_000_000), ("1600000000", 1_600_000_000),
     ("1600000 khz", 1_600_000_000), ("2.401 GHz", 2_401_000_000)],
)  # fmt: skip
def test_frequencies_are_read(text: str, hz: int) -> None:
    assert parse_hz(text) == hz


@pytest.mark.parametrize("text", ["", "0", "-1GHz", "1.6", "fast", "1e9", "1,6GHz", "1.6THz"])
def test_what_is_no_frequency_is_rejected(text: str) -> None:
    with pytest.raises(RejectedError, match="no frequency"):
        parse_hz(text)


# ---- setting ----


def test_many_frequencies_one_after_another_and_back(
    tree: Path, journal: UndoJournal, watched: list[tuple[Path, str]]
) -> None:
    before = bytes_of(tree)
    frequency.prepare(journal, tree)
    noted = None
    for hz in (1_200_000_000, 2_400_000_000, 1_600_000_000, 2_400_000_000, 1_200_000_000):
        frequency.set_frequency(hz, journal, tree)
        khz = f"{hz // 1000}"
        for policy in (tree / "sys/devices/system/cpu/cpufreq").glob("policy*"):
            if "acpi" in (policy / "scaling_driver").read_text():
                assert (policy / "scaling_governor").read_text().strip() == "userspace"
                assert (policy / "scaling_setspeed").read_text().strip() == khz
            else:
                assert (policy / "scaling_min_freq").read_text().strip() == khz
                assert (policy / "scaling_max_freq").read_text().strip() == khz
        # A long campaign's journal does not grow.
        assert noted in (None, journal.entries)
        noted = journal.entries
    assert (tree / "sys/devices/system/cpu/smt/control").read_text() == "off"
    assert frequency.describe(tree).turbo == "off"
    assert journal.undo_all() == []
    assert bytes_of(tree) == before
    assert not journal.path.exists()


def test_limits_are_noted_before_turbo_lowers_them(pstate: Path, journal: UndoJournal) -> None:
    """A kernel shows a policy's upper limit clamped while turbo is off: that is not the user's."""
    frequency.prepare(journal, pstate)
    entries = [Path(entry.subject).name for entry in journal.entries]
    assert entries[0] == "control"
    assert entries[-1] == "no_turbo"
    limit = pstate / "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq"
    limit.write_text("2400000\n")
    frequency.set_frequency(1_000_000_000, journal, pstate)
    assert journal.undo_all() == []
    assert limit.read_text() == "3900000\n"


@pytest.mark.parametrize("state", ["off", "forceoff", "notsupported", "notimplemented"])
def test_other_smt_states_are_left(pstate: Path, journal: UndoJournal, state: str) -> None:
    control = pstate / "sys/devices/system/cpu/smt/control"
    control.write_text(f"{state}\n")
    frequency.prepare(journal, pstate)
    assert control.read_text() == f"{state}\n"
    assert str(control) not in {entry.subject for entry in journal.entries}


def test_boost_of_each_policy(acpi: Path, journal: UndoJournal) -> None:
    """amd-pstate: own switches follow the common one, so they are put back after it."""
    policies = acpi / "sys/devices/system/cpu/cpufreq"
    for number, state in enumerate((1, 0, 1)):
        write(policies / f"policy{number}", boost=state)
    before = bytes_of(acpi)
    frequency.prepare(journal, acpi)
    assert {p.read_text() for p in policies.rglob("boost")} == {"0"}
    order = [Path(e.subject).parent.name for e in journal.entries if e.subject.endswith("boost")]
    assert order == ["policy0", "policy1", "policy2", "cpufreq"]
    assert journal.undo_all() == []
    assert bytes_of(acpi) == before


def test_turbo_that_is_off_is_left(acpi: Path, journal: UndoJournal) -> None:
    write(acpi / "sys/devices/system/cpu/cpufreq", boost=0)
    frequency.prepare(journal, acpi)
    assert not any(entry.subject.endswith("boost") for entry in journal.entries)
    assert frequency.describe(acpi).turbo == "off"
    (acpi / "sys/devices/system/cpu/cpufreq/boost").unlink()
    assert frequency.describe(acpi).turbo is None


@pytest.mark.parametrize("hz", [700_000_000, 4_000_000_000, 1_600_000_500])
def test_what_cannot_be_reached_touches_nothing(
    pstate: Path, journal: UndoJournal, hz: int
) -> None:
    before = bytes_of(pstate)
    with pytest.raises(RejectedError, match=r"range of policy0 is 0\.8 GHz to 3\.9 GHz"):
        frequency.set_frequency(hz, journal, pstate)
    assert bytes_of(pstate) == before
    assert journal.entries == ()


def test_a_step_that_is_not_listed_is_rejected(acpi: Path, journal: UndoJournal) -> None:
    with pytest.raises(RejectedError, match=r"policy0 has 1\.2 GHz, 1\.6 GHz, 2\.4 GHz"):
        frequency.set_frequency(1_700_000_000, journal, acpi)
    assert journal.entries == ()


def test_a_kernel_that_takes_another_value_is_an_error(
    pstate: Path, journal: UndoJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_text
    before = bytes_of(pstate)

    def clamped(path: Path, text: str, **options: str) -> int:
        if path.name == "scaling_max_freq" and path.parent.name == "policy1":
            text = "2000000"
        return write(path, text, **options)

    monkeypatch.setattr(Path, "write_text", clamped)
    with pytest.raises(EeioError, match=r"scaling_max_freq: set to 2100000, .* 2000000"):
        frequency.set_frequency(2_100_000_000, journal, pstate)
    monkeypatch.undo()
    assert journal.undo_all() == []
    assert bytes_of(pstate) == before


def test_files_that_cannot_be_written_are_named_and_nothing_is_touched(
    pstate: Path, journal: UndoJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = bytes_of(pstate)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    for act in (frequency.prepare, lambda j, r: frequency.set_frequency(10**9, j, r)):
        with pytest.raises(EeioError, match=r"cannot be written; run as root"):
            act(journal, pstate)
    assert journal.entries == ()
    assert bytes_of(pstate) == before


# ---- the journal ----


def test_many_policies_are_noted_and_put_back_with_few_writes_to_disk(
    tmp_path: Path, journal: UndoJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = pstate_tree(tmp_path / "large", policies=128)
    before, syncs, sync = bytes_of(root), [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: syncs.append(file) or sync(file))
    frequency.prepare(journal, root)
    frequency.set_frequency(1_600_000_000, journal, root)
    frequency.set_frequency(1_700_000_000, journal, root)
    assert len(syncs) == 4  # SMT and the new file's folder, policies, turbo
    assert journal.undo_all() == []
    assert len(syncs) == 4  # an empty journal is deleted
    assert bytes_of(root) == before


def test_a_setting_that_is_stuck_keeps_its_older_entries(
    tmp_path: Path, journal: UndoJournal
) -> None:
    """Else the next try would leave the newer entry's value, which is not the beginning."""
    stuck, free = tmp_path / "stuck", tmp_path / "free"
    entries = [UndoEntry("setting", str(stuck), "first"), UndoEntry("setting", str(free), "first"),
               UndoEntry("setting", str(stuck), "second")]  # fmt: skip
    stuck.mkdir()
    journal.add_all(entries)
    assert len(journal.undo_all()) == 1
    assert UndoJournal(journal.path).entries == (entries[0], entries[2])
    stuck.rmdir()
    assert journal.undo_all() == []
    assert (stuck.read_text(), free.read_text()) == ("first", "first")


def test_what_was_put_back_before_an_interrupt_is_not_kept(
    tmp_path: Path, journal: UndoJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [UndoEntry("setting", str(tmp_path / name), "x") for name in ("one", "two", "three")]
    journal.add_all(entries)
    put_back = undo._RESTORE["setting"]

    def interrupted(entry: UndoEntry) -> None:
        if entry is entries[1]:
            raise KeyboardInterrupt
        put_back(entry)

    monkeypatch.setitem(undo._RESTORE, "setting", interrupted)
    with pytest.raises(KeyboardInterrupt):
        journal.undo_all()
    assert UndoJournal(journal.path).entries == tuple(entries[:2])
    monkeypatch.undo()
    assert journal.undo_all() == []


def test_of_equal_entries_the_newest_is_forgotten(journal: UndoJournal) -> None:
    same, other = UndoEntry("setting", "/a", "1"), UndoEntry("setting", "/b", "1")
    journal.add_all([same, other, same])
    journal.forget(same)
    assert journal.entries == (same, other)


class Killed(BaseException):
    """Stands in for SIGKILL: nothing is written after it."""


class Killer:
    """Kills at the n-th write of a setting, before it is made or after, and checks all of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._write, self._save = Path.write_text, UndoJournal._write
        self._left, self._before, self._limits = 0, False, dict[Path, int]()
        monkeypatch.setattr(Path, "write_text", lambda *a, **o: self._setting(*a, **o))
        monkeypatch.setattr(UndoJournal, "_write", lambda journal: self._journal(journal))

    def arm(self, at_write: int, before: bool, limits: dict[Path, int]) -> None:
        self._left, self._before, self._limits = at_write, before, limits

    def _setting(self, path: Path, text: str, **options: str) -> int:
        self._left -= 1
        if self._left == 0 and self._before:
            raise Killed
        written = self._write(path, text, **options)
        _check_order(self._limits, path, text)
        if self._left == 0:
            raise Killed
        return written

    def _journal(self, journal: UndoJournal) -> None:
        if self._left > 0:
            self._save(journal)


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize("before_write", [True, False])
@pytest.mark.parametrize("kind", ["pstate", "acpi"])
def test_killed_at_any_write_and_again_while_putting_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, before_write: bool
) -> None:
    killer, never, path = Killer(monkeypatch), 1 << 30, tmp_path / "journal.json"
    kills = 0
    for first in range(1, never):
        for second in range(1, never):
            killer.arm(never, False, {})
            shutil.rmtree(tmp_path / "tree", ignore_errors=True)
            tree = TREES[kind](tmp_path / "tree")
            beginning = bytes_of(tree)
            killer.arm(first, before_write, _limits(tree))
            try:
                journal = UndoJournal(path)
                frequency.prepare(journal, tree)
                frequency.set_frequency(1_200_000_000, journal, tree)
                frequency.set_frequency(2_400_000_000, journal, tree)
            except Killed:
                kills += 1
            else:
                assert kills > 100
                return
            killer.arm(second, before_write, _limits(tree))
            try:
                assert UndoJournal(path).undo_all() == []
            except Killed:
                kills += 1
                killer.arm(never, False, _limits(tree))
                assert UndoJournal(path).undo_all() == []
            else:
                second = never
            assert bytes_of(tree) == beginning, (first, second)
            assert not path.exists()
            if second == never:
                break


# ---- verifying ----


def test_what_is_measured_decides(pstate: Path) -> None:
    def at(*found_hz: float) -> frequency.Achieved:
        return frequency.verify(1_000_000_000, pstate, lambda cpu: found_hz[cpu])

    good = at(1.00e9, 0.99e9, 1.019e9)
    assert (good.reached, good.achieved_hz, good.reason) == (True, 1.019e9, None)
    bad = at(1.00e9, 1.01e9, 0.95e9)
    assert (bad.reached, bad.achieved_hz, bad.reason) == (False, 0.95e9, "not reached: -5.0%")


def test_what_cannot_be_measured_is_unverified(pstate: Path) -> None:
    def no_counter(cpu: int) -> float:
        raise EeioError(f"processor {cpu} has no counter")

    found = frequency.verify(1_000_000_000, pstate, no_counter)
    assert (found.reached, found.achieved_hz) == (None, None)
    assert found.reason == "processor 0 has no counter"
    assert "machine's tree" in str(frequency.verify(1_000_000_000, pstate).reason)


def test_cycles_are_counted_or_the_reason_is_reported() -> None:
    cpu, before = min(os.sched_getaffinity(0)), os.sched_getaffinity(0)
    try:
        assert 1e8 < frequency.cycles_hz(cpu) < 1e10
    except EeioError as error:
        assert "cycle counter" in str(error)
    with pytest.raises(EeioError, match="processor 100000 cannot be used"):
        frequency.cycles_hz(100_000)
    assert os.sched_getaffinity(0) == before


# Intel's Core i9-12900K as the kernel's perf documentation (tools/perf/Documentation/
# intel-hybrid.txt) shows it, and the RK3399 of a RockPro64: two Cortex-A72 and four A53.
HYBRID = {
    "cpu_core": ("4", "0-15", "cpu-cycles", "event=0x3c"),
    "cpu_atom": ("10", "16-23", "cpu-cycles", "event=0x3c"),
}
BIG_LITTLE = {
    "armv8_cortex_a53": ("7", "0-3", "cpu_cycles", "event=0x0011"),
    "armv8_cortex_a72": ("8", "4-5", "cpu_cycles", "event=0x0011"),
}


def _units(root: Path, units: dict[str, tuple[str, str, str, str]]) -> Path:
    for name, (kind, cpus, event, config) in units.items():
        unit = root / "sys/bus/event_source/devices" / name
        write(unit, type=kind, cpus=cpus)
        write(unit / "events", **{event: config})
    return root


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        (HYBRID, {0: (4, 0x3C), 15: (4, 0x3C), 16: (10, 0x3C), 23: (10, 0x3C), 24: (0, 0)}),
        (BIG_LITTLE, {3: (7, 0x11), 4: (8, 0x11)}),
        # One kind of processor: the unit `cpu` tells no processors.
        ({}, {0: (0, 0)}),
        ({"cpu_core": ("4", "0-99999999999", "cpu-cycles", "event=0x3c")}, {0: (0, 0)}),
        ({"cpu_core": ("4", "", "cpu-cycles", "event=0x3c")}, {0: (0, 0)}),
        ({"uncore_imc": ("20", "0-15", "cas_count_read", "event=0x04")}, {0: (0, 0)}),
    ],
)
def test_each_kind_of_processor_is_counted_by_its_own_unit(
    tmp_path: Path,
    units: dict[str, tuple[str, str, str, str]],
    expected: dict[int, tuple[int, int]],
) -> None:
    root = _units(tmp_path, units)
    assert {cpu: frequency.cycle_event(cpu, root) for cpu in expected} == expected


def test_the_event_of_the_kind_is_the_one_that_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    def counter(*event: int) -> int:
        opened.append(event)
        read, write_end = os.pipe()
        os.write(write_end, struct.pack("=3Q", 30_000_000, 10_000_000, 10_000_000))
        os.close(write_end)
        return read

    monkeypatch.setattr(frequency, "cycle_event", lambda cpu: (10, 0x3C))
    monkeypatch.setattr(frequency, "_open_cycles", counter)
    assert frequency.cycles_hz(min(os.sched_getaffinity(0)), 0.0) == 3e9
    assert opened == [(10, 0x3C)]


# ---- the command, however it ends ----


def _start(root: Path, log: Path, *command: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", LOGGED, str(log), "record", "frequency", "--sysfs-root", str(root),
         "--set", "1.6GHz", "--", *command],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _replay(log: Path, limits: dict[Path, int]) -> None:
    for line in log.read_text().splitlines():
        path, _, value = line.partition(" ")
        _check_order(limits, Path(path), value)


# Tells that it runs, and at what, then waits for an end from outside.
WAITING = ("sh", "-c", "echo running; exec sleep 1000")


@pytest.mark.fast_variants(4)
@pytest.mark.parametrize("end", ["success", "failure", "killed", "error", "SIGINT", "SIGTERM"])
def test_everything_is_put_back(home: Path, tree: Path, end: str) -> None:
    before, limits, log = bytes_of(tree), _limits(tree), home / "log"
    commands = {
        "success": ("cat", *map(str, tree.rglob("smt/control"))),
        "failure": ("sh", "-c", "exit 7"),
        "killed": ("sh", "-c", "kill -KILL $$"),
        "error": (str(home / "broken"),),
    }
    executable(home / "broken", "neither a program nor a script")
    process = _start(tree, log, *commands.get(end, WAITING))
    if end.startswith("SIG"):
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        assert bytes_of(tree) != before
        process.send_signal(signal.Signals[end])
    output, errors = process.communicate(timeout=TIMEOUT_S)
    codes = {"success": 0, "failure": 1, "error": 1, "killed": 137, "SIGINT": 130, "SIGTERM": 143}
    assert process.returncode == codes[end], errors
    assert "frequency 1.6 GHz: unverified" in errors
    if end == "success":
        assert output == "off"
    assert bytes_of(tree) == before
    _replay(log, limits)
    assert not list((home / "state/eeio/undo").glob("*"))


def test_restore_after_sigkill(home: Path, tree: Path, eeio: Eeio) -> None:
    before, limits, log = bytes_of(tree), _limits(tree), home / "log"
    process = _start(tree, log, *WAITING)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGKILL)
    process.wait(TIMEOUT_S)
    assert bytes_of(tree) != before
    ran([sys.executable, "-c", LOGGED, str(log), "doctor", "restore"])
    # The program that was left running is ended: its pipe closes.
    assert process.communicate(timeout=TIMEOUT_S)[0] == ""
    assert bytes_of(tree) == before
    _replay(log, limits)
    assert eeio("doctor", "restore").stderr.strip() == "no settings to restore"


def test_the_next_run_restores_first(home: Path, tree: Path, eeio: Eeio) -> None:
    """What the killed run had set is not taken for the beginning."""
    before = bytes_of(tree)
    process = _start(tree, home / "log", *WAITING)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGKILL)
    process.wait(TIMEOUT_S)
    done = eeio(
        "record", "frequency", "--sysfs-root", str(tree), "--set", "highest", "--format", "json",
        "--", "true",
    )  # fmt: skip
    process.communicate(timeout=TIMEOUT_S)
    body = json.loads(done.stdout)
    assert (body["wanted_hz"], body["achieved_hz"], body["exit_code"]) == (2_400_000_000, None, 0)
    assert "machine's tree" in body["reason"]
    assert bytes_of(tree) == before


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--set", "1.6GHz"), "go together"),
        (("--", "true"), "go together"),
        (("--set", "soon", "--", "true"), "no frequency"),
        (("--set", "9GHz", "--", "true"), "cannot be reached"),
        (("--set", "lowest", "--", "nosuchprogram"), "no such program"),
    ],
)
def test_wrong_use_is_rejected(
    pstate: Path, eeio: Eeio, arguments: tuple[str, ...], reason: str
) -> None:
    before = bytes_of(pstate)
    done = eeio("record", "frequency", "--sysfs-root", str(pstate), *arguments, code=2)
    assert reason in done.stderr
    assert bytes_of(pstate) == before
