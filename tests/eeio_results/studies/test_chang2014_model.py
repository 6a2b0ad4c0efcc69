"""Journal traces of the real kernel, and the equations of Chang et al. on them."""

import csv
import gzip
import json
import re
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eeio.errors import ToolOutputError
from eeio.studies.chang2014.journal_model import metrics
from eeio.traces import jbd2, journal_waits
from eeio.traces.jbd2 import Call, Commit, JournalTrace
from eeio.traces.journal_waits import Commits, FileTask, blocking_of, file_tasks

DATA = Path(__file__).parents[2] / "data/journal/6.18"


def _trace(name: str) -> JournalTrace:
    return jbd2.load(DATA / name / "journal.gz")


def _children_bytes_per_s(name: str) -> float:
    text = (DATA / name / "stdout.txt").read_text()
    found = re.search(
        r"Children see throughput for +\d+ initial writers\s*= *([\d.]+) kB/sec", text
    )
    assert found
    return float(found[1]) * 1024


@pytest.mark.parametrize(
    ("name", "threads"),
    [("iozone-64-ext4", 64), ("iozone-64-delayjc", 64), ("iozone-16-fast-commit", 16)],
)
def test_the_trace_reports_iozone_s_own_figure(name: str, threads: int) -> None:
    found = metrics(_trace(name))
    assert found["threads"] == threads
    ratio = found["model_bandwidth_bytes_per_s"] / _children_bytes_per_s(name)
    assert ratio == pytest.approx(1.0, abs=0.02)


def test_every_write_and_fsync_of_iozone_is_found() -> None:
    tasks = file_tasks(_trace("iozone-64-ext4").calls)
    assert len(tasks) == 64
    # 128 KiB in records of 32 KiB, then the timed fsync and the one after it.
    assert all(len(task.writes) == 4 and task.bytes_moved == 128 << 10 for task in tasks)
    assert all(len(task.syncs) == 2 for task in tasks)


def test_what_the_commits_did_to_64_threads() -> None:
    found = metrics(_trace("iozone-64-ext4"))
    assert found["commits"] == 3
    # Newer kernels let a writer go on as soon as the commit has its copy.
    assert (found["threads_not_blocked"], found["threads_ended_inside"]) == (46, 18)
    assert found["blocked"] == 18
    assert found["unblocked_bandwidth_bytes_per_s"] > found["model_bandwidth_bytes_per_s"]
    assert found["until_durable_max_s"] >= found["until_durable_mean_s"] > 0


def test_a_delayed_commit_is_one_and_blocks_nobody() -> None:
    found = metrics(_trace("iozone-64-delayjc"))
    assert (found["commits"], found["blocked"], found["threads_behind_a_commit"]) == (1, 0, 0)


def test_fast_commits_are_counted_apart() -> None:
    found = metrics(_trace("iozone-16-fast-commit"))
    # 32 fsyncs tried one each; the kernel's own counter (`fc =`) went from 151 to 154.
    assert (found["commits"], found["fast_commits"]) == (0, 3)


def _own_calls() -> dict[int, list[dict[str, str]]]:
    by_task = defaultdict(list)
    with (DATA / "metadata-8/calls.csv").open() as file:
        for row in csv.DictReader(file):
            by_task[int(row["pid"])].append(row)
    return by_task


def test_creation_rates_agree_with_the_program() -> None:
    found = metrics(_trace("metadata-8"))
    phase = json.loads((DATA / "metadata-8/eeio.json").read_text())["phases"][0]["metrics"]
    for number in ("9", "10"):
        ratio = found[f"model_rate_eq{number}_per_s"] / phase[f"rate_eq{number}_per_s"]
        assert ratio == pytest.approx(1.0, abs=0.02)


def test_calls_are_those_that_the_program_made() -> None:
    """Call by call: the kernel's stamps lie inside the program's, give or take a microsecond."""
    tasks = defaultdict(list)
    for task in file_tasks(_trace("metadata-8").calls):
        tasks[task.task].append(task)
    own = _own_calls()
    assert set(tasks) == set(own)
    for pid, mine in tasks.items():
        syncs = [row for row in own[pid] if row["call"] == "fsync"]
        assert len(syncs) == len(mine) == 8
        for row, task in zip(syncs, mine, strict=True):
            start_s, end_s = float(row["start_monotonic_s"]), float(row["end_monotonic_s"])
            assert start_s - 2e-6 <= task.syncs[0].start_s <= task.syncs[0].end_s <= end_s + 2e-6


