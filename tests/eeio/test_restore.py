"""Which journals `eeio doctor restore` acts on: not those of living processes, other containers or
machines, and of an earlier boot only what outlives one."""

import errno
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from tests import dummy
from tests.eeio.system.test_undo import left_by
from tests.kill.harness import drop_last_runs
from tests.plugin import Eeio, InProcess

from eeio.cli import main
from eeio.errors import EeioError
from eeio.files.trust import make_folder, why_untrusted
from eeio.machine import owner, undo
from eeio.machine.filesystem import mounts
from eeio.machine.owner import Owner, start_ticks, this_process
from eeio.machine.undo import UndoEntry, UndoJournal

OTHER_BOOT = "12345678-1234-1234-1234-123456789abc"


@pytest.fixture
def journals(home: Path) -> Path:
    folder = home / "state/eeio/undo"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with a machine-id, which containers may not have."""
    path = tmp_path / "machine-id"
    path.write_text("0123456789abcdef0123456789abcdef\n")
    monkeypatch.setattr(owner, "_MACHINE_ID", path)


def _dead(**changes: str) -> Owner:
    process = subprocess.Popen(["true"])
    process.wait()
    return replace(this_process(os.getpid()), pid=process.pid, start_ticks=1, **changes)


def _changed(home: Path) -> list[UndoEntry]:
    (home / "setting").write_text("changed")
    (home / "image").write_text("x")
    return [
        UndoEntry("setting", str(home / "setting"), "original"),
        UndoEntry("file", str(home / "image")),
    ]


@pytest.mark.parametrize(
    "changes", [{"pid_namespace": "4026500000"}, {"boot_id": OTHER_BOOT, "machine": "other host"}]
)
def test_a_journal_from_elsewhere_is_left_alone_and_named(
    home: Path, journals: Path, changes: dict[str, str], in_process: InProcess
) -> None:
    path = left_by(_dead(**changes), journals, *_changed(home))
    output = in_process("doctor", "restore", code=1).err
    assert f"eeio doctor restore {path}" in output and "may be alive" in output
    assert (home / "setting").read_text() == "changed" and (home / "image").exists()
    # The user knows that its process has ended.
    assert main(["doctor", "restore", str(path)]) == 0
    assert not (home / "image").exists() and not path.exists()
    # Kernel settings of another boot ended with it.
    same_boot = "boot_id" not in changes
    assert (home / "setting").read_text() == ("original" if same_boot else "changed")
    assert not list(journals.iterdir())


def test_another_version_s_journal_is_left_alone_and_named(
    home: Path, journals: Path, in_process: InProcess
) -> None:
    (home / "image").write_text("x")
    path = journals / "4194304-77.json"
    path.write_text(f'[{{"kind": "file", "subject": "{home}/image", "value": ""}}]')
    done = in_process("doctor", "restore", code=1)
    assert "earlier version" in done.err and (home / "image").exists()
    assert main(["doctor", "restore", str(path)]) == 0
    assert not (home / "image").exists()


def test_a_journal_that_its_process_locks_is_not_taken(home: Path, journals: Path) -> None:
    """Also if its number says nothing: its namespace is another."""
    here = this_process(os.getpid())
    journal = UndoJournal(journals / f"{replace(here, pid_namespace='1').name}.json")
    journal.owner = replace(here, pid_namespace="1")
    journal.add_all(_changed(home))
    assert main(["doctor", "restore"]) == 0
    with pytest.raises(EeioError, match="is alive"), undo.orphans(journal.path):
        pass
    assert (home / "image").exists()
    assert journal.undo_all() == []
    assert not list(journals.iterdir())


@pytest.mark.usefixtures("machine")
def test_after_a_reboot_only_what_outlives_it_is_restored(home: Path, journals: Path) -> None:
    """Numbers of processes and names of devices are others' then."""
    sleeper = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        mounted = home / "mounted"
        mounted.mkdir()
        left_by(
            _dead(boot_id=OTHER_BOOT),
            journals,
            *_changed(home),
            UndoEntry("process", str(sleeper.pid), str(start_ticks(sleeper.pid))),
            UndoEntry("mount", "/proc"),
            UndoEntry("directory", str(mounted)),
        )
        assert main(["doctor", "restore"]) == 0
        assert sleeper.poll() is None
        assert os.path.ismount("/proc")
        assert (home / "setting").read_text() == "changed"
        assert not (home / "image").exists() and not mounted.exists()
        assert not list(journals.iterdir())
    finally:
        sleeper.kill()
        sleeper.wait()


def test_members_of_a_group_whose_leader_ended_must_be_of_the_journal_s_process(
    home: Path, journals: Path
) -> None:
    """The number of a group that has ended may be given to another one."""
    dead = _dead()
    for environment, is_ours in (
        ({**os.environ, **undo.mark()}, False),
        ({**os.environ, "EEIO_STARTED_BY": dead.name}, True),
    ):
        shell = subprocess.Popen(
            ["sh", "-c", "sleep 1000 & echo $!"], stdout=subprocess.PIPE, text=True,
            start_new_session=True, env=environment,
        )  # fmt: skip
        assert shell.stdout is not None
        child = int(shell.stdout.readline())
        shell.wait()
        shell.stdout.close()
        try:
            journal = UndoJournal(home / "journal.json")
            journal.owner = dead
            journal.add(UndoEntry("process", str(shell.pid), "1"))
            assert journal.undo_all() == []
            assert (start_ticks(child) is None) == is_ours
        finally:
            if not is_ours:
                os.kill(child, signal.SIGKILL)


