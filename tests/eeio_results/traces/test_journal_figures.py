"""What ext4's journal did during a phase."""

import pytest

from eeio.traces.jbd2 import Call, Commit, JournalTrace
from eeio.traces.journal_figures import figures


def _sync(end_s: float, took_s: float, commit: int | None, on_device: bool = True) -> Call:
    return Call(7, "fsync", 3, 0, end_s - took_s, end_s, 0, commit=commit, on_device=on_device)


TRACE = JournalTrace(
    commits=(
        Commit(1, 0.5, 0.6, 0.7, 0.8, 0.9),
        Commit(2, 1.9, 1.95, 1.96, 1.97, 2.1),
        Commit(3, 2.5, 2.6, 2.7, 2.8, 2.9),
        Commit(4, 3.9, 4.0, 4.0, 4.0, 4.1),
    ),
    fast_commits=((1.0, 1.5), (2.2, 2.3)),
    calls=(
        _sync(2.1, 0.3, 2),
        _sync(2.5, 0.1, None),
        _sync(2.6, 0.1, None, on_device=False),
        Call(7, "write", 3, 4096, 2.0, 2.2, 4096),
        _sync(4.2, 0.1, 4),
    ),
)


def test_only_what_ended_in_the_window_counts() -> None:
    found = figures(TRACE, 2.0, 4.0)
    assert found == {
        "journal_commits": 2.0,
        "journal_commit_mean_s": pytest.approx((0.2 + 0.4) / 2),
        "journal_fast_commits": 1.0,
        "journal_fsyncs": 2.0,
        "journal_fsync_mean_s": pytest.approx(0.2),
        "journal_fsyncs_waiting": 1.0,
    }


def test_of_nothing_there_is_no_mean() -> None:
    assert figures(TRACE, 5.0, 6.0) == {
        "journal_commits": 0.0, "journal_fast_commits": 0.0, "journal_fsyncs": 0.0,
        "journal_fsyncs_waiting": 0.0,
    }  # fmt: skip