def test_the_serving_commit_is_the_one_that_woke_the_caller() -> None:
    """It ended while the call waited, and what was created was not committed before it."""
    trace = _trace("metadata-8")
    commits = {commit.transaction: commit for commit in trace.commits}
    served = [call for call in trace.calls if call.commit in commits]
    assert len(served) >= 60
    for call in served:
        commit = commits[call.commit or 0]
        assert call.start_s < commit.end_s <= call.end_s


def test_overlap_in_time_does_not_make_a_commit_serve_a_call() -> None:
    """IOzone's second fsync finds everything committed, and only flushes the disk, though commits
    end meanwhile: nobody wakes it."""
    trace = _trace("iozone-64-ext4")
    bystanders = [
        call
        for call in trace.calls
        if call.on_device and any(call.start_s < c.end_s < call.end_s for c in trace.commits)
    ]
    assert sum(call.commit is None for call in bystanders) == 48
    assert all(task.syncs[0].commit is not None for task in file_tasks(trace.calls))


def test_an_interrupt_that_wakes_a_caller_is_no_commit() -> None:
    """The disk answers the caller's own flush while the journal's thread still runs."""
    stamps = [
        f"jbd2/loop0-8-70 [000] ..... 1.00000{n}: jbd2_{stamp}: dev 7,0 transaction 5 sync 0"
        for n, stamp in enumerate(jbd2.STAMPS)
    ]
    enter = "a-b [1]-99 [001] ..... 1.000000: sys_fsync(fd: 3)"
    leave = "a-b [1]-99 [001] ..... 1.000009: sys_fsync -> 0x0"
    for flags, commit in (("d..3.", 5), ("dN.3.", 5), ("d.h7.", None), ("d.s4.", None)):
        waking = f"jbd2/loop0-8-70 [000] {flags} 1.000008: sched_waking: comm=a pid=99 prio=120"
        (call,) = jbd2.parse([jbd2.HEADER, enter, *stamps, waking, leave]).calls
        assert call.commit == commit


def test_commits_have_their_stamps_in_order() -> None:
    for name in ("iozone-64-ext4", "metadata-8"):
        for c in _trace(name).commits:
            assert c.start_s <= c.locking_s <= c.flushing_s <= c.logging_s <= c.end_s


def _task(start_s: float, end_s: float) -> FileTask:
    write = Call(1, "write", 3, 4096, start_s, end_s, 4096)
    sync = Call(1, "fsync", 3, 0, end_s, end_s + 0.01, 0, on_device=True)
    return FileTask(1, None, (write,), (sync,), None)


@pytest.mark.parametrize(
    ("start_s", "end_s", "kind", "delayed_s"),
    [
        (0.0, 0.5, "not_blocked", 0.0),  # over before the commit begins
        (0.9, 2.2, "fully_blocked", 1.0),
        (1.5, 2.2, "partly_blocked", 0.5),
        (1.2, 1.4, "ended_inside", 0.2),
        (0.9, 1.4, "ended_inside", 0.4),
        (1.9995, 2.0002, "not_blocked", 0.0),  # shorter than a blocked write is
        (2.5, 3.0, "not_blocked", 0.0),
    ],
)
def test_the_four_cases(start_s: float, end_s: float, kind: str, delayed_s: float) -> None:
    commits = Commits([Commit(7, 1.0, 1.1, 1.2, 1.3, 2.0)])
    found = blocking_of(_task(start_s, end_s), commits)
    assert found.kind == kind
    assert found.held_s == pytest.approx(delayed_s)
    assert found.write_s == pytest.approx(end_s - start_s)


@given(
    start_s=st.floats(0, 10), took_s=st.floats(0, 10), begin_s=st.floats(0, 10),
    commit_s=st.floats(0, 10),
)  # fmt: skip
def test_equations_5_and_6_are_identities(
    start_s: float, took_s: float, begin_s: float, commit_s: float
) -> None:
    """What docs/studies/chang2014.md says of them."""
    commit = Commit(1, begin_s, begin_s, begin_s, begin_s, begin_s + commit_s)
    complete_s = journal_waits.write_time_s(start_s, start_s + took_s)
    for equation in (journal_waits.fully_blocked_s, journal_waits.partly_blocked_s):
        assert equation(start_s, start_s + took_s, commit) == pytest.approx(complete_s, abs=1e-9)


