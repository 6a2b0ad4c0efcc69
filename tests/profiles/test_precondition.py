"""What eeio-fio writes before it measures a drive, and requests that are many at once."""

import json
from pathlib import Path

import pytest

from tests.executables import executable
from tests.profiles.harness import Installed

pytestmark = pytest.mark.tools

FACTORS = [
    "level=device", "operation=mixed", "spatiality=random", "request_size=4k", "file_size=16m",
    "runtime_s=1", "engine=libaio", "iodepth=4", "read_share=70",
]  # fmt: skip


def logged(fio: Installed) -> list[list[str]]:
    """fio's own words at each call of pre.sh from now on; it still does its work."""
    return [line.split() for line in (fio.home / "calls").read_text().splitlines()]


def test_twice_is_written_twice_and_once_for_all_experiments(fio: Installed) -> None:
    wrapper = fio.home / "fio-logged"
    tool = (fio.home / "tool.conf").read_text()
    path = next(x for x in tool.splitlines() if x.startswith("path=")).removeprefix("path=")
    executable(
        wrapper,
        f'#!/bin/sh\necho "$*" >>"{fio.home}/calls"\n'
        f'exec "{path}" "$@" --output-format=json --output="{fio.home}/told.json"\n',
    )
    (fio.home / "tool.conf").write_text(tool.replace(f"path={path}", f"path={wrapper}"))
    for arguments in (FACTORS, [*FACTORS, "precondition=250"], [*FACTORS, "precondition=250"]):
        fio.script("pre.sh", *arguments)
    once, more = logged(fio)
    assert "--bs=1m" in once and not any(word.startswith("--io_size") for word in once)
    assert "--bs=128k" in more
    (job,) = json.loads((fio.home / "told.json").read_text())["jobs"]
    # fio writes whole requests: of a hundredth of 16 MiB the rest is lost.
    assert job["write"]["io_bytes"] == pytest.approx(2.5 * (16 << 20), rel=0.001)
    (file,) = Path(fio.environment["EEIO_DIRECTORY"]).glob("eeio-scratch/eeio-fio.0.0")
    assert file.stat().st_size == 16 << 20


def test_a_mix_is_that_which_was_requested(fio: Installed) -> None:
    fio.script("pre.sh", *FACTORS)
    fio.run(*FACTORS)
    (job,) = json.loads((fio.home / "output/fio.json").read_text())["jobs"]
    read, write = (job[way]["total_ios"] for way in ("read", "write"))
    assert read / (read + write) == pytest.approx(0.7, abs=0.03)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("precondition=99", "precondition=99: give a whole number from 100 to 1000"),
        ("precondition=2x", "precondition=2x"),
        ("engine=psync", "iodepth=4: engine=psync has one request at a time"),
        ("operation=read", "read_share=70: only for operation=mixed"),
        ("read_share=100", "read_share=100"),
    ],
)
def test_what_cannot_be_is_rejected(fio: Installed, word: str, message: str) -> None:
    done = fio.script("pre.sh", *FACTORS, word, code=2)
    assert message in done.stderr and done.stderr.count("\n") == 1
