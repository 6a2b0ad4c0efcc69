"""Outputs, devices and programs of root in folders that other users may change."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests import dummy
from tests.eeio.test_files_of_others import COMMON, NEW_PROCESSES, Case, go_inside, in_child
from tests.eeio.test_files_of_others import base as base
from tests.executables import executable
from tests.plugin import InProcess
from tests.processes import ran
from tests.profiles.harness import copy_of

from eeio import paths
from eeio.cli import main
from eeio.errors import EeioError, RejectedError
from eeio.files.trust import (
    make_folder,
    trusted_search_path,
    why_untrusted,
)
from eeio.machine import caches, undo
from eeio.machine.undo import UndoEntry
from eeio.measure import doctor as examination
from eeio.measure.campaign.safety import SCRATCH, checked_folder, with_nodes
from eeio.measure.profiles import complete
from eeio.measure.profiles.suite import Optional
from eeio.record.design import Options

pytestmark = pytest.mark.root


def test_the_directory_of_a_campaign_is_the_one_that_was_checked(base: Path) -> None:
    (base / "real").mkdir()
    (base / "link").symlink_to("real")
    assert checked_folder(base / "link/../link") == base / "real"
    os.chown(base / "link", 71500, 71500, follow_symlinks=False)
    with pytest.raises(RejectedError, match="link is a link of user 71500"):
        checked_folder(base / "link")


def test_root_runs_no_program_of_another_user(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    theirs, ours, shared = base / "theirs", base / "ours", base / "shared"
    for folder in (theirs, ours, shared):
        folder.mkdir()
        folder.chmod(0o755)
    shared.chmod(0o1777)
    os.chown(theirs, 71500, 71500)
    searched = f"{theirs}:.::{ours}:{shared}:/usr/bin:/bin"
    monkeypatch.setenv("PATH", searched)
    assert main(["completion", "bash"]) == 0
    assert os.environ["PATH"] == searched, "it is that of the command only"
    assert trusted_search_path(searched)[0] == f"{ours}:/usr/bin:/bin"
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"eeio: PATH: not searched as root: {theirs} is owned by user 71500",
        "eeio: PATH: not searched as root: . depends on the current folder",
        "eeio: PATH: not searched as root: (empty) depends on the current folder",
        f"eeio: PATH: not searched as root: {shared} can be written by other users (mode 1777)",
    ]
    monkeypatch.setenv("PATH", searched)
    for folder in (theirs, shared):
        for name in ("id", "stat", "sed", "awk", "readlink", "getent", "ls"):
            executable(folder / name, f"#!/bin/sh\ntouch {base}/ran\n")
    shutil.copy(COMMON / "post.sh", base / "post.sh")
    (base / "tool.conf").write_text("name=eeio-x\n")
    done = ran(["sh", base / "post.sh"], env={**os.environ, "HOME": str(base)})
    assert done.stderr == "" and not (base / "ran").exists()
    command = '. "$HOME/scratch.sh"; echo "$PATH"'
    done = ran(["sh", "-c", command], env={**os.environ, "HOME": str(base)})
    assert done.stdout == f"{ours}:/usr/bin:/bin\n"


@pytest.mark.parametrize("call", ["make_output", "prepared"])
def test_results_and_cleaning_follow_no_link_of_another_user(base: Path, call: str) -> None:
    shutil.copy(COMMON / "checks.sh", base / "checks.sh")
    (base / "ours" / SCRATCH).mkdir(parents=True)
    (base / "link").symlink_to(base / "ours")
    os.chown(base / "link", 71500, 71500, follow_symlinks=False)
    environment = {
        **os.environ, "HOME": str(base), "EEIO_DIRECTORY": f"{base}/link",
        "EEIO_OUTPUT_DIR": f"{base}/link/new/output",
    }  # fmt: skip
    environment.pop("SUDO_UID", None)
    done = subprocess.run(
        ["sh", "-c", f'tool=eeio-x; . "$HOME/checks.sh"; {call}; touch file'],
        capture_output=True, text=True, cwd=base, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and not (base / "ours/new").exists()
    assert done.stderr.startswith(f"eeio-x: {base}/link is a link of user 71500. Repair: ")
    (base / "link").unlink()
    (base / "link").mkdir()
    (base / "link" / SCRATCH).mkdir()
    ran(["sh", "-c", f'tool=eeio-x; . "$HOME/checks.sh"; {call}'], env=environment)


@pytest.mark.parametrize("owned", ["program", "folder", "link"])
def test_an_installation_takes_no_program_of_another_user(base: Path, owned: str) -> None:
    """Under PTS, too; and it is not run to ask for its version."""
    programs, home = base / "programs", base / "home"
    programs.mkdir()
    programs.chmod(0o755)
    program = executable(programs / "fio", f"#!/bin/sh\ntouch {base}/ran\necho fio-3.36\n")
    home.mkdir()
    found = program
    if owned == "link":
        (base / "links").mkdir()
        found = base / "links/fio"
        found.symlink_to(program)
        program.chmod(0o777)
    os.chown(programs if owned == "folder" else program, 71500 * (owned != "link"), 0)
    profile = copy_of(COMMON.parent / "eeio-fio-1.0.0", base / "profile")
    environment = {
        **os.environ, "HOME": str(home), "PATH": f"{found.parent}:/usr/bin:/bin",
    }  # fmt: skip
    environment.pop("SUDO_UID", None)
    done = subprocess.run(
        ["bash", str(profile / "install.sh")], env=environment, cwd=home, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1 and not (base / "ran").exists()
    assert done.stderr.startswith(f"eeio-fio: {found} is not run as root: ")
    assert done.stderr.endswith(
        "Repair: install the package of fio, and remove this one from PATH\n"
    )


@pytest.mark.parametrize("inside", ["", "container"])
def test_a_mounted_program_in_a_container_is_of_who_started_it(base: Path, inside: str) -> None:
    """A checkout that a CI system mounts belongs to a user of the host."""
    checkout = base / "checkout"
    checkout.mkdir()
    program = executable(checkout / "ior", "#!/bin/sh\n")
    for path in (checkout, program):
        path.chmod(0o755)
        os.chown(path, 71500, 71500)
    case = Case("", None, inside=inside)

    def both() -> list[str | None]:
        go_inside(case, checkout)
        done = subprocess.run(
            ["sh", "-c", 'profile=$0; finish() { echo "$2"; exit 1; }; . "$0/programs.sh"; '
             'find_program "$1"', base, program],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return [why_untrusted(program), done.stdout.strip() or None]

    python, shell = in_child(both, namespace=NEW_PROCESSES if inside else 0)
    if inside:
        assert (python, shell) == (None, None)
    else:
        assert python == f"{checkout} is owned by user 71500"
        assert shell == (
            f"{program} is not run as root: {python}. "
            "Repair: install the package of ior, and remove this one from PATH"
        )


def _outputs() -> list[tuple[str, list[str]]]:
    """File, and the command that writes it."""
    data = Path(__file__).parents[1] / "data"
    sides = ["--traditional", f"{data}/campaigns/server", "--low-power", f"{data}/campaigns/board"]
    replay = [str(next(data.glob("bpftrace/*/*.txt")))]
    return [
        ("map.html", ["cost", *sides, "--workload", f"{data}/mix.yaml", "--map", "map.html"]),
        ("replay.csv", ["record", "trace", "--read", *replay, "--replay", "replay.csv"]),
        ("phases.json", ["record", "trace", "--read", *replay, "-o", "."]),
        ("composite.xml", ["export", "pts", f"{data}/campaigns/quick-before", "-o", "."]),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "command"), _outputs())
def test_no_output_is_written_through_a_link(
    base: Path, monkeypatch: pytest.MonkeyPatch, name: str, command: list[str]
) -> None:
    """A link in a shared folder named a file that did not exist, and that file was written."""
    folder = base / "shared"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / name).symlink_to(base / "victim")
    assert main(command) == 0
    assert not (base / "victim").exists()
    assert (folder / name).is_file() and not (folder / name).is_symlink()


@pytest.mark.parametrize("results", ["", "results"])
def test_root_writes_no_results_into_a_folder_of_another_user(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], results: str
) -> None:
    """XDG_DATA_HOME stays in `su` without `-`: a campaign was written through that user's link."""
    data = base / "data/eeio"
    data.mkdir(parents=True)
    (base / "victim").mkdir()
    if results:
        (data / results).symlink_to(base / "victim")
    for path in (base / "data", data):
        os.chown(path, 71500, 71500)
    monkeypatch.setenv("XDG_DATA_HOME", str(base / "data"))
    arguments = ["bench", "--meter", "none", "--name", "c", "true"]
    assert main(arguments) == 2
    text = capsys.readouterr().err
    assert "no results are written there as root: " in text
    repair = "Repair: sudo -H eeio ..., or set XDG_DATA_HOME to a folder of root"
    assert text.endswith(f" is owned by user 71500. {repair}\n")
    assert "...." not in text
    assert not list((base / "victim").iterdir()) and not (data / "results/c").exists()


