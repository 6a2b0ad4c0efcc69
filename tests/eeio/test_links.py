"""Nothing is written or deleted through a link that lies in the directory to be measured."""

import os
from pathlib import Path

import pytest
from tests import dummy
from tests.campaigns import records
from tests.kill.harness import drop_last_runs
from tests.plugin import Eeio

ARGUMENTS = ("dummy-suite", "--meter", "none")


@pytest.mark.root
@pytest.mark.parametrize("name", ["eeio-ext4.img", "eeio-ext4"])
@pytest.mark.parametrize("kind", ["link to nothing", "link", "file"])
def test_an_image_is_not_made_over_what_is_there(
    home: Path, eeio: Eeio, name: str, kind: str
) -> None:
    victim = home / "victim"
    if kind != "link to nothing":
        victim.write_text("precious")
    path = home / "target" / name
    if kind == "file":
        path.write_text("precious")
    else:
        path.symlink_to(victim)
    arguments = (*ARGUMENTS, "--directory", str(home / "target"), "--filesystem", "ext4")
    for command, message in (("plan", "`eeio run` would refuse this: "), ("run", "")):
        done = eeio(command, *arguments, code=2)
        assert done.stderr.startswith(f"eeio: {message}{path} exists")
        assert done.stderr.count("\n") == 1
    assert victim.exists() == (kind != "link to nothing")
    assert not victim.exists() or victim.read_text() == "precious"
    assert os.path.lexists(path)


@pytest.mark.parametrize("kind", ["link", "link to nothing", "file", "another user's"])
def test_a_scratch_folder_that_is_none_is_rejected(home: Path, eeio: Eeio, kind: str) -> None:
    scratch, victim = home / "target/eeio-scratch", home / "victim"
    if kind == "another user's":
        if os.geteuid() != 0:
            pytest.skip("needs root: a folder of another user")
        scratch.mkdir()
        os.chown(scratch, 12345, 12345)
    elif kind == "file":
        scratch.write_text("precious")
    else:
        scratch.symlink_to(victim)
        if kind == "link":
            victim.mkdir()
    for command in ("plan", "run"):
        done = eeio(command, *ARGUMENTS, "--directory", str(home / "target"), code=2)
        assert str(scratch) in done.stderr and done.stderr.count("\n") == 1
    assert victim.exists() == (kind == "link")


def test_test_files_are_not_deleted_through_a_link(home: Path, eeio: Eeio) -> None:
    """Laid while the campaign runs."""
    (home / "victim").mkdir()
    (home / "victim/file").write_text("precious")
    scratch = home / "target/eeio-scratch"
    profiles = dummy.profile(home, f"[ -e {scratch} ] || ln -s {home}/victim {scratch}")
    (profiles / "eeio-dummy-1.0.0/post.sh").write_text(
        '#!/bin/sh\nrm -f "$EEIO_DIRECTORY/eeio-scratch/file"\n'
    )
    done = eeio("run", *ARGUMENTS, "--directory", str(home / "target"), "--name", "c",
                environment={"EEIO_TEST_PROFILES": str(profiles)}, code=3)  # fmt: skip
    assert "the test files stay" in done.stderr
    assert (home / "victim/file").read_text() == "precious"
    reasons = [record["validity"] for record in records(home)]
    assert reasons[0] == [] and all("is not followed" in text for (text,) in reasons[1:])


def test_a_scratch_folder_that_is_replaced_during_a_run_makes_it_invalid(
    home: Path, eeio: Eeio
) -> None:
    scratch = home / "target/eeio-scratch"
    profiles = dummy.profile(
        home, f"mv {scratch} {home}/away.$$\nmkdir {scratch}", f"#!/bin/sh\nmkdir -p {scratch}\n"
    )
    eeio("run", *ARGUMENTS, "--directory", str(home / "target"), "--name", "c",
         environment={"EEIO_TEST_PROFILES": str(profiles)}, code=3)  # fmt: skip
    for record in records(home):
        assert record["validity"] == [f"{scratch} was renamed or replaced during the run"]


@pytest.mark.root
@pytest.mark.parametrize("command", ["plan", "run", "bench"])
def test_root_writes_nothing_to_another_user_s_folder(home: Path, eeio: Eeio, command: str) -> None:
    target = home / "target"
    os.chown(target, 12345, 12345)
    arguments = ("true", "--meter", "none") if command == "bench" else ARGUMENTS
    done = eeio(command, *arguments, "--directory", str(target), code=2)
    assert f"{target} is owned by user 12345. Repair: sudo -u '#12345' eeio ..." in done.stderr
    assert list(target.iterdir()) == []


@pytest.mark.root
def test_resume_checks_the_folder_again(home: Path, eeio: Eeio) -> None:
    target = home / "target"
    eeio("run", *ARGUMENTS, "--directory", str(target), "--name", "c")
    drop_last_runs(home, 1, "c")
    target.chmod(0o777)
    done = eeio("resume", "c", code=2)
    assert f"{target} can be written by other users" in done.stderr
    target.chmod(0o1777)
    eeio("resume", "c")
