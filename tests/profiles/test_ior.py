"""IOR's profile where IOR itself is told apart: with HDF5 or without, 3.x or 4.x."""

from pathlib import Path

import pytest

from eeio_parsers.ior import run as ior
from tests.executables import executable
from tests.plugin import ior_program
from tests.processes import ran
from tests.profiles.harness import Installed

HDF5 = ("api=hdf5", "operation=write", "processes=2", "request_size=1m", "file_size=8m")


def pretended(tmp_path: Path, version: str, apis: str) -> Installed:
    """A profile with a program that has no more of IOR than its help."""
    program = executable(
        tmp_path / "ior",
        f"#!/bin/sh\necho 'IOR-{version}: MPI Coordinated Test of Parallel I/O'\n"
        f"echo '  -a=POSIX                      API for I/O [{apis}]'\n",
    )
    profile = Installed("ior", tmp_path / "home", tmp_path / "disk")
    profile.install(EEIO_IOR=str(program))
    return profile


@pytest.mark.parametrize(
    ("version", "apis", "arguments", "message"),
    [
        ("4.0.0", "POSIX|DUMMY|MPIIO|MMAP", (), "was built without HDF5 (it has POSIX|DUMMY|MPIIO"),
        ("3.3.0", "POSIX|HDF5|MPIIO", (), "IOR 3.x does not flush HDF5 files"),
        ("4.0.0", "POSIX|HDF5|MPIIO", ("flush=each",), "flush=each: not with HDF5"),
        ("4.0.0", "POSIX|HDF5|MPIIO", ("operation=read", "flush=end"), "a read does not flush"),
        ("4.0.0", "POSIX|HDF5|MPIIO", ("flush=on",), "flush=on: give one of: none end each"),
        ("4.0.0", "POSIX|HDF5|MPIIO", ("spatiality=random",), "IOR has none with HDF5"),
        ("4.0.0", "POSIX|HDF5|MPIIO", ("buffer=off",), "only api=posix has direct I/O"),
    ],
)
def test_what_hdf5_cannot_do_is_rejected_before_anything_runs(
    tmp_path: Path, version: str, apis: str, arguments: tuple[str, ...], message: str
) -> None:
    profile = pretended(tmp_path, version, apis)
    done = profile.script("pre.sh", *HDF5, *arguments, code=2)
    assert message in done.stderr, done.stderr
    assert not list(profile.directory.iterdir())


MPIRUN = """#!/bin/sh
[ "$1" = --version ] && exit
shift 2
exec "$@"
"""


@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        (("operation=read",), []),
        (("operation=write",), ["-e"]),
        (("operation=write", "flush=end"), ["-e"]),
        (("operation=write", "flush=each"), ["-Y"]),
        (("operation=write", "flush=none"), []),
        (("operation=write", "fsync=on"), ["-e"]),
        (("operation=write", "fsync=off"), []),
    ],
)
def test_what_ior_is_requested_to_flush(
    tmp_path: Path, arguments: tuple[str, ...], flags: list[str]
) -> None:
    profile = pretended(tmp_path, "4.0.0", "POSIX|MPIIO")
    program = tmp_path / "ior"
    program.write_text('#!/bin/sh\necho "$@"\n')
    mpirun = executable(tmp_path / "mpirun", MPIRUN)
    profile.script("pre.sh", *arguments, EEIO_MPIRUN=str(mpirun))
    given = profile.run(*arguments, EEIO_MPIRUN=str(mpirun)).stdout.split()
    assert given[given.index("-a") + 1] == "MPIIO"
    assert [word for word in given if word in ("-e", "-Y")] == flags


def test_an_ior_whose_help_does_not_tell_its_version(tmp_path: Path) -> None:
    """As that of 4.1: the first line of its work does."""
    program = executable(
        tmp_path / "ior",
        '#!/bin/sh\n[ "$1" = -h ] && echo "Synopsis $0" && exit 1\n'
        'echo "IOR-4.1.0+dev: MPI Coordinated Test of Parallel I/O"\n',
    )
    profile = Installed("ior", tmp_path / "home", tmp_path / "disk")
    profile.install(EEIO_IOR=str(program))
    assert "version=4.1.0+dev" in (profile.home / "tool.conf").read_text().splitlines()


def test_hdf5_where_it_is_built_in(tmp_path: Path) -> None:
    program = ior_program()
    if program is None:
        pytest.skip("ior is not installed")
    requested = ran([program, "-h"], code=None)
    if "|HDF5" not in requested.stdout + requested.stderr or "IOR-3" in requested.stdout:
        pytest.skip(f"{program}: no IOR 4 with HDF5")
    profile = Installed("ior", tmp_path / "home", tmp_path / "disk")
    profile.install(EEIO_IOR=program)
    profile.script("pre.sh", *HDF5)
    capture = profile.capture(tmp_path / "out", dict(word.split("=") for word in HDF5))
    assert capture.exit_code == 0
    (write,) = ior.parse(capture).phases
    assert (write.operation, write.bytes_moved) == ("write", 8 << 20)
    assert write.start_s is not None