@pytest.mark.parametrize("linked", ["scaling_max_freq", "scaling_governor"])
def test_root_sets_no_frequency_through_a_link_of_another_user(
    base: Path, capsys: pytest.CaptureFixture[str], linked: str
) -> None:
    """`--sysfs-root` with the tree of another user."""
    policy = base / "fs/sys/devices/system/cpu/cpufreq/policy0"
    policy.mkdir(parents=True)
    for name, text in {
        "scaling_driver": "acpi-cpufreq", "scaling_available_governors": "userspace",
        "scaling_governor": "userspace", "scaling_setspeed": "2000000", "affected_cpus": "0",
        "scaling_min_freq": "800000", "scaling_max_freq": "2000000",
        "cpuinfo_min_freq": "800000", "cpuinfo_max_freq": "2000000",
    }.items():  # fmt: skip
        (policy / name).write_text(f"{text}\n")
    victim = base / "victim"
    victim.write_text((policy / linked).read_text())
    before = victim.stat().st_mtime_ns
    (policy / linked).unlink()
    (policy / linked).symlink_to(victim)
    os.chown(policy / linked, 71500, 71500, follow_symlinks=False)
    arguments = ["record", "frequency", "--sysfs-root", str(base / "fs"), "--set", "lowest"]
    assert main([*arguments, "--", "true"]) != 0
    text = capsys.readouterr().err
    assert f"not written as root: {policy / linked} is a link of user 71500. Repair: `mkdir" in text
    assert victim.stat().st_mtime_ns == before
    with pytest.raises(EeioError, match="not written as root"):
        undo._restore_setting(UndoEntry("setting", str(policy / linked), "1"))
    assert victim.stat().st_mtime_ns == before
    os.chown(policy / linked, 0, 0, follow_symlinks=False)
    assert main([*arguments, "--", "true"]) == 0


