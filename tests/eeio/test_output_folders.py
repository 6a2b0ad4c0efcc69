"""Outputs that root writes into folders where another user may put links."""

import gzip
import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.plugin import DATA, InProcess
from tests.processes import ran

from eeio import paths
from eeio.commands.output_file import write_file
from eeio.commands.plots import write_plots
from eeio.errors import RejectedError
from eeio.exchange import bundle
from eeio.files import trust
from eeio.files.trust import make_folder
from eeio.measure import fleet_jobs as submitting
from eeio.measure.journal import program
from eeio_power import alignment

pytestmark = pytest.mark.root
USER = 12345


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """In /tmp, where all folders above are root's, and others may pass."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name).resolve()


@pytest.fixture
def victim(base: Path) -> Path:
    """A file of root."""
    path = base / "victim"
    path.write_text("root's")
    path.chmod(0o600)
    return path


@pytest.fixture
def folder(base: Path) -> Path:
    """A folder of another user."""
    path = base / "alice"
    path.mkdir()
    os.chown(path, USER, USER)
    return path


def _link_of_user(path: Path, target: Path) -> None:
    path.symlink_to(target)
    os.chown(path, USER, USER, follow_symlinks=False)


WRITERS: tuple[Callable[[Path], None], ...] = (
    lambda folder: write_file(folder / "report.html", "page"),
    lambda folder: write_file(folder / "new/report.html", "page"),
    lambda folder: write_plots({"report.html": b"plot"}, folder),
    lambda folder: write_plots({"report.html": b"plot"}, folder / "new"),
)


@pytest.mark.parametrize("write", WRITERS)
def test_root_writes_nothing_into_a_folder_of_another_user(
    write: Callable[[Path], None], folder: Path, victim: Path
) -> None:
    _link_of_user(folder / "report.html", victim)
    with pytest.raises(RejectedError, match=f"{folder} is owned by user {USER}.*Repair: "):
        write(folder)
    assert victim.read_text() == "root's"
    assert [path.name for path in folder.iterdir()] == ["report.html"]


def test_a_folder_of_the_user_behind_sudo_is_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", str(USER))
    write_file(folder / "report.html", "page")
    write_plots({"bandwidth.svg": b"plot"}, folder / "plots")
    assert (folder / "report.html").read_text() == "page"
    assert (folder / "plots/bandwidth.svg").read_bytes() == b"plot"
    assert (folder / "plots").stat().st_uid == USER


@pytest.mark.parametrize("write", (WRITERS[0], WRITERS[2]))
def test_a_link_to_a_file_is_replaced(
    write: Callable[[Path], None], base: Path, victim: Path
) -> None:
    """Also one of another user in a sticky folder."""
    folder = base / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    _link_of_user(folder / "report.html", victim)
    write(folder)
    assert victim.read_text() == "root's"
    assert not (folder / "report.html").is_symlink()


def test_a_block_device_is_neither_written_nor_replaced(base: Path) -> None:
    image = base / "image"
    image.write_bytes(bytes(1 << 20))
    device = Path(ran(["losetup", "--find", "--show", str(image)]).stdout.strip())
    (base / "report.html").symlink_to(device)
    try:
        for path in (device, base / "report.html"):
            with pytest.raises(RejectedError, match="neither a file, a pipe nor a character"):
                write_file(path, "page")
        assert device.is_block_device()
    finally:
        ran(["losetup", "--detach", str(device)])
    assert image.read_bytes() == bytes(1 << 20)


def test_a_link_of_another_user_to_a_device_is_not_followed(base: Path) -> None:
    folder = base / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    _link_of_user(folder / "report.html", Path("/dev/null"))
    with pytest.raises(OSError, match="symbolic links"):
        write_file(folder / "report.html", "page")


def test_pipes_and_standard_output_are_written_in_place(base: Path) -> None:
    write_file(Path("/dev/null"), "page")
    assert Path("/dev/null").is_char_device()
    fifo = base / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", str(fifo)], stdout=subprocess.PIPE) as reader:
        write_file(fifo, "page")
        assert reader.communicate()[0] == b"page"
    read, written = os.pipe()
    write_file(Path(f"/dev/fd/{written}"), "page")
    os.close(written)
    assert os.read(read, 9) == b"page"
    os.close(read)


def test_a_pipe_that_another_user_made_is_not_written(base: Path) -> None:
    """It let root wait for ever, or gave the report to that user."""
    sticky = base / "sticky"
    sticky.mkdir()
    sticky.chmod(0o1777)
    pipe = sticky / "report.json"
    os.mkfifo(pipe)
    os.chown(pipe, USER, USER)
    with pytest.raises(PermissionError, match=f"a pipe of user {USER}"):
        write_file(pipe, b"text")


def test_a_file_behind_standard_output_is_rejected(base: Path) -> None:
    """Its name in /dev was replaced."""
    with (base / "out").open("wb") as file:
        path = Path(f"/proc/self/fd/{file.fileno()}")
        with pytest.raises(RejectedError, match="standard output is a file; give its name"):
            write_file(path, "page")
    assert (base / "out").read_bytes() == b""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_no_program_starts_if_its_trace_could_be_replaced(
    base: Path, folder: Path, in_process: InProcess
) -> None:
    """strace followed links with the numbers of the next processes."""
    sticky = base / "tmp"
    sticky.mkdir()
    sticky.chmod(0o1777)
    cases = {
        ("-o", f"{folder}/trace"): f"{folder} is owned by user {USER}",
        ("-o", str(sticky)): f"{sticky}: other users may add links there",
        ("-o", f"{sticky}/new", "--replay", f"{folder}/a.csv"): f"{folder} is owned by user {USER}",
    }
    for options, message in cases.items():
        done = in_process(
            "record", "trace", "--meter", "none", *options, "--", "touch", str(base / "started"),
            code=2,
        )  # fmt: skip
        assert message in done.err
        assert not (base / "started").exists()
        assert not list(folder.iterdir())
    in_process("record", "trace", "--meter", "none", "-o", f"{sticky}/new", "--", "true")
    assert list((sticky / "new").glob("strace.*"))


def test_no_journal_trace_is_written_into_a_folder_of_another_user(
    folder: Path, victim: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "find_ext4", lambda _: None)  # any file system
    new = victim.with_name("new")
    _link_of_user(folder / "journal.gz", new)
    done = in_process("record", "journal", "-o", str(folder), "--", "true", code=2)
    assert f"{folder} is owned by user {USER}" in done.err
    assert not new.exists()


def test_exports_reject_a_folder_of_another_user(
    base: Path, folder: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPI_LOCALRANKID", "0")
    campaign = str(DATA / "campaigns/quick-before")
    commands = [
        ("meter", "node", "--meter", "demo", str(folder), "true"),
        ("record", "power", "--meter", "demo", "--samples", f"{folder}/a.csv.gz", "--", "true"),
        ("meter", "calibrate", "--save", f"{folder}/a.json"),
        ("bench", "--meter", "none", "--export-json", f"{folder}/a.json", "true"),
        ("profile", "new", "mine", "--folder", str(folder), "--", "true"),
        ("profile", "new", "mine", "--folder", f"{folder}/new", "--", "true"),
        ("profile", "new", "mine", "--folder", str(base), "--suite", f"{folder}/try", "--", "true"),
        ("doctor", "--yes", "--capture", f"{folder}/a.tar.gz"),
    ]
    if importlib.util.find_spec("duckdb") is not None:
        commands.append(("export", "parquet", campaign, "-o", str(folder)))
    for command in commands:
        assert f"{folder} is owned by user {USER}" in in_process(*command, code=2).err
    with pytest.raises(RejectedError, match=f"{folder} is owned by user {USER}"):
        bundle.write(folder / "bundle", {}, {"README.md": b"text"})
    fleet = submitting.Submission("fleet", "eeio-suite", (), ("n1",), submitting.now_utc())
    with pytest.raises(RejectedError, match=f"{folder} is owned by user {USER}"):
        submitting.prepare(fleet, folder / "fleet", submitting.TEMPLATE)
    assert not list(folder.iterdir()) and [path.name for path in base.iterdir()] == ["alice"]


def test_a_folder_that_another_user_makes_after_the_check_is_not_used(
    base: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In /tmp, where the check had found no folder."""
    sticky = base / "tmp"
    sticky.mkdir()
    sticky.chmod(0o1777)
    check = paths.check_output_folder

    def then_made(path: Path) -> None:
        check(path)
        path.mkdir()
        os.chown(path, USER, USER)
        _link_of_user(path / "README.md", victim)

    monkeypatch.setattr(paths, "check_output_folder", then_made)
    with pytest.raises(PermissionError, match=f"as root: {sticky}/new is owned by user {USER}"):
        bundle.write(sticky / "new", {}, {"README.md": b"text"})
    assert victim.read_text() == "root's"