def test_a_trace_with_holes_is_reported() -> None:
    with gzip.open(DATA / "metadata-8/journal.gz", "rt") as file:
        lines = file.read().replace("# overruns: 0", "# overruns: 12").splitlines()
    assert jbd2.parse([*lines, "CPU:1 [LOST 12 EVENTS]"]).overruns == 12


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an empty file"),
        ("# tracer: nop\n", "not a journal trace"),
        (f"{jbd2.HEADER}\nnot an event at all\n", ":2: not an event"),
        (f"{jbd2.HEADER}\n# overruns: many\n", "overruns"),
    ],
)
def test_other_texts_are_rejected(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text(text)
    with pytest.raises(ToolOutputError, match=message):
        jbd2.load(path)


def test_a_truncated_file_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "journal.gz"
    path.write_bytes((DATA / "metadata-8/journal.gz").read_bytes()[:5000])
    with pytest.raises(ToolOutputError, match="not a complete journal trace"):
        jbd2.load(path)


def test_without_a_sync_on_the_device_there_are_no_figures() -> None:
    write = Call(1, "write", 1, 10, 0.0, 0.1, 10)
    elsewhere = Call(1, "fsync", 1, 0, 0.1, 0.2, 0)
    assert metrics(JournalTrace(calls=(write, elsewhere))) == {}


def test_files_one_after_the_other_are_one_threads_throughput() -> None:
    """Ten files of 4 KiB in 10 x 0.1 s: 40 KiB/s, not ten times that."""
    calls = []
    for number in range(10):
        start_s = number / 5
        calls += [
            Call(1, "write", 3, 4096, start_s, start_s + 0.06, 4096),
            Call(1, "fsync", 3, 0, start_s + 0.06, start_s + 0.1, 0, on_device=True),
            Call(1, "close", 3, 0, start_s + 0.1, start_s + 0.11, 0),
        ]
    found = metrics(JournalTrace(calls=tuple(calls)))
    assert found["model_bandwidth_bytes_per_s"] == pytest.approx(40960)
    assert found["threads"] == 1


def test_each_fsync_of_a_log_that_is_appended_to_counts() -> None:
    """One descriptor, three appends of 4 KiB, each synchronized: 1 ms, 2 ms and 6 ms."""
    calls = [Call(1, "openat", 3, 0, 0.0, 0.001, 3, creates=True)]
    for start_s, sync_s in ((1.0, 0.001), (2.0, 0.002), (3.0, 0.006)):
        end_s = start_s + 0.001
        calls.append(Call(1, "write", 3, 4096, start_s, end_s, 4096))
        calls.append(Call(1, "fsync", 3, 0, end_s, end_s + sync_s, 0, on_device=True))
    calls.append(Call(1, "close", 3, 0, 4.0, 4.001, 0))
    tasks = file_tasks(calls)
    assert [(task.bytes_moved, len(task.syncs)) for task in tasks] == [(4096, 1)] * 3
    found = metrics(JournalTrace(calls=tuple(calls)))
    assert found["until_durable_mean_s"] == pytest.approx(0.003)
    assert found["model_bandwidth_bytes_per_s"] == pytest.approx(3 * 4096 / 0.012)


@pytest.mark.parametrize(("took_s", "model"), [(0.002, True), (0.0, False)])
def test_a_thread_without_time_of_its_own_leaves_no_sum(took_s: float, model: bool) -> None:
    """Thread 2's one write lies in the commit from end to end, or takes less than the clock shows:
    the sum over the others was smaller with the commits taken away than with them."""
    calls = []
    for task, end_s in ((1, 1.001), (2, 1.0 + took_s)):
        calls += [
            Call(task, "write", 3, 4096, 1.0, end_s, 4096),
            Call(task, "fsync", 3, 0, 1.5, 2.5, 0, on_device=True),
        ]
    trace = JournalTrace(commits=(Commit(7, 0.5, 0.6, 0.7, 0.8, 2.0),), calls=tuple(calls))
    found = metrics(trace, includes_sync=False)
    assert ("model_bandwidth_bytes_per_s" in found) == model
    assert "unblocked_bandwidth_bytes_per_s" not in found


def test_the_few_that_jbd2_served_do_not_tell_of_those_that_fast_commits_did() -> None:
    sync = Call(1, "fsync", 3, 0, 1.0, 1.2, 0, commit=7, on_device=True)
    commit = Commit(7, 1.1, 1.11, 1.12, 1.13, 1.19)
    found = metrics(JournalTrace(commits=(commit,), calls=(sync,)))
    assert found["commit_wait_mean_s"] == pytest.approx(0.1)
    others = [Call(1, "fsync", 4 + n, 0, 2.0 + n, 2.5 + n, 0, on_device=True) for n in range(9)]
    fast = tuple((call.start_s, call.end_s) for call in others)
    found = metrics(JournalTrace(commits=(commit,), fast_commits=fast, calls=(sync, *others)))
    assert found["fast_commits"] == 9 and found["until_durable_mean_s"] == pytest.approx(0.47)
    assert not {"commit_wait_mean_s", "commit_wait_max_s", "threads_behind_a_commit"} & set(found)
