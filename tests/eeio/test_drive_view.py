"""What the drive saw of a run: requests by the kernel's block layer."""

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.campaigns import records_in
from tests.dummy import suite as dummy_suite
from tests.mounts import attached, mounted, sparse
from tests.plugin import Eeio

from eeio.errors import EeioError
from eeio.machine.filesystem import block_device
from eeio.machine.undo import UndoJournal
from eeio.measure.campaign.probes import DriveRequests, DriveView
from eeio.measure.journal import trace
from eeio.record.run import Durable, Phase
from eeio.traces.block import Issued
from eeio.traces.order import Request

BEGAN_S = 1000.0


def phase(**changes: Any) -> Phase:
    written = Phase(
        "write", "write", "sequential", 4096, 1 << 20, 1e6, 1.0, 2.0, "test", until_durable=None
    )
    return replace(written, **changes)


def issued(first_s: float, reads: bool, step: int, count: int = 20) -> list[Issued]:
    return [
        Issued(BEGAN_S + first_s + 0.01 * turn, reads, Request(turn * step, 4096))
        for turn in range(count)
    ]


OBSERVED = DriveRequests(
    (*issued(1.0, True, 8192), *issued(1.0, False, 4096), *issued(3.0, False, 12288))
)


def order_of(found: Phase) -> tuple[str | None, str | None]:
    return found.spatiality_seen, found.spatiality_seen_by


def test_requests_of_the_phase_and_its_operation_count() -> None:
    assert order_of(OBSERVED.add_to(phase(), BEGAN_S, 1)) == ("sequential", "drive")
    reading = phase(operation="read")
    assert order_of(OBSERVED.add_to(reading, BEGAN_S, 1)) == ("strided by 8192 bytes", "drive")
    later = phase(start_s=2.9, end_s=4.0)
    assert order_of(OBSERVED.add_to(later, BEGAN_S, 1)) == ("strided by 12288 bytes", "drive")


def test_what_is_written_back_until_durable_is_the_phase_s() -> None:
    early = phase(start_s=2.5, end_s=2.6)
    assert "0 requests reached the drive" in str(
        OBSERVED.add_to(early, BEGAN_S, 1).spatiality_seen_reason
    )
    durable = replace(early, until_durable=Durable(4.0, 1e6, "syncfs"))
    assert order_of(OBSERVED.add_to(durable, BEGAN_S, 1)) == ("strided by 12288 bytes", "drive")


def test_what_a_program_knows_of_its_own_requests_stays() -> None:
    own = phase(spatiality_seen="random", spatiality_seen_by="requests")
    assert OBSERVED.add_to(own, BEGAN_S, 1) == own
    metadata = phase(operation="metadata")
    assert OBSERVED.add_to(metadata, BEGAN_S, 1) == metadata


@pytest.mark.parametrize(
    ("seen", "of", "reason"),
    [
        (DriveRequests(reason="tracing the drive's requests needs root"), phase(), "needs root"),
        (
            OBSERVED,
            phase(start_s=None, end_s=None, window_source="none: test"),
            "its time is unknown",
        ),
        (DriveRequests(OBSERVED.requests, BEGAN_S + 0.5), phase(), "the 60 recorded requests"),
        (OBSERVED, phase(start_s=8.0, end_s=9.0), "0 requests reached the drive, fewer than 8"),
    ],
)
def test_what_was_not_observed_has_its_reason(seen: DriveRequests, of: Phase, reason: str) -> None:
    found = seen.add_to(of, BEGAN_S, 1)
    assert order_of(found) == (None, None)
    assert reason in str(found.spatiality_seen_reason)


def test_without_root_it_is_not_observed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    device = block_device(Path("/dev/none"), tmp_path)
    assert device is None
    with pytest.raises(EeioError, match="tracing the drive's requests needs root"):
        trace.find_tracefs(UndoJournal(tmp_path / "undo.json"), "the drive's requests")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A loop device, and an ext4 file system on it."""
    image = sparse(tmp_path / "image", 128 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True, timeout=300)
    with attached(image) as node, mounted(node, tmp_path / "disk") as folder:
        yield node, folder


def began(view: DriveView) -> None:
    view.start()
    if view.observed.reason is not None:
        pytest.skip(view.observed.reason)


@pytest.mark.root
def test_a_device_s_own_requests_by_place(disk: tuple[Path, Path], home: Path) -> None:
    node, _ = disk
    device = block_device(node)
    assert device is not None
    journal = UndoJournal()
    view = DriveView(device, journal)
    began(view)
    places = [3 * 65536 * turn for turn in range(32)]
    descriptor = os.open(node, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        for place in places:
            os.posix_fadvise(descriptor, place, 65536, os.POSIX_FADV_DONTNEED)
            os.pread(descriptor, 65536, place)
    finally:
        os.close(descriptor)
        view.stop(time.monotonic())
        assert not view._folder.exists()
        assert journal.undo_all() == []
    assert view.observed.reason is None
    assert {r.request.offset for r in view.observed.requests if r.reads} >= set(places[1:])


@pytest.mark.root
def test_a_campaign_keeps_it(home: Path, eeio: Eeio, disk: tuple[Path, Path]) -> None:
    suite = dummy_suite(
        home, "level=filesystem operation=write spatiality=random buffer=on bytes_moved=500000"
    )
    for name, options in (("with", ["--see-order"]), ("without", [])):
        arguments = ["--directory", str(disk[1]), "--name", name, "--meter", "none"]
        eeio("run", suite, *arguments, *options, code=(0, 3))
    path = home / "data/eeio/results"
    observed, unseen = (records_in(path / name) for name in ("with", "without"))
    assert observed and unseen
    for record in observed:
        for found in record["phases"]:
            assert (
                found["spatiality_seen"]
                or "reached the drive" in (found["spatiality_seen_reason"])
                or "trac" in found["spatiality_seen_reason"]
            )
    reasons = {p["spatiality_seen_reason"] for record in unseen for p in record["phases"]}
    assert reasons == {"the drive's request order was not requested (--see-order)"}