def test_a_folder_that_another_user_hides_from_the_check_is_not_used(
    base: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was renamed away at the moment of the check, and back afterwards."""
    check = trust.risk_of_folder

    def hidden(path: Path, **options: bool) -> trust.Risk | None:
        folder.rename(base / "hidden")
        risk = check(path, **options)
        (base / "hidden").rename(folder)
        return risk

    monkeypatch.setattr(trust, "risk_of_folder", hidden)
    with pytest.raises(PermissionError, match=f"{folder} cannot be checked: No such file"):
        make_folder(folder)


def test_samples_of_a_node_replace_a_link(
    base: Path, victim: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPI_LOCALRANKID", "0")
    nodes = base / "nodes"
    nodes.mkdir()
    (nodes / f"{socket.gethostname()}.csv.gz").symlink_to(victim)
    in_process("meter", "node", "--meter", "demo", str(nodes), "sleep", "0.3")
    assert victim.read_text() == "root's"


def test_samples_are_not_written_behind_a_link_of_another_user(
    base: Path, victim: Path, in_process: InProcess
) -> None:
    """The folder was a link into one of root, and the file a link to a device."""
    alice, roots, sticky = base / "alice", base / "roots", base / "tmp"
    for folder in (alice, roots, sticky):
        folder.mkdir()
    os.chown(alice, USER, USER)
    sticky.chmod(0o1777)
    _link_of_user(alice / "samples", roots)
    _link_of_user(sticky / "null.csv.gz", Path("/dev/null"))
    _link_of_user(sticky / "new.csv.gz", base / "new")
    cases = {
        alice / "samples/a.csv.gz": f"{alice} is owned by user {USER}",
        sticky / "null.csv.gz": "cannot write samples: Too many levels of symbolic links",
        sticky / "new.csv.gz": "samples are never overwritten",
        victim: "samples are never overwritten",
    }
    for path, message in cases.items():
        command = ("record", "power", "--meter", "demo", "--samples", str(path), "--", "true")
        assert message in in_process(*command, code=2).err
    assert not list(roots.iterdir()) and not (base / "new").exists()
    assert victim.read_text() == "root's"


def test_samples_are_written_to_pipes_and_devices(base: Path, in_process: InProcess) -> None:
    fifo = base / "fifo"
    os.mkfifo(fifo)
    link = base / "link"
    link.symlink_to("/dev/null")
    command = ("record", "power", "--meter", "demo", "--samples")
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        in_process(*command, str(fifo), "--", "false", code=1)
        assert b"demo" in gzip.decompress(os.read(reader, 1 << 16))
    finally:
        os.close(reader)
    in_process(*command, str(link), "--", "false", code=1)
    assert Path("/dev/null").is_char_device()


def test_saved_pulses_replace_a_link_and_write_nothing_behind_it(
    base: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    sticky = base / "tmp"
    sticky.mkdir()
    sticky.chmod(0o1777)
    _link_of_user(sticky / "pulses.json", base / "new")
    monkeypatch.setattr(alignment, "make_pulses", lambda count: [])
    in_process("meter", "calibrate", "--save", str(sticky / "pulses.json"))
    assert (sticky / "pulses.json").is_file() and not (sticky / "pulses.json").is_symlink()
    assert not (base / "new").exists()
    message = in_process("meter", "calibrate", "--save", str(sticky), code=2).err
    assert f"--save {sticky}: Is a directory" in message
