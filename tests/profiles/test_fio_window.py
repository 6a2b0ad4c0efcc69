"""When the I/O of fio ended: by its own run time, not by a stamp that comes later."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.profiles.harness import Installed

pytestmark = pytest.mark.tools

# A fio whose processes begin at STARTS, run for the longer run time of both directions, and whose
# stamps at the end are at ENDS.
FIO = """#!/bin/sh
for word; do
    case $word in
    --output=*) output=${word#*=} ;;
    --exec_prerun=*) before=${word#*=} ;;
    --exec_postrun=*) after=${word#*=} ;;
    esac
done
for NOW in $STARTS; do export NOW && sh -c "$before"; done
for NOW in $ENDS; do export NOW && sh -c "$after"; done
cat >"$output" <<'END'
{
  "jobs" : [
    {
      "job options" : {
        "runtime" : "7000"
      },
      "read" : {
        "runtime" : 1500,
      },
      "write" : {
        "runtime" : 2000,
      },
      "trim" : {
        "runtime" : 0,
      },
      "job_runtime" : 4000,
    }
  ]
}
END
"""
DATE = """#!/bin/sh
case $1 in
+%N) echo 000000001 ;;
*) echo "$NOW" ;;
esac
"""


@pytest.mark.parametrize(
    ("starts", "ends", "window_ends"),
    [
        ("1795461000.000000000", "1795461002.015000000", ["1795461002.000000000"]),
        (
            "1795461000.000000000 1795461000.500000000",
            "1795461002.250000000 1795461002.750000000",
            # Run time is that of the longest process; one that ended before keeps its stamp.
            ["1795461002.250000000", "1795461002.500000000"],
        ),
        # The clock was set back: the stamps stay, so that the parser sees it.
        ("1795461000.000000000", "1795460000.000000000", ["1795460000.000000000"]),
    ],
)
def test_the_window_ends_with_the_run_time_not_with_the_stamp(
    installed: Callable[[str], Installed],
    tmp_path: Path,
    starts: str,
    ends: str,
    window_ends: list[str],
) -> None:
    fio = installed("fio")
    words = ["operation=read", "request_size=4k", "file_size=4m", f"processes={len(ends.split())}"]
    assert fio.script("pre.sh", *words).returncode == 0
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in (("fio", FIO), ("date", DATE)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    conf = fio.home / "tool.conf"
    lines = conf.read_text().splitlines()
    conf.write_text("\n".join([f"path={programs / 'fio'}", *lines[1:]]) + "\n")
    done = fio.run(
        *words, PATH=f"{programs}:{os.environ['PATH']}", STARTS=starts, ENDS=ends,
        EEIO_OUTPUT_DIR=str(tmp_path / "output"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "output/fio-end.txt").read_text().split() == window_ends
    assert (tmp_path / "output/fio-start.txt").read_text().split() == starts.split()