def test_root_writes_no_results_into_a_folder_that_another_user_makes_after_the_check(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(base / "data"))
    monkeypatch.delenv("SUDO_UID", raising=False)
    new_campaign_folder = paths.new_campaign_folder

    def then_made(name: str) -> Path:
        folder = new_campaign_folder(name)
        (base / "data").mkdir(0o755)
        os.chown(base / "data", 71500, 71500)
        return folder

    monkeypatch.setattr(paths, "new_campaign_folder", then_made)
    arguments = ["bench", "--meter", "none", "--name", "c", "--directory", str(base), "true"]
    base.chmod(0o755)
    assert main(arguments) == 1
    assert f"as root: {base}/data is owned by user 71500" in capsys.readouterr().err
    assert not (base / "data/eeio/results/c").exists()


@pytest.mark.parametrize("is_link", [False, True])
def test_a_folder_that_another_user_makes_at_that_moment_is_not_used(
    base: Path, monkeypatch: pytest.MonkeyPatch, is_link: bool
) -> None:
    """Everybody may make a folder in /tmp, also between the check of /tmp and the new folder."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    (base / "theirs").mkdir()
    os.chown(base / "theirs", 71500, 71500)
    mkdir = os.mkdir

    def made_by_another(name: str, mode: int, *, dir_fd: int) -> None:
        if is_link:
            os.symlink(base / "theirs", name, dir_fd=dir_fd)
        else:
            mkdir(name, dir_fd=dir_fd)
            os.chown(name, 71500, 71500, dir_fd=dir_fd)
        mkdir(name, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", made_by_another)
    with pytest.raises(OSError, match=r"user 71500 has just made it|Not a directory"):
        make_folder(base / "data/eeio/results")
    monkeypatch.undo()
    assert list((base / "theirs").iterdir()) == []
    assert not (base / "data/eeio").exists()


def test_a_folder_that_another_process_of_ours_makes_at_that_moment_is_used(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = os.mkdir

    def made_before(name: str, mode: int, *, dir_fd: int) -> None:
        mkdir(name, mode, dir_fd=dir_fd)
        mkdir(name, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", made_before)
    make_folder(base / "data/eeio", 0o700)
    assert (base / "data/eeio").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("theirs", ["link", "folder", "node", "nothing"])
def test_root_uses_no_device_by_a_name_that_another_user_can_lead_elsewhere(
    base: Path, monkeypatch: pytest.MonkeyPatch, theirs: str
) -> None:
    """That user changed the link during a campaign, and the other device was erased."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    folder = base / "folder"
    folder.mkdir(0o755)
    node = folder / "node"
    os.mknod(node, 0o660 | stat.S_IFBLK, os.makedev(7, 7))
    os.chown(node, 71500, 71500)  # as databases have it
    name = folder / "name"
    name.symlink_to(node)
    reason = None
    if theirs == "link":
        os.chown(name, 71500, 71500, follow_symlinks=False)
        reason = f"{name} is a link of user 71500"
    elif theirs == "folder":
        os.chown(folder, 71500, 71500)
        reason = f"{folder} is owned by user 71500"
    elif theirs == "node":
        folder.chmod(0o1777)
        reason = f"{folder} can be written by other users"
    options = Options(preset="quick", device=str(name), seed=1, erase=str(name))
    if reason is None:
        made = with_nodes(options)
        assert (made.device, made.erase) == (str(node), str(node))
    else:
        with pytest.raises(RejectedError, match=f"{reason}.*Repair: name the device itself"):
            with_nodes(options)


