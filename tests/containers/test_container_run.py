"""scripts/container-run: the flags that it makes of a machine's devices, and what it refuses."""

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.executables import executable
from tests.processes import ran

ROOT = Path(__file__).parents[2]
RUN = ROOT / "scripts/container-run"
CAMPAIGN = ("run", "eeio-suite")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine without anything: /dev, /proc and /sys are empty."""
    tree = tmp_path / "machine"
    for folder in ("dev", "proc/sys/vm", "run/lock", "sys/class"):
        (tree / folder).mkdir(parents=True)
    return tree


def _everything(tree: Path) -> None:
    (tree / "proc/sys/vm/drop_caches").touch()
    for node in ("sda", "ttyUSB0", "ttyUSB1", "ipmi0", "nvme0"):
        (tree / "dev" / node).touch()
    (tree / "sys/kernel/tracing").mkdir(parents=True)
    (tree / "sys/kernel/tracing/trace").touch()
    powercap = tree / "sys/devices/virtual/powercap/intel-rapl"
    (tree / "sys/class/powercap").mkdir()
    for zone in ("intel-rapl:0", "intel-rapl:0/intel-rapl:0:0"):
        (powercap / zone).mkdir(parents=True)
        (powercap / zone / "energy_uj").touch()
        (tree / "sys/class/powercap" / Path(zone).name).symlink_to(powercap / zone)


def _engine(tmp_path: Path, name: str, architecture: str | None) -> Path:
    """A stand-in for an engine: it knows one image, and prints how it was called."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    inspect = "exit 1" if architecture is None else f"echo {architecture}; exit"
    executable(folder / name, f'#!/bin/sh\n[ "$1" != image ] || {{ {inspect}; }}\necho "$@"\n')
    return folder


def _run(
    tree: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    return ran(
        [str(RUN), "--results", str(tree.parent / "results"), *arguments],
        env={**os.environ, "CONTAINER_RUN_TREE": str(tree), **(environment or {})},
        code=None,
    )


def _printed(
    tree: Path, *arguments: str, engine: str = "docker", code: int = 0
) -> tuple[list[str], list[str]]:
    """(the words of the printed command, what is said to be lost)."""
    done = _run(tree, "--engine", engine, "--print", *arguments)
    assert done.returncode == code, done.stderr
    lost = [line.partition("lost: ")[2] for line in done.stderr.splitlines()]
    return shlex.split(done.stdout), lost


def test_a_bare_machine_gives_a_bare_command(machine: Path) -> None:
    command, lost = _printed(machine, *CAMPAIGN)
    assert command[:3] == ["docker", "run", "--rm"]
    assert command[-3:] == ["eeio", *CAMPAIGN]
    assert not [word for word in command if word.startswith(("--device", "--cap-add", "--priv"))]
    assert "--network=none" in command
    assert any("dropping all caches" in message and "--root" in message for message in lost)
    assert any("RAPL" in message for message in lost)
    assert not (machine.parent / "results").exists()


def test_who_runs_it(machine: Path) -> None:
    user = os.getuid() or 1000
    assert f"--user={user}:0" in _printed(machine, *CAMPAIGN)[0]
    assert "--user=0:0" in _printed(machine, "--root", *CAMPAIGN)[0]


def test_root_mode_on_a_machine_with_everything(machine: Path) -> None:
    _everything(machine)
    command, lost = _printed(machine, "--root", *CAMPAIGN, "--device", "/dev/sda")
    assert lost == []
    for flag in (
        "--device=/dev/sda:/dev/sda:r",
        "--cap-add=SYS_ADMIN",
        "--volume=/proc/sys/vm/drop_caches:/drop_caches",
        "--env=EEIO_DROP_CACHES=/drop_caches",
        "--tmpfs=/sys/class/powercap",
        "--device=/dev/ttyUSB0",
        "--device=/dev/ttyUSB1",
        f"--group-add={os.getgid()}",
        "--device=/dev/ipmi0",
        "--volume=/sys/kernel/tracing:/sys/kernel/tracing",
        "--volume=/run/lock:/run/lock",
    ):
        assert flag in command
    # A package and its DRAM side by side, as the kernel shows them in /sys/class.
    mounts = [word for word in command if word.startswith("--mount")]
    powercap = "/sys/devices/virtual/powercap/intel-rapl/intel-rapl:0"
    assert mounts == [
        f"--mount=type=bind,source={powercap},target=/sys/class/powercap/intel-rapl:0,readonly",
        f"--mount=type=bind,source={powercap}/intel-rapl:0:0,"
        "target=/sys/class/powercap/intel-rapl:0:0,readonly",
    ]
    assert "--privileged" not in command


def test_a_user_gets_meters_and_nothing_that_is_roots(machine: Path) -> None:
    _everything(machine)
    command, lost = _printed(machine, *CAMPAIGN)
    assert "--device=/dev/ttyUSB0" in command and "--tmpfs=/sys/class/powercap" in command
    assert not [word for word in command if "ipmi" in word or "tracing" in word or "drop" in word]
    assert [message for message in lost if message.startswith("IPMI")]


def test_privileged_only_if_requested(machine: Path) -> None:
    _everything(machine)
    assert "--privileged" in _printed(machine, "--privileged", *CAMPAIGN)[0]
    filesystem = (*CAMPAIGN, "--filesystem", "ext4")
    command, lost = _printed(machine, "--root", *filesystem)
    assert "--privileged" not in command
    assert [message for message in lost if "--filesystem" in message and "--privileged" in message]


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (["--device", "/dev/sda", "--erase", "/dev/sda"], "--device=/dev/sda"),
        (["--device=/dev/sda", "--erase=/dev/sda"], "--device=/dev/sda"),
        (["--device", "/dev/sda", "--disk-cache", "off"], "--cap-add=SYS_RAWIO"),
        (["--meter", "nvme:/dev/nvme0"], "--device=/dev/nvme0:/dev/nvme0:r"),
        (["--meter", "shelly:plug"], "--network=host"),
        (["--meter", "modbus:192.0.2.9,model=sdm120"], "--network=host"),
        (["--meter", "quarch:qis"], "--network=host"),
        (["--meter", "ipmi:lanplus,host=bmc"], "--network=host"),
    ],
)
def test_what_the_command_names_is_passed_on(
    machine: Path, arguments: list[str], flag: str
) -> None:
    _everything(machine)
    assert flag in _printed(machine, "--root", *CAMPAIGN, *arguments)[0]