@pytest.mark.root
def test_a_command_is_not_run_for_another_drive(home: Path, loop: str) -> None:
    entry = UndoEntry("command", loop, f'["touch", "{home}/ran"]').of_drive(Path(loop))
    assert entry.identity.startswith(str(loop and home))  # the image's name, and its size
    journal = UndoJournal(home / "journal.json")
    journal.add(replace(entry, identity="another drive, 4096 bytes"))
    (failure,) = journal.undo_all()
    assert "no value was written" in failure and not (home / "ran").exists()
    journal.add(entry)
    journal.undo(entry)
    assert (home / "ran").exists()


@pytest.mark.root
def test_a_container_with_the_same_home_leaves_a_running_campaign_alone(
    home: Path, eeio: Eeio
) -> None:
    """It unmounted the campaign's file system and deleted its image."""
    changes = textwrap.dedent("""
        import sys, pathlib
        from eeio.machine.undo import UndoEntry, UndoJournal
        journal = UndoJournal()
        image = pathlib.Path(sys.argv[1])
        journal.add(UndoEntry("file", str(image)))
        image.write_text("x")
        print(flush=True)
        sys.stdin.read()
        assert journal.undo_all() == []
    """)
    container = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if subprocess.run([*container, "true"], check=False).returncode != 0:
        pytest.skip("no PID namespaces here")
    campaign = subprocess.Popen(
        [sys.executable, "-c", changes, str(home / "image")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert campaign.stdout is not None
    campaign.stdout.readline()
    arguments = ("run", "dummy-suite", "--directory", str(home / "target"), "--meter", "none")
    for command in (
        (
            "doctor",
            "restore",
        ),
        arguments,
    ):
        eeio(*command, before=container)
        assert (home / "image").exists()
    eeio("doctor", "restore")
    assert (home / "image").exists()
    # Killed: the container cannot know that, its own machine can.
    campaign.kill()
    campaign.communicate()
    eeio("doctor", "restore", before=container, code=1)
    assert (home / "image").exists()
    eeio("doctor", "restore")
    assert not (home / "image").exists()


@pytest.mark.root
@pytest.mark.parametrize("what", ["file", "folder", "mode"])
def test_root_obeys_no_journal_of_another_user(
    home: Path, journals: Path, what: str, in_process: InProcess
) -> None:
    path = left_by(_dead(), journals, UndoEntry("command", "/dev/x", f'["touch", "{home}/ran"]'))
    if what == "file":
        os.chown(path, 65534, 65534)
    elif what == "folder":
        os.chown(journals, 65534, 65534)
    else:
        path.chmod(0o666)
    assert "as root" in in_process("doctor", "restore", code=1).err
    assert not (home / "ran").exists()


@pytest.mark.root
@pytest.mark.parametrize("what", ["folder", "file"])
def test_root_resumes_no_campaign_of_another_user(
    home: Path, in_process: InProcess, what: str
) -> None:
    """Its campaign.json contains commands."""
    arguments = ["--directory", str(home / "target"), "--meter", "none", "--repetitions", "1"]
    hook = ["--drop-caches-by", f"touch {home}/ran"]
    assert main(["run", "dummy-suite", "--name", "theirs", *arguments, *hook]) == 0
    (home / "ran").unlink()
    drop_last_runs(home, 1, "theirs")
    folder = home / "data/eeio/results/theirs"
    os.chown(folder if what == "folder" else folder / "campaign.json", 65534, 65534)
    assert "not resumed as root" in in_process("resume", "theirs", code=2).err
    assert not (home / "ran").exists()


@pytest.mark.root
def test_what_root_trusts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    file = tmp_path / "folder/file"
    file.parent.mkdir()
    file.write_text("")
    assert why_untrusted(file) is None and why_untrusted(tmp_path / "not-there") is None
    file.chmod(0o664)
    os.chown(file, 0, 100)
    assert "can be written" in str(why_untrusted(file))
    os.chown(file, 1000, 1000)
    assert "owned by user 1000" in str(why_untrusted(file))
    monkeypatch.setenv("SUDO_UID", "1000")
    assert why_untrusted(file) is None  # its group is the user's own
    os.chown(file.parent, 1001, 0)
    assert f"{file.parent} is owned by user 1001" in str(why_untrusted(file))
    link = tmp_path / "link"
    link.symlink_to("folder/file")
    assert "1001" in str(why_untrusted(link))
    os.chown(file.parent, 0, 0)
    os.chown(link, 1001, 0, follow_symlinks=False)
    assert "a link of user 1001" in str(why_untrusted(link))


@pytest.mark.root
def test_folders_that_sudo_makes_in_a_user_s_home_are_the_user_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a strict umask ~/.local was closed to its owner."""
    monkeypatch.setenv("SUDO_UID", "1000")
    os.chown(tmp_path, 1000, 1000)
    before = os.umask(0o077)
    try:
        make_folder(tmp_path / ".local/share/eeio")
    finally:
        os.umask(before)
    assert {path.stat().st_uid for path in tmp_path.rglob("*")} == {1000}


def test_a_journal_of_root_stops_no_run_of_the_user(
    journals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run ended: "...lock: Permission denied"."""
    path = left_by(_dead(), journals, UndoEntry("setting", "/dev/null", "1"))

    def denied(path: Path) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(undo, "lock_file", denied)
    with undo.orphans() as found:
        assert found.journals == [] and found.bad == []
        (message,) = found.elsewhere
    assert message == (
        f"{path}: not restored: Permission denied. `sudo eeio doctor restore {path}` restores what "
        "it changed"
    )


@pytest.mark.root
def test_a_campaign_through_sudo_leaves_its_user_the_folders(
    home: Path, eeio: Eeio, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With HOME kept, root owned ~/.local/share: no program of the user could store files there."""
    monkeypatch.setenv("SUDO_UID", "1000")
    for variable in ("XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable)
    user = home / "user"
    user.mkdir()
    os.chown(user, 1000, 1000)
    monkeypatch.setenv("HOME", str(user))
    eeio("run", "dummy-suite", "--preset", "quick", "--name", "c", "--meter", "none",
         "--directory", str(home / "target"), "--allow-memory-filesystem", code=None)  # fmt: skip
    data = user / ".local/share/eeio"
    assert (data / "results/c/runs.jsonl").exists()
    eeio("doctor", "restore")
    state = user / ".local/state"
    locks = (*(data / "installed").glob(".*.lock"), state / "eeio/undo.lock")
    for path in (data / "results", data / "installed", data.parent, state, *locks):
        assert path.stat().st_uid == 1000, path


@pytest.mark.root
def test_root_runs_no_plug_in_and_no_profile_of_another_user(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    in_process: InProcess,
) -> None:
    meters, studies = home / "meters", home / "studies"
    for folder in (meters, studies):
        folder.mkdir()
        (folder / "mine.py").write_text(f"open('{home}/ran', 'w')\n")
        os.chown(folder / "mine.py", 1000, 1000)
    monkeypatch.setenv("EEIO_METERS", str(meters))
    done = in_process("meter", "list", code=1)
    assert f"{meters}/mine.py, named by EEIO_METERS: not run as root" in done.err
    monkeypatch.delenv("EEIO_METERS")
    monkeypatch.setenv("EEIO_STUDIES", str(studies))
    assert main(["study", "replicate"]) != 0
    assert f"{studies}/mine.py" in capsys.readouterr().err
    monkeypatch.delenv("EEIO_STUDIES")
    profiles = dummy.profile(home, f"touch {home}/ran")
    os.chown(profiles / "eeio-dummy-1.0.0/install.sh", 1000, 1000)
    os.chown(profiles / "eeio-dummy-1.0.0", 1000, 1000)
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(profiles))
    assert "not used as root" in in_process("profile", "install", "eeio-dummy-1.0.0", code=2).err
    assert not (home / "ran").exists()


@pytest.mark.root
def test_nothing_is_deleted_in_a_folder_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash a link may be on the way to what the journal names."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    target, victim = tmp_path / "target", tmp_path / "victim"
    victim.mkdir()
    (victim / "eeio-ext4.img").write_text("precious")
    journal = UndoJournal(tmp_path / "journal.json")
    journal.add(UndoEntry("file", str(target / "eeio-ext4.img")))
    target.symlink_to(victim)
    os.chown(target, 71500, 71500, follow_symlinks=False)
    (failure,) = journal.undo_all()
    assert f"not deleted: {target} is a link of user 71500" in failure
    assert (victim / "eeio-ext4.img").exists()
    journal.path.unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_only_its_own_file_system_is_unmounted(home: Path) -> None:
    """Another one may be mounted at the same place later."""
    folder, journal = home / "mounted", UndoJournal(home / "journal.json")
    folder.mkdir()

    def sources() -> list[str]:
        return [mount.source for mount in mounts() if mount.mount_point == folder]

    def mount(source: str) -> None:
        subprocess.run(["mount", "-t", "tmpfs", source, folder], check=True)

    entry = UndoEntry("mount", str(folder), drive="/own")
    try:
        journal.add(entry)
        mount("/other")
        assert journal.undo_all() == []
        assert sources() == ["/other"]
        subprocess.run(["umount", folder], check=True)
        journal.add(entry)
        mount("/own")
        mount("/other")
        (problem,) = journal.undo_all()
        assert f"/other is mounted at {folder}, over /own" in problem
        assert sources() == ["/own", "/other"]
        subprocess.run(["umount", folder], check=True)
        journal.add(entry)
        assert journal.undo_all() == []
        assert sources() == []
    finally:
        for _ in sources():
            subprocess.run(["umount", folder], check=False)