@pytest.mark.parametrize("theirs", ["folder", "file", "file below", "link"])
@pytest.mark.parametrize("kind", ["test-profiles", "suites"])
def test_root_uses_no_profile_and_no_suite_of_another_user(
    home: Path, monkeypatch: pytest.MonkeyPatch, in_process: InProcess, theirs: str, kind: str
) -> None:
    """`plan` with --sweep reads the profile's factors.conf, and runs the program that a suite
    names."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    profiles = dummy.profile(home, "")
    suite = Path(dummy.suite(home, "level=application processes=1"))
    executable(home / "ran.sh", f"#!/bin/sh\ntouch {home}/ran\n")
    if kind == "suites":
        folder = suite
        with (suite / "protocol.yaml").open("a") as file:
            file.write(
                f"optional:\n- command: {home}/ran.sh\n  help: x\n  otherwise: x\n"
                "  experiments:\n  - {profile: eeio-dummy-1.0.0, factors: {}, description: x}\n"
            )
    else:
        folder = profiles / "eeio-dummy-1.0.0"
        (folder / "factors.conf").write_text(
            "level words application | level\nprocesses number 1..2 | processes\n"
            "sleep_s text any | pause\n"
        )
    (folder / "below").mkdir()
    (folder / "below/file").write_text("")
    changed = {"folder": folder, "file below": folder / "below/file"}.get(theirs)
    if theirs == "file":
        changed = folder / ("factors.conf" if kind == "test-profiles" else "protocol.yaml")
    elif theirs == "link":
        folder.rename(home / "elsewhere")
        folder.symlink_to(home / "elsewhere")
        changed = folder
    assert changed is not None
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(profiles))
    command = ["plan", str(suite), "--directory", str(home / "target"), "--sweep", "processes=1,2"]
    in_process(*command)
    assert (home / "ran").exists() == (kind == "suites")
    (home / "ran").unlink(missing_ok=True)
    os.chown(changed, 71500, 71500, follow_symlinks=False)
    what = f"{changed} is {'a link of' if theirs == 'link' else 'owned by'} user 71500"
    assert f"{folder}: not used as root: {what}. Repair: cp -r " in in_process(*command, code=2).err
    assert not (home / "ran").exists()


def test_root_asks_no_program_of_another_user_for_its_options(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    program = executable(base / "ior", f"#!/bin/sh\ntouch {base}/ran\necho HDF5\n")
    monkeypatch.setenv("EEIO_IOR", str(program))
    optional = Optional("ior", "EEIO_IOR", "", (), "HDF5")
    base.chmod(0o755)
    assert optional.is_found() and (base / "ran").exists()
    (base / "ran").unlink()
    os.chown(program, 71500, 71500)
    reason = f"{program} is not run as root: {program} is owned by user 71500. Repair: set EEIO_IOR"
    with pytest.raises(RejectedError, match=reason):
        optional.is_found()
    assert not (base / "ran").exists()


@pytest.mark.parametrize(
    ("profile", "variable", "script"),
    [
        ("btio", "EEIO_MPIRUN", "eeio-btio.sh class=S processes=4"),
        ("btio", "EEIO_NPB", "eeio-btio.sh class=S processes=4"),
        ("btio", "EEIO_HOSTFILE", "eeio-btio.sh class=S processes=4"),
        ("io500", "EEIO_IO500_INI", "pre.sh"),
        ("io500", "EEIO_DROP_CACHES", "pre.sh"),
    ],
)
@pytest.mark.parametrize("link", [False, True])
def test_a_run_uses_no_file_of_another_user_that_a_variable_names(
    base: Path, profile: str, variable: str, script: str, link: bool
) -> None:
    """Some of them were checked only when the profile was installed."""
    base.chmod(0o755)
    home = copy_of(COMMON.parent / f"eeio-{profile}-1.0.0", base / "home")
    (base / "data/eeio-scratch").mkdir(parents=True)
    ran = base / "ran"
    mpirun = executable(base / "mpirun", f'#!/bin/sh\n[ "$1" = --version ] || touch {ran}\n')
    executable(base / "bt.S.4.mpi_io_full", "#!/bin/sh\n")
    executable(base / "io500", "#!/bin/sh\n")
    (home / "tool.conf").write_text(f"name=eeio-{profile}\npath={base}/io500\n")
    named = {
        "EEIO_MPIRUN": mpirun, "EEIO_NPB": base / "bt.S.4.mpi_io_full",
        "EEIO_IO500_INI": base / "ini", "EEIO_DROP_CACHES": base / "drop_caches",
        "EEIO_HOSTFILE": base / "hosts",
    }[variable]  # fmt: skip
    for name in ("ini", "drop_caches", "hosts"):
        (base / name).write_text("[debug]\n")
    environment = {
        **os.environ, "HOME": str(home), "EEIO_MPIRUN": str(mpirun),
        "EEIO_DIRECTORY": f"{base}/data", "EEIO_OUTPUT_DIR": f"{base}/output",
        "EEIO_DROP_CACHES": str(base / "drop_caches"),
        variable: str(base if variable == "EEIO_NPB" else named),
    }  # fmt: skip
    for name in ("SUDO_UID", "EEIO_PRESET", "LOG_FILE", "SLURM_JOB_ID"):
        environment.pop(name, None)

    def done() -> "subprocess.CompletedProcess[str]":
        program, *factors = script.split()
        return subprocess.run(
            ["sh", str(home / program), *factors], env=environment, cwd=base, check=False,
            capture_output=True, text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    first = done()
    assert (first.returncode, first.stderr) == (0, "") and ran.exists()
    ran.unlink()
    if link:
        named.rename(base / "elsewhere")
        named.symlink_to(base / "elsewhere")
    os.chown(named, 71500, 71500, follow_symlinks=False)
    second = done()
    problem = f"is {'a link of' if link else 'owned by'} user 71500"
    assert second.returncode == 2
    assert second.stderr == (
        f"eeio-{profile}: {named} is not used as root: {named} {problem}. "
        f"Repair: name a file of root by {variable}\n"
    )
    assert variable == "EEIO_DROP_CACHES" or not ran.exists()


def test_root_makes_no_temporary_file_in_a_folder_of_another_user(
    base: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """That user could put a profile's script, or the times of a command, in the place of eeio's."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", None)
    theirs, ours = base / "theirs", base / "ours"
    for folder in (theirs, ours):
        folder.mkdir(0o755)
    os.chown(theirs, 71500, 71500)
    monkeypatch.setenv("TMPDIR", str(base))
    assert paths.temporary_folder() == base, "it is sticky, and root's"
    profile = COMMON.parent / "eeio-fio-1.0.0"
    with complete.folder_of(profile) as made:
        assert made.is_relative_to(base)
    monkeypatch.setenv("TMPDIR", str(theirs))
    monkeypatch.setenv("TMP", str(ours))
    assert paths.temporary_folder() == ours
    with complete.folder_of(profile) as made:
        assert made.is_relative_to(ours)
    command = ["record", "power", "--meter", "demo", "--", "sh", "-c", "echo $TMPDIR; mktemp"]
    assert main(command) == 3, "too short for a reading"
    said = capfd.readouterr()
    assert f"eeio: TMPDIR: not used as root: {theirs} is owned by user 71500\n" in said.err
    assert said.out.startswith(f"{ours}\n{ours}/") and not list(theirs.iterdir())
    assert os.environ["TMPDIR"] == str(theirs), "it is that of the command only"
    monkeypatch.delenv("TMP")
    monkeypatch.setenv("XDG_STATE_HOME", str(base / "state"))
    monkeypatch.setattr(paths, "_SHARED", theirs)
    assert paths.temporary_folder() == base / "state/eeio/temporary"