def test_the_directory_has_the_same_name_inside(machine: Path, tmp_path: Path) -> None:
    target = tmp_path / "a disk"
    target.mkdir()
    command, _ = _printed(machine, *CAMPAIGN, "--directory", str(target))
    assert f"--volume={target}:{target}" in command
    assert command[-1] == str(target)


def test_resume_takes_them_from_the_campaign(machine: Path, tmp_path: Path) -> None:
    _everything(machine)
    campaign = tmp_path / "results/mine"
    campaign.mkdir(parents=True)
    (campaign / "campaign.json").write_text(
        '{\n "options": {\n'
        f'  "directory": "{tmp_path}",\n  "device": "/dev/sda",\n  "erase": null,\n'
        '  "disk_cache": "leave"\n }\n}\n'
    )
    command, _ = _printed(machine, "--root", "resume", "mine")
    assert f"--volume={tmp_path}:{tmp_path}" in command
    assert "--device=/dev/sda:/dev/sda:r" in command


def test_what_podman_needs_otherwise(machine: Path) -> None:
    _everything(machine)
    command, _ = _printed(machine, *CAMPAIGN, "--device", "/dev/sda", engine="podman")
    assert "--tmpfs=/sys/class/powercap:notmpcopyup" in command
    assert "--security-opt=unmask=/sys/dev/block" in command
    assert [word for word in command if word.startswith("--ulimit=nofile=")]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((*CAMPAIGN, "--device", "/dev/not-there"), "/dev/not-there"),
        ((*CAMPAIGN, "--directory", "/not/there"), "/not/there"),
        ((*CAMPAIGN, "--directory", "."), "absolute path"),
        (("--image",), "--image"),
    ],
)
def test_bad_input_is_rejected_in_one_line(
    machine: Path, arguments: tuple[str, ...], named: str
) -> None:
    done = _run(machine, "--engine", "docker", "--print", *arguments)
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if "lost: " not in line]
    assert len(lines) == 1 and lines[0].startswith("container-run: ") and named in lines[0]
    assert done.stdout == ""


def test_a_plain_file_is_no_device(machine: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    done = _run(machine, "--engine", "docker", "--print", *CAMPAIGN, "--device", str(file),
                environment={"CONTAINER_RUN_TREE": ""})  # fmt: skip
    assert done.returncode == 2 and f"{file} is not a device" in done.stderr


def test_no_engine(machine: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for tool in ("sh", "id"):
        (empty / tool).symlink_to(f"/usr/bin/{tool}")
    done = _run(machine, *CAMPAIGN, environment={"PATH": str(empty)})
    assert done.returncode == 2
    assert done.stderr.strip().endswith("install the package podman")


def _path(folder: Path) -> dict[str, str]:
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_an_image_that_was_not_built(machine: Path, tmp_path: Path) -> None:
    engine = _engine(tmp_path, "docker", None)
    done = _run(machine, "--engine", "docker", "doctor", environment=_path(engine))
    assert done.returncode == 2
    assert "no image eeio in docker: build it" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "results").exists()


def test_a_foreign_platform_needs_binfmt(machine: Path, tmp_path: Path) -> None:
    engine = _engine(tmp_path, "docker", "s390x")
    done = _run(machine, "--engine", "docker", "doctor", environment=_path(engine))
    assert done.returncode == 2
    assert "qemu-user" in done.stderr.splitlines()[-1]
    (machine / "proc/sys/fs/binfmt_misc").mkdir(parents=True)
    (machine / "proc/sys/fs/binfmt_misc/qemu-s390x").touch()
    done = _run(machine, "--engine", "docker", "doctor", environment=_path(engine))
    assert done.returncode == 0
    assert done.stdout.strip().endswith("eeio doctor")


def test_arguments_with_spaces_and_quotes_arrive_completely(machine: Path, tmp_path: Path) -> None:
    engine = _engine(tmp_path, "docker", os.uname().machine.replace("x86_64", "amd64"))
    (engine / "docker").write_text(
        (engine / "docker").read_text().replace('echo "$@"', 'for w; do echo "[$w]"; done')
    )
    arguments = ("report", "it's a name", "--format", "csv")
    done = _run(machine, "--engine", "docker", *arguments, environment=_path(engine))
    assert done.stdout.splitlines()[-4:] == [f"[{argument}]" for argument in arguments]
    shown = next(line for line in done.stderr.splitlines() if line.startswith("docker run"))
    assert shlex.split(shown)[-4:] == list(arguments)
