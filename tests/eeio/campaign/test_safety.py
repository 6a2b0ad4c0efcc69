"""What protects the user's data and processes, in this process: each rule from both of its sides.

How whole commands keep to these rules is tested in test_device_cases.py, test_lock.py, test_undo.py
and in QEMU.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.executables import executable
from tests.processes import ran

from eeio.errors import EeioError, RejectedError
from eeio.machine import image
from eeio.machine.device import (
    ErasedDevice,
    Permission,
    Signature,
    check_erasable,
    check_named,
    has_data,
    options_of_signatures,
    readers,
    signatures_carried,
    signatures_found,
    zero_share,
)
from eeio.machine.lock import lock_folders
from eeio.machine.owner import Owner, this_process
from eeio.measure.campaign.safety import MADE, SCRATCH, left_files, permission, used_bytes
from eeio.measure.campaign.sharing import Sharing, missing
from eeio.record.design import Options
from eeio.record.run import EnergyReading

MIB = 1 << 20


def write_at(node: str, offset: int, data: bytes) -> None:
    with Path(node).open("r+b", buffering=0) as file:
        file.seek(offset)
        file.write(data)
        os.fsync(file.fileno())


@pytest.fixture
def empty(loop: str) -> Iterator[str]:
    """A loop device of 4 MiB of zeros."""
    write_at(loop, 0, bytes(4 * MIB))
    yield loop


# --- what a device contains -----------------------------------------------------------------------


def test_a_signature_is_named_by_its_label_and_uuid() -> None:
    ext4 = Signature("/dev/a", "ext4", "my disk", "12-34")
    assert ext4.text == "ext4 'my disk' (UUID 12-34)"
    assert ext4.names == ("ext4:my disk", "ext4:12-34")
    bare = Signature("/dev/a", "gpt", None, None)
    assert (bare.text, bare.names) == ("gpt", ("gpt",))
    assert options_of_signatures([ext4, bare]) == "--lose 'ext4:my disk' --lose gpt"


def answer_of(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> list[Signature]:
    """Of a wipefs that prints this."""
    executable(folder / "wipefs", f"#!/bin/sh\ncat <<'EOF'\n{text}\nEOF\n")
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return signatures_found([Path("/dev/a")])


def test_signatures_are_as_wipefs_prints_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert answer_of(monkeypatch, tmp_path, "") == []
    both = '{"signatures": [{"type": "gpt"}, {"type": "PMBR"}, {"type": "ext4", "label": "x"}]}'
    assert [s.type for s in answer_of(monkeypatch, tmp_path, both)] == ["gpt", "ext4"]
    alone = '{"signatures": [{"type": "PMBR", "label": null, "uuid": null}]}'
    assert answer_of(monkeypatch, tmp_path, alone) == [Signature("/dev/a", "PMBR", None, None)]


@pytest.mark.parametrize("text", [
    "{", "[]", "null", '{"signatures": [{}]}', '{"signatures": [7]}',
    '{"signatures": [{"type": "ext4", "label": 7}]}',
])  # fmt: skip
def test_an_answer_that_cannot_be_read_rejects_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    with pytest.raises(EeioError, match="cannot identify its contents"):
        answer_of(monkeypatch, tmp_path, text)


@pytest.mark.root
def test_data_anywhere_on_a_device_are_found(empty: str) -> None:
    node = Path(empty)
    assert not has_data(node)
    for offset in (0, MIB - 1, 2 * MIB, 4 * MIB - 1):
        write_at(empty, offset, b"x")
        assert has_data(node), offset
        write_at(empty, offset, bytes(1))


@pytest.mark.root
def test_the_share_of_zeros_is_sampled_over_the_length(empty: str) -> None:
    node = Path(empty)
    assert zero_share(node, 4 * MIB) == 1.0
    write_at(empty, 3 * MIB, b"x" * MIB)
    assert zero_share(node, 4 * MIB) == 0.75
    assert zero_share(node, 3 * MIB) == 1.0
    # One of the 256 places, 16 KiB apart.
    write_at(empty, 16 * 1024 * 5, b"x")
    assert zero_share(node, 4 * MIB) == 0.75 - 1.0 / 256.0
    assert zero_share(node, 100) == 0.0


@pytest.mark.root
def test_only_named_contents_are_lost(empty: str) -> None:
    node = Path(empty)
    check_named(node, [])
    write_at(empty, 0, b"x")
    with pytest.raises(RejectedError, match=r"data of an unknown kind, .* add --lose data"):
        check_named(node, [])
    check_named(node, ["data"])
    with pytest.raises(RejectedError, match=r"--lose gpt: .* it contains no named signature"):
        check_named(node, ["data", "gpt"])
    subprocess.run(["mkfs.ext4", "-q", "-L", "photos", empty], check=True)
    (found,) = signatures_carried(node)
    check_named(node, ["ext4:photos"])
    check_named(node, [f"ext4:{found.uuid}"])
    with pytest.raises(RejectedError, match="it contains ext4 'photos'"):
        check_named(node, ["ext4:music"])
    size = r"\(0\.00419 GB\) contains ext4 'photos'.*add --lose ext4:photos"
    with pytest.raises(RejectedError, match=size):
        check_erasable(node, Permission(node))
    check_erasable(node, Permission(node, ("ext4:photos",)))
    check_erasable(node, Permission(node, made=frozenset({found.uuid or ""})))


@pytest.mark.root
def test_processes_that_only_read_a_device_are_named(empty: str) -> None:
    assert readers(Path(empty)) == []
    with Path(empty).open("rb") as file, subprocess.Popen(["sleep", "60"], stdin=file) as sleeping:
        file.close()
        try:
            assert readers(Path(empty)) == [f"process {sleeping.pid} (sleep), for reading"]
        finally:
            sleeping.kill()
    with Path(empty).open("r+b") as file, subprocess.Popen(["sleep", "60"], stdin=file) as sleeping:
        file.close()
        try:
            assert readers(Path(empty)) == []
            writes = rf"held open by process {sleeping.pid} \(sleep\), for writing; end it first"
            with pytest.raises(RejectedError, match=writes):
                check_erasable(Path(empty), Permission(Path(empty)))
        finally:
            sleeping.kill()


@pytest.mark.root
def test_a_locked_device_is_of_this_process_until_it_is_released(
    empty: str, tmp_path: Path
) -> None:
    def claim() -> int:
        return os.open(empty, os.O_RDONLY | os.O_EXCL)

    device = ErasedDevice(Path(empty), Permission(Path(empty)), tmp_path / "made")
    device.hold()
    with pytest.raises(OSError, match="busy"):
        claim()
    device.hold()
    with device.released():
        os.close(claim())
    with pytest.raises(OSError, match="busy"):
        claim()
    device.release()
    device.release()
    os.close(claim())


# --- test files -----------------------------------------------------------------------------------


def test_test_files_that_are_left_are_reported_with_their_size(tmp_path: Path) -> None:
    assert left_files(None) is None
    assert left_files(str(tmp_path)) is None
    scratch = tmp_path / SCRATCH
    (scratch / "a").mkdir(parents=True)
    for n in range(3):
        (scratch / "a" / f"file{n}").write_bytes(b"x" * 10 * MIB)
    (scratch / "link").symlink_to("a/file0")
    assert used_bytes(scratch.rglob("*")) == pytest.approx(30 * MIB, abs=64 * 1024)
    assert used_bytes([scratch / "gone", scratch / "a"]) == 0
    assert left_files(str(tmp_path)) == f"0.03 GB of test files are left in {scratch}"
    for n in range(3):
        (scratch / "a" / f"file{n}").write_bytes(b"x" * 1000)
    assert left_files(str(tmp_path)) is None


def test_a_campaign_may_overwrite_the_file_systems_it_made(tmp_path: Path) -> None:
    options = Options(preset="quick", erase="/dev/a", lose=("gpt",))
    assert permission(options) == Permission(Path("/dev/a"), ("gpt",), frozenset())
    assert permission(options, tmp_path).made == frozenset()
    (tmp_path / MADE).write_text("1-2\n3-4\n")
    assert permission(options, tmp_path).made == {"1-2", "3-4"}


# --- layers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("filesystem", "message"), [
    ("ext4", None),
    ("ext4+journal", "mounted with data=journal"),
    ("ext4+fscrypt", "in a folder encrypted by fscrypt (AES-256-XTS)"),
    ("ext4+overlay", "below overlayfs, with an empty lower folder"),
    ("xfs+dmcrypt", "on dm-crypt (cryptsetup open --type plain"),
    ("btrfs+zstd", "mounted with compress=zstd"),
])  # fmt: skip
def test_how_a_file_system_was_made_names_its_layer(filesystem: str, message: str | None) -> None:
    made, _, rest = image.how(filesystem).partition(", ")
    assert made.startswith(f"mkfs.{filesystem.partition('+')[0]}")
    assert rest == "" if message is None else rest.startswith(message)


# --- processes ------------------------------------------------------------------------------------


def test_a_process_is_named_with_its_host_and_boot() -> None:
    owner = Owner(12, 345, "01234567-89ab-cdef-0123-456789abcdef", f"{'0' * 32} server", "77")
    assert owner.text == "process 12 on server (boot 01234567)"
    assert replace(owner, machine="").text == "process 12 on an unknown machine (boot 01234567)"
    assert owner.place(owner) == "here"
    for namespace in ("7", "8"):
        assert owner.place(replace(owner, pid_namespace=namespace)) == "elsewhere"
    assert owner.place(replace(owner, boot_id="x")) == "earlier boot"
    assert owner.place(replace(owner, boot_id="x", machine=f"{'1' * 32} other")) == "elsewhere"


def test_only_programs_with_the_mark_are_ended() -> None:
    """Each starts a process that goes on in another group, and ends."""
    script = (
        "import os, subprocess\n"
        "from eeio.machine.owner import Orphans\n"
        "orphans = Orphans({'MARK': 'ours'})\n"
        "found = []\n"
        "for mark in ('ours', 'other'):\n"
        "    done = subprocess.run(['sh', '-c', 'setsid sleep 60 >/dev/null & echo $!'],\n"
        "                          env={**os.environ, 'MARK': mark}, stdout=subprocess.PIPE)\n"
        "    found.append(int(done.stdout))\n"
        "ended = orphans.end(0)\n"
        "alive = [os.path.exists(f'/proc/{pid}') for pid in found]\n"
        "os.kill(found[1], 9)\n"
        "print(ended, *alive)\n"
    )
    done = ran([sys.executable, "-c", script], code=None)
    assert done.stdout.split() == ["1", "False", "True"], done.stderr


# --- campaigns that share a machine ---------------------------------------------------------------


def reading(domain: str) -> EnergyReading:
    return EnergyReading(
        domain=domain, meter="m", kind="measured", power_w=5.0, energy_j=10.0, uncertainty_j=1.0,
        coverage=1.0, largest_gap_s=1.0, samples=3, lost=0, valid=True, reasons=("first",),
    )  # type: ignore[arg-type] # fmt: skip


def test_a_shared_machine_has_no_energy_but_its_drives_have() -> None:
    system, device = missing([reading("system"), reading("device")], "shared")
    assert device == reading("device")
    assert (system.power_w, system.energy_j, system.uncertainty_j) == (None, None, None)
    assert (system.valid, system.reasons) == (False, ("first", "shared"))


def test_a_campaign_that_ended_is_forgotten_after_a_week(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EEIO_LOCKS", str(tmp_path))
    (folder,) = lock_folders()
    now_s, week_s = time.monotonic() + 30 * 86400.0, 7 * 86400.0
    me = this_process(os.getpid())
    names = {}
    for pid, ago_s in ((900_001, week_s - 60.0), (900_002, week_s + 60.0)):
        name = replace(me, pid=pid).name
        names[pid] = folder / f"eeio-sharing-{name}"
        names[pid].write_text(f"{now_s - ago_s - 5.0:.6f} {now_s - ago_s:.6f}\n")
    with Sharing() as sharing:
        with monkeypatch.context() as later:
            later.setattr(time, "monotonic", lambda: now_s)
            sharing.begin()
        assert [path.exists() for path in names.values()] == [True, False]
        end_s = now_s - week_s + 60.0
        assert sharing.overlapping(end_s - 1.0, end_s + 1.0) == ["900001"]
        assert sharing.overlapping(end_s + 0.001, end_s + 1.0) == []