@pytest.mark.parametrize("theirs", ["link", "folder"])
def test_root_empties_no_cache_by_a_file_of_another_user(
    home: Path, monkeypatch: pytest.MonkeyPatch, in_process: InProcess, theirs: str
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    victim, folder = home / "victim", home / "folder"
    victim.write_text("kept")
    folder.mkdir()
    name = folder / "drop_caches"
    name.symlink_to(victim)
    monkeypatch.setenv("EEIO_DROP_CACHES", str(name))
    assert caches.drops_all()
    changed = name if theirs == "link" else folder
    os.chown(changed, 71500, 71500, follow_symlinks=False)
    target = ["--directory", str(home / "target"), "--meter", "none"]
    for command in (["run", "dummy-suite"], ["plan", "dummy-suite"], ["bench", "--cold", "true"]):
        said = in_process(*command, *target, code=2).err
        assert f"EEIO_DROP_CACHES={name}: not written as root: {changed} is " in said
    with pytest.raises(RejectedError, match="Repair: unset EEIO_DROP_CACHES"):
        caches.drop([], None)
    assert victim.read_text() == "kept"
    (found,) = [one for one in examination.examine() if one.name == "drop caches"]
    assert not found.found and "not written as root" in found.detail


_DRAWS = """
import eeio.report.figures
import matplotlib.font_manager
print(matplotlib.font_manager.FontManager.__version__)
"""


@pytest.mark.parametrize("variable", ["MPLCONFIGDIR", "XDG_CACHE_HOME", "HOME"])
def test_root_writes_no_list_of_fonts_through_a_link_of_another_user(
    base: Path, variable: str
) -> None:
    environment = {**os.environ, "HOME": str(base)}
    for name in ("MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "SUDO_UID"):
        environment.pop(name, None)
    below = {"MPLCONFIGDIR": ".", "XDG_CACHE_HOME": "matplotlib", "HOME": ".cache/matplotlib"}
    folder = base / "theirs" / below[variable]
    folder.mkdir(parents=True)
    victim = base / "victim"
    victim.write_text("kept")
    draws = [sys.executable, "-c", _DRAWS]
    version = ran(draws, env=environment).stdout.strip()
    (folder / f"fontlist-v{version}.json").symlink_to(victim)
    os.chown(base / "theirs", 71500, 71500)
    environment[variable] = str(base / "theirs")
    ran(draws, env=environment)
    assert victim.read_text() == "kept"


@pytest.mark.parametrize("own", [False, True])
def test_root_reads_no_font_settings_of_another_user(base: Path, own: bool) -> None:
    """Also where the list of fonts has a folder of its own; fc-list makes the named folder."""
    theirs, made = base / "theirs", base / "made"
    settings = theirs / ".config/fontconfig/fonts.conf"
    settings.parent.mkdir(parents=True)
    (theirs / ".fonts").mkdir()
    settings.write_text(
        '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">'
        f"<fontconfig><dir>{theirs}/.fonts</dir><cachedir>{made}</cachedir></fontconfig>"
    )
    environment = {**os.environ, "HOME": str(theirs)}
    for name in ("MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "SUDO_UID"):
        environment.pop(name, None)
    if own:
        (base / "own").mkdir()
        environment["MPLCONFIGDIR"] = str(base / "own")
    os.chown(theirs, 71500, 71500)
    ran([sys.executable, "-c", _DRAWS], env=environment)
    assert not made.exists()
